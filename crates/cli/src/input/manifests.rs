//! The objects that were read, their origins, and the problems found on the way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use convoy_api::object::field_path::{self, PathPart};
use convoy_api::{Object, ObjectKey};
use convoy_plan::{Severity, World};
use serde_json::Value;

use super::location::{Origin, Problem, SourceLocation};
use super::names;
use super::positions::{self, FieldPosition, Node, Position};

/// The objects of all inputs.
#[derive(Clone, Debug, Default)]
pub struct Manifests {
    pub world: World,
    pub problems: Vec<Problem>,
    origins: BTreeMap<ObjectKey, Origin>,
    /// The content of each file, in which fields are looked up when there are findings about them.
    texts: BTreeMap<Arc<str>, Arc<str>>,
    /// Problems with a field whose line is looked up once the file has been read.
    unplaced: Vec<Unplaced>,
}

/// A problem, and the object of the file whose field it is about.
#[derive(Clone, Debug)]
struct Unplaced {
    problem: usize,
    object: Position,
    path: Vec<PathPart>,
}

/// How many problems of one file are given the places of their fields; nobody reads more.
const UNPLACED_MAX: usize = 100;

/// Where a field stands, and how its value is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldLocation {
    /// Absent if the object comes from no file.
    pub location: Option<SourceLocation>,
    /// A plain value as it is written, which may differ from what it means: `yes` for true.
    pub written: Option<String>,
}

impl Manifests {
    /// Objects that come from no file.
    pub fn of(world: World) -> Self {
        Self { world, ..Self::default() }
    }

    /// Whether everything could be read.
    pub fn is_sound(&self) -> bool {
        self.problems.iter().all(|problem| problem.severity != Severity::Error)
    }

    /// The file and line of an object.
    pub fn origin(&self, key: &ObjectKey) -> Option<&Origin> {
        self.origins.get(key)
    }

    /// Where these fields of objects stand. A field that is not there stands where the innermost one
    /// around it does.
    pub fn locate(&self, fields: &[(&ObjectKey, &str)]) -> Vec<FieldLocation> {
        let mut wanted: BTreeMap<&Arc<str>, BTreeSet<Position>> = BTreeMap::new();
        for (key, field) in fields {
            if let Some(origin) = self.origins.get(*key).filter(|_| !field.is_empty()) {
                wanted.entry(&origin.file).or_default().insert((origin.line, origin.column));
            }
        }
        let parsed: BTreeMap<&Arc<str>, BTreeMap<Position, Node>> = wanted
            .into_iter()
            .filter_map(|(file, wanted)| {
                Some((file, positions::objects(self.texts.get(file)?, &wanted)))
            })
            .collect();
        let locate = |(key, field): &(&ObjectKey, &str)| {
            let Some(origin) = self.origins.get(*key) else { return FieldLocation::default() };
            let objects = parsed.get(&origin.file);
            let object = objects.and_then(|it| it.get(&(origin.line, origin.column)));
            self.location(key, field, origin, object)
        };
        fields.iter().map(locate).collect()
    }

    fn location(
        &self,
        key: &ObjectKey,
        field: &str,
        origin: &Origin,
        object: Option<&Node>,
    ) -> FieldLocation {
        let whole = SourceLocation::from(origin);
        let found = object.zip(self.world.get(key)).and_then(|(node, object)| {
            let (parts, rest) = field_path::parts(object.raw(), field);
            let found = node.find(&parts);
            (!parts.is_empty()).then_some((found, rest.is_empty()))
        });
        match found {
            Some((FieldPosition { position: (line, column), written }, is_exact)) => {
                let location = SourceLocation { line: Some(line), column: Some(column), ..whole };
                let written = written.filter(|_| is_exact);
                FieldLocation { location: Some(location), written }
            }
            None => FieldLocation { location: Some(whole), written: None },
        }
    }

    pub(super) fn keep_text(&mut self, file: Arc<str>, text: String) {
        self.place(&text);
        self.texts.insert(file, Arc::from(text));
    }

    /// Gives problems with a field of an object in `text` the place of the field.
    fn place(&mut self, text: &str) {
        let unplaced = std::mem::take(&mut self.unplaced);
        if unplaced.is_empty() {
            return;
        }
        let wanted = unplaced.iter().map(|it| it.object).collect();
        let objects = positions::objects(text, &wanted);
        for Unplaced { problem, object, path } in unplaced {
            let problem = self.problems.get_mut(problem);
            if let (Some(problem), Some(node)) = (problem, objects.get(&object))
                && let Some(location) = &mut problem.location
            {
                let (line, column) = node.find(&path).position;
                (location.line, location.column) = (Some(line), Some(column));
            }
        }
    }

    pub(super) fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Adds one JSON value, which must be a Kubernetes object. Of two objects with the same key
    /// the first stays, and the second is a problem if it says something else.
    pub(super) fn object(&mut self, origin: &Origin, value: Value) -> Result<(), Problem> {
        let mut value = value;
        for found in names::mend(&mut value).into_iter().take(UNPLACED_MAX - self.unplaced.len()) {
            let names::Mended { object, field, message } = found;
            let place = SourceLocation::from(origin);
            let problem = Problem::error(place, message).about(object).at(field);
            let (path, _) = field_path::parts(&value, field);
            let object = (origin.line, origin.column);
            self.unplaced.push(Unplaced { problem: self.problems.len(), object, path });
            self.problem(problem);
        }
        let object = Object::from_value(value).map_err(|error| {
            let message = format!("not a Kubernetes object: {error}");
            Problem::error(SourceLocation::from(origin), message)
        })?;
        if let Some(first) = self.origins.get(object.key()) {
            let standing = self.world.get(object.key()).map_or(&Value::Null, Object::raw);
            let Some(field) = difference(standing, object.raw(), "") else { return Ok(()) };
            let message = format!(
                "duplicate object {}, first defined at {first} with another {field}",
                object.key()
            );
            let problem = Problem::error(SourceLocation::from(origin), message);
            return Err(problem.about(full_name(&object)));
        }
        self.origins.insert(object.key().clone(), origin.clone());
        self.world.insert(object);
        Ok(())
    }
}

/// `apiVersion/Kind/namespace/name`, as diagnostics name objects.
fn full_name(object: &Object) -> String {
    let key = object.key();
    format!("{}/{}/{}/{}", object.api_version(), key.kind.kind, key.namespace, key.name)
}

/// The first field that two objects do not have alike.
fn difference(left: &Value, right: &Value, path: &str) -> Option<String> {
    let (Value::Object(ours), Value::Object(theirs)) = (left, right) else {
        return (left != right).then(|| path.to_owned());
    };
    let keys: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    keys.into_iter().find_map(|key| {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match (ours.get(key), theirs.get(key)) {
            (Some(ours), Some(theirs)) => difference(ours, theirs, &path),
            _ => Some(path),
        }
    })
}
