//! Findings: problems of the input and diagnostics of the engine, in one list.

pub(crate) mod kinds;
pub(crate) mod metadata;
mod patterns;
mod wording;

use std::collections::BTreeMap;
use std::sync::Arc;

use convoy_api::{GroupKind, Object};
use convoy_plan::availability::{self, Availability};
use convoy_plan::{DIALECTS, Diagnostic, Severity};
use serde_json::{Map, Value};

use crate::input::{FieldLocation, Manifests, Problem, SourceLocation};

/// One problem, with its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    /// `apiVersion/Kind/namespace/name`; empty for a problem of the input itself.
    pub object: String,
    /// Dotted path; empty for the whole object.
    pub field: String,
    pub message: String,
    pub location: Option<SourceLocation>,
}

/// Unreadable input first, then unused kinds, then the diagnostics of the engine.
pub fn all(manifests: &Manifests, diagnostics: &[Diagnostic]) -> Vec<Finding> {
    let read = manifests.problems.iter().cloned().map(Finding::from);
    let unused = unused_kinds(manifests).into_iter().map(Finding::from);
    read.chain(unused).chain(judged(manifests, diagnostics)).collect()
}

/// Unreadable input first, then the diagnostics, without the kinds that no dialect uses: validation
/// looks at all kinds.
pub(crate) fn of_validation(manifests: &Manifests, diagnostics: &[Diagnostic]) -> Vec<Finding> {
    let read = manifests.problems.iter().cloned().map(Finding::from);
    read.chain(judged(manifests, diagnostics)).collect()
}

/// Brings findings into the order of files and lines; first those that are about none.
pub(crate) fn sort_by_place(findings: &mut [Finding]) {
    findings.sort_by_key(|finding| {
        finding.location.as_ref().map(|it| (Arc::clone(&it.file), it.line, it.column))
    });
}

/// Diagnostics with the places of their fields, in the words that were written there.
fn judged(manifests: &Manifests, diagnostics: &[Diagnostic]) -> Vec<Finding> {
    let fields: Vec<_> =
        diagnostics.iter().map(|found| (&found.key, found.field.as_str())).collect();
    let located = manifests.locate(&fields);
    let judged =
        diagnostics.iter().zip(located).map(|(found, FieldLocation { location, written })| {
            let raw = manifests.world.get(&found.key).map_or(&Value::Null, Object::raw);
            let field = found.field.as_str();
            let message = wording::as_written(&found.message, raw, field, written.as_deref());
            let message = wording::with_advice(wording::without_compound(&message), raw, field);
            Finding {
                severity: found.severity,
                object: found.object.clone(),
                field: found.field.clone(),
                message: patterns::in_words(&wording::with_suggestion(message)),
                location,
            }
        });
    judged.collect()
}

/// Whether any finding is an error.
pub fn has_errors(findings: &[Finding]) -> bool {
    count(findings, Severity::Error) > 0
}

/// Number of findings of this severity.
pub fn count(findings: &[Finding], severity: Severity) -> usize {
    findings.iter().filter(|finding| finding.severity == severity).count()
}

/// The findings as a list, each with the keys of an engine diagnostic and its location.
pub fn to_json(findings: &[Finding]) -> Value {
    findings.iter().map(Finding::to_json).collect()
}

impl Finding {
    /// Makes an error of a warning.
    pub(crate) fn harden(&mut self) {
        if self.severity == Severity::Warning {
            self.severity = Severity::Error;
        }
    }

    fn to_json(&self) -> Value {
        let mut json = Map::new();
        let mut put = |key: &str, value: Value| json.insert(key.to_owned(), value);
        put("severity", serde_json::json!(self.severity));
        put("object", Value::from(self.object.as_str()));
        put("field", Value::from(self.field.as_str()));
        put("message", Value::from(self.message.as_str()));
        if let Some(location) = &self.location {
            put("file", Value::from(&*location.file));
            if let Some(line) = location.line {
                put("line", Value::from(line));
            }
            if let Some(column) = location.column {
                put("column", Value::from(column));
            }
        }
        Value::Object(json)
    }
}

impl From<Problem> for Finding {
    fn from(problem: Problem) -> Self {
        let Problem { severity, location, object, field, message } = problem;
        Self { severity, object, field: field.into_string(), message, location }
    }
}

/// Kinds without effect on a plan: no dialect reads them, their availability is not defined, and
/// no placement among the objects could carry them to a cluster. One warning for each kind, at
/// its first object.
fn unused_kinds(manifests: &Manifests) -> Vec<Problem> {
    if manifests.world.iter().any(|object| carries_any_kind(object.kind())) {
        return Vec::new();
    }
    let mut unused: BTreeMap<&GroupKind, (usize, Option<SourceLocation>)> = BTreeMap::new();
    for object in manifests.world.iter().filter(|object| !is_used(object)) {
        let location = || manifests.origin(object.key()).map(SourceLocation::from);
        unused.entry(object.kind()).or_insert_with(|| (0, location())).0 += 1;
    }
    let warnings = unused.into_iter().map(|(kind, (count, location))| {
        let objects = if count == 1 { "object" } else { "objects" };
        let meant = kinds::meant(kind)
            .map_or_else(String::new, |meant| format!("; did you mean {:?}?", meant.to_string()));
        Problem::warning(
            location,
            format!("ignored {count} {kind} {objects}: no dialect uses this kind{meant}"),
        )
    });
    warnings.collect()
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
