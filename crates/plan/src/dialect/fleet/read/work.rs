//! Works: which binding they were made for, and what the member says about them.

use convoy_api::{Object, ObjectKey};
use serde_json::Value;

use crate::dialect::fleet::names::{Family, PARENT_BINDING, PARENT_NAMESPACE, WORK_CLEANUP};
use crate::dialect::fleet::read::binding::{Binding, State};
use crate::dialect::fleet::read::placement::{field, text};

/// What one Work says about one matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WorkReport {
    Yes,
    /// Yes, as far as can be told.
    YesUntracked,
    /// Nothing yet, for its current generation.
    Nothing,
    No,
}

/// Reasons of a Work that is available only because nothing more can be told.
const UNTRACKED: [&str; 2] = ["WorkNotTrackable", "SomeManifestsAreNotAvailabilityTrackable"];

/// The binding that a Work was made for.
pub(crate) fn binding_of(work: &Object) -> Option<ObjectKey> {
    let name = work.label(PARENT_BINDING)?;
    let namespace = work.label(PARENT_NAMESPACE).unwrap_or_default();
    let family = if namespace.is_empty() { Family::Cluster } else { Family::Namespaced };
    Some(work.key().sibling(&family.binding(), namespace, name))
}

/// What a Work says in its condition of a type.
pub(crate) fn report(work: &Object, kind: &str) -> WorkReport {
    let Some(condition) = work.condition(kind) else { return WorkReport::Nothing };
    let observed = condition.get("observedGeneration").and_then(Value::as_i64).unwrap_or(0);
    match text(condition, "status") {
        _ if observed != work.generation() => WorkReport::Nothing,
        "True" if UNTRACKED.contains(&text(condition, "reason")) => WorkReport::YesUntracked,
        "True" => WorkReport::Yes,
        "False" => WorkReport::No,
        _ => WorkReport::Nothing,
    }
}

/// A refusal outranks silence, and silence any good news. No Works at all is good news.
pub(crate) fn worst(works: &[&Object], kind: &str) -> WorkReport {
    works.iter().map(|work| report(work, kind)).max().unwrap_or(WorkReport::Yes)
}

/// Whether nothing is applied on the member, but only compared.
pub(crate) fn reports_differences(spec: &Value) -> bool {
    text(field(spec, "applyStrategy"), "type") == "ReportDiff"
}

/// Whether a binding's Works are this hub's to make, where the agent's side of its cluster is
/// known here. A binding that merely lies in a bag of objects is left alone.
pub(crate) fn is_generated(binding: &Object) -> bool {
    let Some(read) = Binding::read(binding) else { return false };
    if read.is_deleting() {
        return binding.has_finalizer(WORK_CLEANUP);
    }
    read.state != State::Scheduled
}
