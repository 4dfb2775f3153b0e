//! Override snapshots: one per change of an override's spec.

use convoy_api::Object;
use serde_json::json;
use smol_str::format_smolstr;

use crate::dialect::fleet::decide::override_history::OverrideHistory;
use crate::dialect::fleet::names;
use crate::finalizer;
use crate::hash::content as hash;
use crate::step::{Action, Propagation, Verb, Why};

/// How many snapshots of one override are kept.
const HISTORY: usize = 10;

pub(crate) fn actions(rollout: &Object, history: &OverrideHistory<'_>) -> Vec<Action> {
    if rollout.is_deleting() { withdrawn(rollout, history) } else { recorded(rollout, history) }
}

fn recorded(rollout: &Object, history: &OverrideHistory<'_>) -> Vec<Action> {
    let why = Why::new("OverrideGuarded", "its snapshots are to be deleted with it");
    let mut actions: Vec<Action> =
        finalizer::added(rollout, &[names::OVERRIDE_CLEANUP], why).into_iter().collect();
    // The new one comes before the old ones go: of two that are in force the newest counts, and
    // with none the placements would roll out what nobody has overridden.
    let (newest, old) = match (history.next, history.snapshots.split_last()) {
        (None, Some((newest, old))) => (Some(newest), old),
        _ => (None, &history.snapshots[..]),
    };
    let newest = newest.filter(|newest| !names::is_latest(newest));
    actions.extend(newest.map(|newest| labelled(newest, "true")));
    actions.extend(history.next.map(|next| created(rollout, next)));
    let latest = old.iter().filter(|object| names::is_latest(object));
    actions.extend(latest.map(|object| labelled(object, "false")));
    let surplus = (old.len() + 1).saturating_sub(HISTORY);
    actions.extend(old.iter().take(surplus).map(|object| {
        let why = Why::new("HistoryLimit", format!("{HISTORY} snapshots are kept"));
        Action::delete(Verb::Delete, object, Propagation::Background, why)
    }));
    actions
}

fn labelled(object: &Object, latest: &str) -> Action {
    let patch = json!({"metadata": {"labels": {names::LATEST: latest}}});
    let why = Why::new("OverrideChanged", "exactly the newest snapshot is in force");
    Action::patch(Verb::Record, object, patch, why)
}

fn created(rollout: &Object, index: u32) -> Action {
    let kind = names::override_snapshot_kind(rollout.kind());
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

fn withdrawn(rollout: &Object, history: &OverrideHistory<'_>) -> Vec<Action> {
    let message = format!("override {} is being deleted", rollout.name());
    let why = || Why::new("OverrideDeleted", message.clone());
    let live = history.snapshots.iter().filter(|object| !object.is_deleting());
    let mut actions: Vec<Action> = live
        .map(|object| Action::delete(Verb::Delete, object, Propagation::Background, why()))
        .collect();
    if history.snapshots.is_empty() {
        actions.extend(finalizer::removed(rollout, &[names::OVERRIDE_CLEANUP], why()));
    }
    actions
}
