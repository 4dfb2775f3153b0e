//! The writes that carry out what scheduling came to.

use convoy_api::Object;
use serde_json::{Value, json};

use crate::dialect::fleet::decide::schedule::classes::{Classes, fresh_name, previous_state};
use crate::dialect::fleet::decide::schedule::cycle::{Change, Outcome, Selected, target};
use crate::dialect::fleet::decide::schedule::score::Score;
use crate::dialect::fleet::names;
use crate::dialect::fleet::read::placement::{Placement, text};
use crate::snapshot::Snapshot;
use crate::step::{Action, Verb, Why};

/// In order: what is given up, what goes on under the active policy, what is new, what leaves.
pub(crate) fn actions(
    snapshot: &Snapshot<'_>,
    placement: &Placement<'_>,
    classes: &Classes<'_>,
    outcome: &Outcome<'_>,
    policy: &str,
) -> Vec<Action> {
    let mut actions: Vec<Action> = outcome.dropped.iter().map(|binding| dropped(binding)).collect();
    for (cluster, selected) in &outcome.selected {
        match selected.change {
            Change::Keep(_) => {}
            Change::Point(binding) => {
                let state = text(binding.spec(), "state");
                actions.push(pointed(binding, state, selected, policy, placement));
            }
            Change::Restore(binding) => {
                let state = previous_state(binding);
                actions.push(pointed(binding, state, selected, policy, placement));
            }
            Change::Create => actions.push(created(snapshot, placement, cluster, selected, policy)),
        }
    }
    actions.extend(classes.deleting.iter().filter_map(|binding| released(binding)));
    actions
}

/// Takes the scheduler's finalizer off a binding that is being deleted.
pub(crate) fn released(binding: &Object) -> Option<Action> {
    let why = || Why::new("BindingDeleted", "the scheduler has nothing left to do with it");
    let patch = without_finalizer(binding, names::BINDING_CLEANUP)?;
    Some(Action::patch(Verb::Release, binding, patch, why()))
}

/// The merge patch that takes a finalizer off; none if it is not there.
pub(crate) fn without_finalizer(object: &Object, finalizer: &str) -> Option<Value> {
    let finalizers = object.metadata().get("finalizers")?.as_array()?;
    let rest: Vec<&Value> =
        finalizers.iter().filter(|entry| entry.as_str() != Some(finalizer)).collect();
    let changed = rest.len() < finalizers.len();
    changed.then(|| json!({"metadata": {"finalizers": rest}}))
}

/// What a binding or a policy snapshot says about a selected cluster.
pub(crate) fn decision(cluster: &str, score: Option<Score>, placement: &Placement<'_>) -> Value {
    let reason = match score {
        Some(Score { topology, affinity, .. }) => format!(
            "picked by {} with affinity score {affinity} and topology spread score {topology}",
            placement.name()
        ),
        None => format!("picked by {}", placement.name()),
    };
    let mut decision = json!({"clusterName": cluster, "selected": true, "reason": reason});
    if let Some(score) = score {
        decision["clusterScore"] = score_json(score);
    }
    decision
}

pub(crate) fn score_json(score: Score) -> Value {
    json!({"affinityScore": score.affinity, "priorityScore": score.topology})
}

fn dropped(binding: &Object) -> Action {
    let state = text(binding.spec(), "state");
    let patch = json!({
        "metadata": {"annotations": {names::PREVIOUS_STATE: state}},
        "spec": {"state": "Unscheduled"},
    });
    let message = format!("cluster {} is no longer picked", target(binding));
    Action::patch(Verb::Schedule, binding, patch, Why::new("ClusterUnscheduled", message))
}

fn pointed(
    binding: &Object,
    state: &str,
    selected: &Selected<'_>,
    policy: &str,
    placement: &Placement<'_>,
) -> Action {
    let cluster = target(binding);
    let mut decision = decision(cluster, selected.score, placement);
    if selected.score.is_none() {
        decision["clusterScore"] = Value::Null; // a merge patch leaves the old one otherwise
    }
    let mut patch = json!({"spec": {
        "state": state,
        "schedulingPolicySnapshotName": policy,
        "clusterDecision": decision,
    }});
    if binding.annotation(names::PREVIOUS_STATE).is_some() {
        patch["metadata"] = json!({"annotations": {names::PREVIOUS_STATE: null}});
    }
    let message = format!("cluster {cluster} is picked again, by policy {policy}");
    Action::patch(Verb::Schedule, binding, patch, Why::new("ClusterScheduled", message))
}

fn created(
    snapshot: &Snapshot<'_>,
    placement: &Placement<'_>,
    cluster: &str,
    selected: &Selected<'_>,
    policy: &str,
) -> Action {
    let kind = placement.binding_kind();
    let namespace = placement.namespace();
    let is_taken = |name: &str| snapshot.find(&kind, namespace, name).is_some();
    let name = fresh_name(placement, cluster, is_taken);
    let mut object = json!({
        "apiVersion": format!("{}/v1beta1", names::PLACEMENT_GROUP),
        "kind": kind.kind,
        "metadata": {
            "name": name,
            "labels": {names::PARENT: placement.name()},
            "finalizers": [names::BINDING_CLEANUP],
        },
        "spec": {
            "state": "Scheduled",
            "resourceSnapshotName": "",
            "schedulingPolicySnapshotName": policy,
            "targetCluster": cluster,
            "clusterDecision": decision(cluster, selected.score, placement),
        },
    });
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    let target = placement.object.key().sibling(&kind, namespace, &name);
    let message = format!("cluster {cluster} is picked by policy {policy}");
    Action::create(Verb::Schedule, target, object, Why::new("ClusterScheduled", message))
}
