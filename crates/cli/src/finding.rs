//! What is wrong, whoever found it: the readers of the input or the engine's validation.

use std::collections::BTreeMap;

use convoy_api::{GroupKind, Object};
use convoy_plan::availability::{self, Availability};
use convoy_plan::{DIALECTS, Diagnostic, Severity};
use serde_json::{Map, Value};

use crate::input::{Bag, Place, Problem};

/// One thing that is wrong, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    /// `apiVersion/Kind/namespace/name`; empty if it is about the input as such.
    pub object: String,
    /// Dotted path; empty for the whole object.
    pub field: String,
    pub message: String,
    pub place: Option<Place>,
}

/// What could not be read, then what nobody uses, then what the engine says.
pub fn all(bag: &Bag, diagnostics: &[Diagnostic]) -> Vec<Finding> {
    let read = bag.problems.iter().cloned().map(Finding::from);
    let unused = unused_kinds(bag).into_iter().map(Finding::from);
    let judged = diagnostics.iter().map(|diagnostic| Finding {
        severity: diagnostic.severity,
        object: diagnostic.object.clone(),
        field: diagnostic.field.clone(),
        message: diagnostic.message.clone(),
        place: bag.origin(&diagnostic.key).map(Place::from),
    });
    read.chain(unused).chain(judged).collect()
}

/// Whether any finding is an error.
pub fn has_errors(findings: &[Finding]) -> bool {
    count(findings, Severity::Error) > 0
}

/// How many findings are this severe.
pub fn count(findings: &[Finding], severity: Severity) -> usize {
    findings.iter().filter(|finding| finding.severity == severity).count()
}

/// The findings as a list, each with the keys of an engine diagnostic and its place.
pub fn to_json(findings: &[Finding]) -> Value {
    findings.iter().map(Finding::to_json).collect()
}

impl Finding {
    fn to_json(&self) -> Value {
        let mut json = Map::new();
        let mut put = |key: &str, value: Value| json.insert(key.to_owned(), value);
        put("severity", serde_json::json!(self.severity));
        put("object", Value::from(self.object.as_str()));
        put("field", Value::from(self.field.as_str()));
        put("message", Value::from(self.message.as_str()));
        if let Some(place) = &self.place {
            put("file", Value::from(&*place.file));
            if let Some(line) = place.line {
                put("line", Value::from(line));
            }
            if let Some(column) = place.column {
                put("column", Value::from(column));
            }
        }
        Value::Object(json)
    }
}

impl From<Problem> for Finding {
    fn from(problem: Problem) -> Self {
        let Problem { severity, place, object, message } = problem;
        Self { severity, object, field: String::new(), message, place }
    }
}

/// Kinds that play no part: no dialect reads them, nobody can tell whether they are
/// available, and no placement in the bag could carry them to a cluster. One warning for each
/// kind, at its first object.
fn unused_kinds(bag: &Bag) -> Vec<Problem> {
    if bag.world.iter().any(|object| carries_any_kind(object.kind())) {
        return Vec::new();
    }
    let mut unused: BTreeMap<&GroupKind, (usize, Option<Place>)> = BTreeMap::new();
    for object in bag.world.iter().filter(|object| !is_used(object)) {
        let place = || bag.origin(object.key()).map(Place::from);
        unused.entry(object.kind()).or_insert_with(|| (0, place())).0 += 1;
    }
    let told = unused.into_iter().map(|(kind, (count, place))| {
        let objects = if count == 1 { "object" } else { "objects" };
        Problem::warning(place, format!("{count} {kind} {objects}: nothing here uses this kind"))
    });
    told.collect()
}

fn is_used(object: &Object) -> bool {
    let kind = object.kind();
    let is_read = DIALECTS.iter().any(|dialect| {
        dialect.validates(kind) || dialect.watches().iter().any(|watch| watch.kind == *kind)
    });
    is_read || !matches!(availability::judge(object), Availability::NotTrackable { .. })
}

/// Placements select objects of any kind.
fn carries_any_kind(kind: &GroupKind) -> bool {
    kind.group == "placement.kubernetes-fleet.io"
        && matches!(kind.kind.as_str(), "ClusterResourcePlacement" | "ResourcePlacement")
}
