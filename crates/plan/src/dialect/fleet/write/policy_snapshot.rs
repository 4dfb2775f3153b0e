//! Policy snapshots: what brings them in line with their placement.

use convoy_api::Object;
use serde_json::{Map, Value, json};

use crate::dialect::fleet::decide::selection::policy::PolicyHistory;
use crate::dialect::fleet::names;
use crate::dialect::fleet::read::placement::Placement;
use crate::dialect::fleet::read::policy_snapshot::canonical;
use crate::hash::content as hash;
use crate::step::{Action, Propagation, Verb, Why};

pub(crate) fn actions(history: &PolicyHistory<'_>, placement: &Placement<'_>) -> Vec<Action> {
    let superseded = history.superseded.iter().map(|old| {
        let patch = json!({"metadata": {"labels": {names::LATEST: "false"}}});
        let why = Why::new("PolicySuperseded", format!("{} is in force", history.active_name));
        Action::patch(Verb::Record, old, patch, why)
    });
    let limit = placement.revision_history_limit;
    let pruned = history.pruned.iter().map(|old| {
        let why = Why::new("HistoryLimit", format!("revisionHistoryLimit is {limit}"));
        Action::delete(Verb::Delete, old, Propagation::Background, why)
    });
    let active = match history.active {
        Some(active) => refreshed(history, active),
        None => Some(created(history, placement)),
    };
    superseded.chain(pruned).chain(active).collect()
}

/// Keeps the labels and annotations of the snapshot in force up to date.
fn refreshed(history: &PolicyHistory<'_>, active: &Object) -> Option<Action> {
    let mut metadata = Map::new();
    if !names::is_latest(active) {
        metadata.insert("labels".into(), json!({names::LATEST: "true"}));
    }
    if !history.stale_annotations.is_empty() {
        metadata.insert("annotations".into(), annotations(history));
    }
    let why = Why::new("PolicyRefreshed", "the placement changed without a new policy");
    let patch = json!({"metadata": metadata});
    (!metadata.is_empty()).then(|| Action::patch(Verb::Record, active, patch, why))
}

fn annotations(history: &PolicyHistory<'_>) -> Value {
    let stale = history.stale_annotations.iter();
    Value::Object(stale.map(|(key, value)| ((*key).to_owned(), json!(value))).collect())
}

fn created(history: &PolicyHistory<'_>, placement: &Placement<'_>) -> Action {
    let kind = placement.family.policy_snapshot();
    let namespace = placement.namespace();
    let mut metadata = json!({
        "name": history.active_name,
        "labels": {
            names::PARENT: placement.name(),
            names::LATEST: "true",
            names::POLICY_INDEX: history.active_index.to_string(),
        },
        "annotations": annotations(history),
    });
    if !namespace.is_empty() {
        metadata["namespace"] = json!(namespace);
    }
    let policy = canonical(placement.policy.raw);
    let mut spec = json!({"policyHash": hash::base64_hex(&policy)});
    if !policy.is_null() {
        spec["policy"] = policy;
    }
    let object = json!({
        "apiVersion": format!("{}/v1beta1", names::PLACEMENT_GROUP),
        "kind": kind.kind,
        "metadata": metadata,
        "spec": spec,
    });
    let target = placement.object.key().sibling(&kind, namespace, &history.active_name);
    let why = Why::new("PolicyChanged", format!("policy {} is new", history.active_index));
    Action::create(Verb::Record, target, object, why)
}
