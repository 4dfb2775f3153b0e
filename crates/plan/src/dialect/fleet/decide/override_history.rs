//! Overrides are rolled out as snapshots too: every change of a spec makes a new one, and the
//! newest is in force.

use convoy_api::{GroupKind, Object};
use serde_json::{Value, json};
use smol_str::format_smolstr;

use crate::dialect::fleet::names::{self, DIALECT};
use crate::dialect::fleet::read::hash;
use crate::snapshot::Snapshot;
use crate::step::{Action, Propagation, Step, Verb, Verdict, Why};

/// How many snapshots of one override are kept.
const HISTORY: usize = 10;

/// The kind of an override's snapshots.
pub fn snapshot_kind(rollout: &Object) -> GroupKind {
    if *rollout.kind() == names::CLUSTER_OVERRIDE {
        names::CLUSTER_OVERRIDE_SNAPSHOT
    } else {
        names::OVERRIDE_SNAPSHOT
    }
}

/// What a `ClusterResourceOverride` or `ResourceOverride` needs next.
pub fn step(snapshot: &Snapshot<'_>) -> Step {
    let rollout = snapshot.rollout();
    let kind = snapshot_kind(rollout);
    let index = |object: &&Object| names::index(object, names::OVERRIDE_INDEX).unwrap_or(0);
    let mut line: Vec<&Object> = snapshot
        .of(&kind)
        .iter()
        .copied()
        .filter(|object| object.label(names::PARENT_OVERRIDE) == Some(rollout.name().as_str()))
        .collect();
    line.sort_by_key(index);
    let actions = if rollout.is_deleting() {
        withdrawn(rollout, &line)
    } else {
        let next = line.last().map_or(0, |last| index(last).saturating_add(1));
        recorded(rollout, &line, next)
    };
    let verdict = if actions.is_empty() { Verdict::Done } else { Verdict::Moving };
    let mut step = Step::new(DIALECT, rollout, verdict);
    step.actions = actions;
    step
}

fn recorded(rollout: &Object, line: &[&Object], next: u32) -> Vec<Action> {
    let mut actions = Vec::new();
    if !rollout.has_finalizer(names::OVERRIDE_CLEANUP) {
        let present = rollout.metadata().get("finalizers").and_then(Value::as_array);
        let mut finalizers = present.cloned().unwrap_or_default();
        finalizers.push(json!(names::OVERRIDE_CLEANUP));
        let patch = json!({"metadata": {"finalizers": finalizers}});
        let why = Why::new("OverrideGuarded", "its snapshots are to go with it");
        actions.push(Action::patch(Verb::Record, rollout, patch, why));
    }
    if let Some(newest) = line.last()
        && newest.spec().get("overrideSpec") == Some(rollout.spec())
    {
        if !names::is_latest(newest) {
            actions.push(labelled(newest, "true"));
        }
        return actions;
    }
    let latest = line.iter().filter(|object| names::is_latest(object));
    actions.extend(latest.map(|object| labelled(object, "false")));
    let surplus = (line.len() + 1).saturating_sub(HISTORY);
    let why = || Why::new("HistoryLimit", format!("{HISTORY} snapshots are kept"));
    actions.extend(
        line.iter()
            .take(surplus)
            .map(|object| Action::delete(Verb::Delete, object, Propagation::Background, why())),
    );
    actions.push(created(rollout, next));
    actions
}

fn labelled(object: &Object, latest: &str) -> Action {
    let patch = json!({"metadata": {"labels": {names::LATEST: latest}}});
    let why = Why::new("OverrideChanged", "exactly the newest snapshot is in force");
    Action::patch(Verb::Record, object, patch, why)
}

fn created(rollout: &Object, index: u32) -> Action {
    let kind = snapshot_kind(rollout);
    let namespace = rollout.namespace();
    let name = format_smolstr!("{}-{index}", rollout.name());
    let mut metadata = json!({"name": name, "labels": {
        names::PARENT_OVERRIDE: rollout.name(),
        names::OVERRIDE_INDEX: index.to_string(),
        names::LATEST: "true",
    }});
    if !namespace.is_empty() {
        metadata["namespace"] = json!(namespace);
    }
    let object = json!({
        "apiVersion": format!("{}/v1beta1", names::PLACEMENT_GROUP),
        "kind": kind.kind,
        "metadata": metadata,
        "spec": {
            "overrideSpec": rollout.spec(),
            "overrideHash": hash::base64_hex(&hash::sorted(rollout.spec())),
        },
    });
    let target = rollout.key().sibling(&kind, namespace, &name);
    let why = Why::new("OverrideChanged", format!("override {} has index {index}", rollout.name()));
    Action::create(Verb::Record, target, object, why)
}

fn withdrawn(rollout: &Object, line: &[&Object]) -> Vec<Action> {
    let why = || Why::new("OverrideDeleted", format!("override {} goes", rollout.name()));
    let live = line.iter().filter(|object| !object.is_deleting());
    let mut actions: Vec<Action> = live
        .map(|object| Action::delete(Verb::Delete, object, Propagation::Background, why()))
        .collect();
    if line.is_empty() {
        let patch = crate::dialect::fleet::write::schedule::without_finalizer(
            rollout,
            names::OVERRIDE_CLEANUP,
        );
        actions.extend(patch.map(|patch| Action::patch(Verb::Release, rollout, patch, why())));
    }
    actions
}
