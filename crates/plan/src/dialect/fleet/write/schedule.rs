//! The writes that carry out what scheduling came to.

use std::fmt::Write as _;

use convoy_api::Object;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::count;
use crate::dialect::fleet::decide::schedule::Schedule;
use crate::dialect::fleet::decide::schedule::cycle::{Change, Selected};
use crate::dialect::fleet::names;
use crate::dialect::fleet::read::binding::{previous_state, state_of, target};
use crate::dialect::fleet::read::placement::Placement;
use crate::dialect::fleet::status::policy::decision;
use crate::finalizer;
use crate::snapshot::Snapshot;
use crate::step::{Action, Verb, Why, Write};

/// How many bindings of the placement these actions make.
pub(crate) fn new_bindings(actions: &[Action], placement: &Placement<'_>) -> u32 {
    let kind = placement.binding_kind();
    let is_new = |action: &&Action| {
        matches!(action.write, Write::Create { .. }) && action.target.kind == kind
    };
    count(actions.iter().filter(is_new).count())
}

/// In order: what is given up, what goes on under the active policy, what is new, what leaves.
pub(crate) fn actions(
    snapshot: &Snapshot<'_>,
    placement: &Placement<'_>,
    schedule: &Schedule<'_>,
    policy: &str,
) -> Vec<Action> {
    let Schedule { classes, picks } = schedule;
    let mut actions: Vec<Action> = picks.dropped.iter().map(|binding| dropped(binding)).collect();
    for (cluster, selected) in &picks.selected {
        match selected.change {
            Change::Keep(_) => {}
            Change::Point(binding) => {
                let state = state_of(binding);
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
    let why = Why::new("BindingDeleted", "the scheduler has nothing left to do with it");
    finalizer::removed(binding, &[names::BINDING_CLEANUP], why)
}

fn dropped(binding: &Object) -> Action {
    let state = state_of(binding);
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

/// A name for a new binding that no other has. It is computed from what it stands for, so
/// that a repeated create is recognised; `is_taken` steers it round a predecessor that is
/// still being deleted.
fn fresh_name(placement: &Placement<'_>, cluster: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let uid = placement.object.uid().unwrap_or_default();
    let cut = |text: &str, length: usize| -> String {
        text.chars().take(length).map(|c| if c == '.' { '-' } else { c }).collect()
    };
    let stem = format!("{}-{}", cut(placement.name(), 26), cut(cluster, 27));
    let mut attempt: u32 = 0;
    loop {
        let subject =
            format!("{}/{}/{uid}/{cluster}/{attempt}", placement.namespace(), placement.name());
        let digest = Sha256::digest(subject.as_bytes());
        let mut name = stem.clone() + "-";
        for byte in &digest[..4] {
            write!(name, "{byte:02x}").expect("a String takes whatever is written");
        }
        if !is_taken(&name) {
            return name;
        }
        attempt += 1;
    }
}
