//! Which names of a definition are free: two kinds of one group cannot share a name.

use std::collections::BTreeSet;

use convoy_store::Shelf;
use serde_json::{Value, json};

use crate::encoding;
use crate::object_meta::Snapshot;
use crate::registry::{Resource, builtin};

use super::is_true;

/// Names of a group that somebody has.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// Plurals, singulars and short names share one space.
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

/// What a definition may be called.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) group: String,
    /// The names that it has now: those asked for, where they are free.
    pub(crate) accepted: Value,
    /// Why not all of them are.
    pub(crate) conflict: Option<Conflict>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Verdict {
    /// Once established, a definition is served even if it asks for a name it cannot have.
    pub(crate) fn is_served(&self, definition: &Value) -> bool {
        self.conflict.is_none() || is_true(definition, "Established")
    }
}

/// The names that others of the definition's group have: definitions, built-in kinds, and `own`.
pub(crate) fn taken(
    snapshot: &Snapshot,
    shelf: &Shelf,
    definition: &Value,
    own: &Resource,
) -> Taken {
    let group = definition["spec"]["group"].as_str().unwrap_or_default();
    let mut taken = Taken::default();
    for entry in snapshot.list(shelf) {
        if is_of_group(&entry.key.name, group) && entry.key.name != name_of(definition) {
            taken.add(&encoding::read_entry(entry)["status"]["acceptedNames"]);
        }
    }
    let fixed = builtin().iter().map(|resource| &**resource).chain([own]);
    for resource in fixed.filter(|resource| resource.group == group) {
        taken.add(&json!({"plural": resource.plural, "singular": resource.singular,
            "shortNames": resource.short_names, "kind": resource.kind,
            "listKind": resource.list_kind}));
    }
    taken
}

/// Definitions of a group that wait for a name.
pub(crate) fn waiting(snapshot: &Snapshot, shelf: &Shelf, group: &str) -> Vec<String> {
    let of_group = snapshot.list(shelf).filter(|entry| is_of_group(&entry.key.name, group));
    let waiting = of_group.filter(|entry| {
        let definition = encoding::read_entry(entry);
        definition["status"]["conditions"].is_array() && !is_true(&definition, "NamesAccepted")
    });
    waiting.map(|entry| entry.key.name.to_string()).collect()
}

/// Which of the names that a definition asks for it gets.
pub(crate) fn judge(definition: &Value, taken: &Taken) -> Verdict {
    let wanted = &definition["spec"]["names"];
    let had = &definition["status"]["acceptedNames"];
    let mut accepted = had.as_object().cloned().unwrap_or_default();
    let mut conflict = None;
    for (field, reason, used) in [
        ("plural", "PluralConflict", &taken.resources),
        ("singular", "SingularConflict", &taken.resources),
        ("shortNames", "ShortNamesConflict", &taken.resources),
        ("kind", "KindConflict", &taken.kinds),
        ("listKind", "ListKindConflict", &taken.kinds),
    ] {
        let mine = texts(&had[field]);
        let mut lost = texts(&wanted[field])
            .into_iter()
            .filter(|name| !mine.contains(name) && used.contains(*name));
        if let Some(name) = lost.next() {
            conflict = Some(Conflict { reason, message: format!("{name:?} is already in use") });
        } else {
            put(&mut accepted, field, &wanted[field]);
        }
    }
    put(&mut accepted, "categories", &wanted["categories"]);
    let group = definition["spec"]["group"].as_str().unwrap_or_default().to_owned();
    Verdict { group, accepted: Value::Object(accepted), conflict }
}

fn put(names: &mut serde_json::Map<String, Value>, field: &str, value: &Value) {
    if value.is_null() {
        names.shift_remove(field);
    } else {
        names.insert(field.to_owned(), value.clone());
    }
}

impl Taken {
    fn add(&mut self, names: &Value) {
        for field in ["plural", "singular", "shortNames"] {
            self.resources.extend(texts(&names[field]).into_iter().map(str::to_owned));
        }
        for field in ["kind", "listKind"] {
            self.kinds.extend(texts(&names[field]).into_iter().map(str::to_owned));
        }
    }
}

/// A text, or the texts of a list.
fn texts(value: &Value) -> Vec<&str> {
    let list = value.as_array().into_iter().flatten().chain([value]);
    list.filter_map(Value::as_str).filter(|text| !text.is_empty()).collect()
}

fn name_of(definition: &Value) -> &str {
    crate::metadata::text(definition, "name")
}

/// Definitions are named after plural and group.
fn is_of_group(name: &str, group: &str) -> bool {
    name.split_once('.').is_some_and(|(_, of)| of == group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_names_are_accepted_and_used_ones_name_the_conflict() {
        let mut taken = Taken::default();
        taken.add(&json!({"plural": "widgets", "singular": "widget", "shortNames": ["w"],
            "kind": "Widget", "listKind": "WidgetList"}));
        let cases = [
            (json!({"plural": "gadgets", "kind": "Gadget"}), None),
            (json!({"plural": "gadgets", "shortNames": ["g", "w"]}), Some("ShortNamesConflict")),
            (json!({"plural": "widget", "kind": "Gadget"}), Some("PluralConflict")),
            (json!({"plural": "gadgets", "kind": "WidgetList"}), Some("KindConflict")),
        ];
        for (names, expected) in cases {
            let definition = json!({"spec": {"group": "example.com", "names": names}});
            let verdict = judge(&definition, &taken);
            let reason = verdict.conflict.as_ref().map(|conflict| conflict.reason);
            assert_eq!(reason, expected, "{names}");
            assert_eq!(verdict.is_served(&definition), expected.is_none());
        }
        // What it has already stays its own.
        let mine = json!({"spec": {"names": {"plural": "widgets"}},
            "status": {"acceptedNames": {"plural": "widgets"}}});
        assert_eq!(judge(&mine, &taken).conflict, None);
    }
}
