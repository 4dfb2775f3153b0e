//! Finalizers: what keeps an object until what belongs to it is gone.

use convoy_api::Object;
use convoy_api::object::member::list;
use serde_json::Value;

use crate::merge_patch::nested;
use crate::step::{Action, Verb, Why};

/// The list of finalizers with `wanted` added; None: they are all there.
pub(crate) fn with(object: &Object, wanted: &[&str]) -> Option<Value> {
    let missing = wanted.iter().filter(|finalizer| !object.has_finalizer(finalizer));
    let missing: Vec<Value> = missing.map(|finalizer| (*finalizer).into()).collect();
    let present = list(object.metadata(), "finalizers").iter().cloned();
    (!missing.is_empty()).then(|| present.chain(missing).collect())
}

/// The list of finalizers without `unwanted`; None: none of them is there.
pub(crate) fn without(object: &Object, unwanted: &[&str]) -> Option<Value> {
    let present = list(object.metadata(), "finalizers");
    let stays = |entry: &&Value| !entry.as_str().is_some_and(|it| unwanted.contains(&it));
    let rest: Vec<Value> = present.iter().filter(stays).cloned().collect();
    (rest.len() < present.len()).then_some(Value::Array(rest))
}

/// Adds the finalizers that are missing.
pub(crate) fn added(object: &Object, wanted: &[&str], why: Why) -> Option<Action> {
    let patch = nested(&["metadata", "finalizers"], with(object, wanted)?);
    Some(Action::patch(Verb::Record, object, patch, why))
}

/// Takes finalizers off; None: none of them is there.
pub(crate) fn removed(object: &Object, unwanted: &[&str], why: Why) -> Option<Action> {
    let patch = nested(&["metadata", "finalizers"], without(object, unwanted)?);
    Some(Action::patch(Verb::Release, object, patch, why))
}
