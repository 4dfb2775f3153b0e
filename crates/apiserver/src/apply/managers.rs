//! `metadata.managedFields`: who owns what, since when and in which version.

use std::cmp::Ordering;

use jiff::Timestamp;
use serde_json::{Map, Value};
use smol_str::{SmolStr, ToSmolStr};

use super::element::write_text;
use super::fields::{BadFields, FieldSet};

/// Update entries beyond this number are merged, the oldest first.
const UPDATERS_MAX: usize = 10;
/// The manager that oldest entries are merged into.
const ANCIENT: &str = "ancient-changes";

/// How a manager came to own its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    Apply,
    Update,
}

/// Who a manager is. An applier is the same in all versions; whoever updates is another one in
/// each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    pub name: SmolStr,
    pub operation: Operation,
    pub subresource: SmolStr,
    /// The version that the manager's fields are of.
    pub api_version: SmolStr,
}

/// What one manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub manager: Manager,
    /// Of the last change, in seconds.
    pub time: Option<Timestamp>,
    pub fields: FieldSet,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Managers {
    entries: Vec<Entry>,
}

/// What a request says about managed fields.
#[derive(Debug)]
pub(super) enum Sent {
    Nothing,
    /// `[]` or `[{}]`: forget them all.
    Reset,
    Managers(Managers),
}

/// Why managed fields cannot be read. One bad entry spoils the list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadManagers {
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    #[error("apiVersion must not be empty")]
    NoApiVersion,
    #[error("missing fieldsType in managed fields entry {0}")]
    NoFieldsType(usize),
    #[error("invalid fieldsType {1:?} in managed fields entry {0}")]
    FieldsType(usize, String),
    #[error("error decoding set of managed fields entry {0}: {1}")]
    Fields(usize, BadFields),
    #[error("managed fields entry {0} has a field of the wrong type")]
    Type(usize),
}

impl Manager {
    /// Whether two entries belong to the same manager.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.operation == other.operation
            && self.name == other.name
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// The order in which Kubernetes lists managers where time does not decide: that of the JSON
    /// which it identifies them by.
    pub(super) fn cmp_identifier(&self, other: &Self) -> Ordering {
        self.identifier().cmp(&other.identifier())
    }

    fn identifier(&self) -> String {
        let mut json = String::from("{");
        let mut field = |key: &str, value: &str| {
            if !value.is_empty() {
                if json.len() > 1 {
                    json.push(',');
                }
                write_text(&mut json, key, true);
                json.push(':');
                write_text(&mut json, value, true);
            }
        };
        field("manager", &self.name);
        field("operation", self.operation.text());
        if self.operation == Operation::Update {
            field("apiVersion", &self.api_version);
        }
        field("subresource", &self.subresource);
        json.push('}');
        json
    }
}

impl Operation {
    fn text(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

impl Managers {
    /// Reads the list; absent and null are no managers.
    pub fn parse(managed_fields: Option<&Value>) -> Result<Self, BadManagers> {
        let entries = match managed_fields {
            None | Some(Value::Null) => &[][..],
            Some(Value::Array(entries)) => entries,
            Some(_) => return Err(BadManagers::Type(0)),
        };
        let mut managers = Self::default();
        for (position, entry) in entries.iter().enumerate() {
            managers.put(read_entry(position, entry)?);
        }
        Ok(managers)
    }

    /// The list on the wire: by operation, time, name, version and sub-resource. None if nobody
    /// manages anything.
    pub fn into_value(mut self) -> Option<Value> {
        if self.entries.is_empty() {
            return None;
        }
        self.entries.sort_by(cmp_on_wire);
        Some(self.entries.into_iter().map(write_entry).collect())
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn get(&self, manager: &Manager) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.manager.is(manager))
    }

    /// Adds the entry in place of the one that the manager had.
    pub(super) fn put(&mut self, entry: Entry) {
        match self.entries.iter_mut().find(|own| own.manager.is(&entry.manager)) {
            Some(own) => *own = entry,
            None => self.entries.push(entry),
        }
    }

    pub(super) fn for_each(&mut self, mut visit: impl FnMut(&mut Entry)) {
        self.entries.iter_mut().for_each(&mut visit);
    }

    pub(super) fn retain(&mut self, keep: impl FnMut(&Entry) -> bool) {
        self.entries.retain(keep);
    }

    /// Merges the oldest of too many update entries into one for each version.
    pub(super) fn merge_oldest(&mut self) {
        let is_update = |entry: &Entry| entry.manager.operation == Operation::Update;
        let mut surplus = self.entries.iter().filter(|entry| is_update(entry)).count();
        if surplus <= UPDATERS_MAX {
            return;
        }
        surplus -= UPDATERS_MAX;
        let (mut updaters, rest): (Vec<_>, Vec<_>) = self.entries.drain(..).partition(is_update);
        self.entries = rest;
        updaters.sort_by(|a, b| {
            seconds(a).cmp(&seconds(b)).then_with(|| a.manager.cmp_identifier(&b.manager))
        });
        // The first of a version is left alone until a second one comes to be merged with it.
        let mut kept: Vec<Entry> = Vec::with_capacity(updaters.len());
        for entry in updaters {
            let version = &entry.manager.api_version;
            let first = kept.iter_mut().find(|first| first.manager.api_version == *version);
            match first {
                Some(first) if surplus > 0 => {
                    first.manager.name = SmolStr::new_static(ANCIENT);
                    first.manager.subresource = SmolStr::default();
                    first.fields = first.fields.union(&entry.fields);
                    first.time = entry.time; // the later one
                    surplus -= 1;
                }
                _ => kept.push(entry),
            }
        }
        for entry in kept {
            self.join(entry);
        }
    }

    /// Adds the entry to what its manager has already.
    fn join(&mut self, mut entry: Entry) {
        if let Some(own) = self.get(&entry.manager) {
            entry.fields = entry.fields.union(&own.fields);
            entry.time = entry.time.max(own.time);
        }
        self.put(entry);
    }
}

/// What a request's `metadata.managedFields` says. A list that cannot be read says nothing, lest
/// a client that does not know what it means destroys it.
pub(super) fn sent(managed_fields: Option<&Value>) -> Sent {
    match managed_fields {
        Some(Value::Array(entries)) if is_reset(entries) => Sent::Reset,
        Some(list) => match Managers::parse(Some(list)) {
            Ok(managers) if !managers.is_empty() => Sent::Managers(managers),
            _ => Sent::Nothing,
        },
        None => Sent::Nothing,
    }
}

fn is_reset(entries: &[Value]) -> bool {
    const FIELDS: [&str; 7] =
        ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"];
    match entries {
        [] => true,
        [Value::Object(entry)] => FIELDS.iter().all(|field| match entry.get(*field) {
            None | Some(Value::Null) => true,
            Some(value) => value == "",
        }),
        _ => false,
    }
}

fn read_entry(position: usize, entry: &Value) -> Result<Entry, BadManagers> {
    let wrong = || BadManagers::Type(position);
    let entry = entry.as_object().ok_or_else(wrong)?;
    let text = |field: &str| match entry.get(field) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(_) => Err(wrong()),
    };
    let time = match text("time")? {
        "" => None,
        time => Some(time.parse::<Timestamp>().map_err(|_| wrong())?),
    };
    let operation = match text("operation")? {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err(BadManagers::Operation),
    };
    let api_version = text("apiVersion")?;
    if api_version.is_empty() {
        return Err(BadManagers::NoApiVersion);
    }
    match text("fieldsType")? {
        "FieldsV1" => {}
        "" => return Err(BadManagers::NoFieldsType(position)),
        other => return Err(BadManagers::FieldsType(position, other.to_owned())),
    }
    let fields = match entry.get("fieldsV1") {
        None | Some(Value::Null) => FieldSet::default(),
        Some(fields) => {
            FieldSet::parse(fields).map_err(|problem| BadManagers::Fields(position, problem))?
        }
    };
    let manager = Manager {
        name: text("manager")?.to_smolstr(),
        operation,
        subresource: text("subresource")?.to_smolstr(),
        api_version: api_version.to_smolstr(),
    };
    Ok(Entry { manager, time, fields })
}

fn write_entry(entry: Entry) -> Value {
    let Entry { manager, time, fields } = entry;
    let mut out = Map::with_capacity(7);
    let mut put = |key: &str, value: &str| {
        if !value.is_empty() {
            out.insert(key.to_owned(), value.into());
        }
    };
    put("manager", &manager.name);
    put("operation", manager.operation.text());
    put("apiVersion", &manager.api_version);
    if let Some(time) = time {
        put("time", &in_seconds(time).to_string());
    }
    put("fieldsType", "FieldsV1");
    out.insert("fieldsV1".to_owned(), fields.to_value());
    if !manager.subresource.is_empty() {
        out.insert("subresource".to_owned(), manager.subresource.as_str().into());
    }
    Value::Object(out)
}

fn cmp_on_wire(a: &Entry, b: &Entry) -> Ordering {
    let operation = a.manager.operation.cmp(&b.manager.operation);
    operation
        .then_with(|| seconds(a).cmp(&seconds(b)))
        .then_with(|| a.manager.name.cmp(&b.manager.name))
        .then_with(|| a.manager.api_version.cmp(&b.manager.api_version))
        .then_with(|| a.manager.subresource.cmp(&b.manager.subresource))
}

/// An entry without a time is older than all others.
fn seconds(entry: &Entry) -> i64 {
    entry.time.map_or(0, Timestamp::as_second)
}

fn in_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
