//! Finalizers: what keeps an object until what belongs to it is gone.

use convoy_api::Object;
use serde_json::{Value, json};

use crate::dialect::fleet::read::placement::list;
use crate::step::{Action, Verb, Why};

/// The list of finalizers with `wanted` added; None: they are all there.
pub(crate) fn with(object: &Object, wanted: &[&str]) -> Option<Value> {
    let missing: Vec<Value> = wanted
        .iter()
        .filter(|finalizer| !object.has_finalizer(finalizer))
        .map(|finalizer| json!(finalizer))
        .collect();
    let present = list(object.metadata(), "finalizers").iter().cloned();
    (!missing.is_empty()).then(|| present.chain(missing).collect())
}

/// Adds the finalizers that are missing.
pub(crate) fn added(object: &Object, wanted: &[&str], why: Why) -> Option<Action> {
    let patch = json!({"metadata": {"finalizers": with(object, wanted)?}});
    Some(Action::patch(Verb::Record, object, patch, why))
}

/// Takes finalizers off; None: none of them is there.
pub(crate) fn removed(object: &Object, unwanted: &[&str], why: Why) -> Option<Action> {
    let present = list(object.metadata(), "finalizers");
    let stays = |entry: &&Value| !entry.as_str().is_some_and(|it| unwanted.contains(&it));
    let rest: Vec<&Value> = present.iter().filter(stays).collect();
    let patch = json!({"metadata": {"finalizers": rest}});
    (rest.len() < present.len()).then(|| Action::patch(Verb::Release, object, patch, why))
}
