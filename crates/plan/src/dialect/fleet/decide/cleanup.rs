//! The end of a placement: its bindings go, then its snapshots, then its finalizers.

use convoy_api::Object;
use serde_json::json;

use crate::dialect::fleet::names::{self, Family};
use crate::dialect::fleet::read::placement::Placement;
use crate::dialect::fleet::report::Part;
use crate::dialect::fleet::write::schedule::{released, without_finalizer};
use crate::gate::Permit;
use crate::snapshot::Snapshot;
use crate::step::{Action, Propagation, Verb, Verdict, Why};

/// What a placement that is being deleted still has to do.
pub fn part(snapshot: &Snapshot<'_>, placement: &Placement<'_>) -> Part {
    let why = || Why::new("PlacementDeleted", format!("placement {} goes", placement.name()));
    let owned = |objects: &[&'_ Object]| -> Vec<Object> {
        objects
            .iter()
            .filter(|object| placement.owns(object))
            .map(|object| (*object).clone())
            .collect()
    };
    let bindings = owned(snapshot.of(&placement.binding_kind()));
    let mut snapshots = owned(snapshot.of(&placement.family.policy_snapshot()));
    snapshots.extend(owned(snapshot.of(&placement.family.resource_snapshot())));
    if placement.family == Family::Cluster {
        let copies = snapshot.of(&names::PLACEMENT_STATUS).iter();
        let copies = copies.filter(|copy| copy.name() == placement.name());
        snapshots.extend(copies.map(|copy| (*copy).clone()));
    }
    let mut actions: Vec<Action> = bindings.iter().filter_map(released_when_deleting).collect();
    let live = bindings.iter().chain(&snapshots).filter(|object| !object.is_deleting());
    actions.extend(live.map(|object| {
        Action::delete(Verb::Remove(Permit::unchecked()), object, Propagation::Background, why())
    }));
    let mut done = Vec::new();
    if bindings.is_empty() {
        done.push(names::SCHEDULER_CLEANUP);
    }
    if snapshots.is_empty() {
        done.push(names::PLACEMENT_CLEANUP);
    }
    actions.extend(without(placement.object, &done));
    Part { actions, verdict: Some(Verdict::Moving), ..Part::default() }
}

/// Adds the finalizers that make the clean-up happen.
pub fn guarded(placement: &Placement<'_>) -> Option<Action> {
    let object = placement.object;
    let missing: Vec<&str> = [names::PLACEMENT_CLEANUP, names::SCHEDULER_CLEANUP]
        .into_iter()
        .filter(|finalizer| !object.has_finalizer(finalizer))
        .collect();
    if missing.is_empty() {
        return None;
    }
    let present = object.metadata().get("finalizers").and_then(|list| list.as_array());
    let mut finalizers = present.cloned().unwrap_or_default();
    finalizers.extend(missing.into_iter().map(|finalizer| json!(finalizer)));
    let patch = json!({"metadata": {"finalizers": finalizers}});
    let why = Why::new("PlacementGuarded", "its bindings and snapshots are to go with it");
    Some(Action::patch(Verb::Record, object, patch, why))
}

fn released_when_deleting(binding: &Object) -> Option<Action> {
    if binding.is_deleting() { released(binding) } else { None }
}

fn without(object: &Object, finalizers: &[&str]) -> Option<Action> {
    let mut rest = object.clone();
    for finalizer in finalizers {
        if let Some(patch) = without_finalizer(&rest, finalizer) {
            let mut raw = rest.raw().clone();
            raw["metadata"]["finalizers"] = patch["metadata"]["finalizers"].clone();
            rest = rest.with_raw(raw);
        }
    }
    let (before, after) = (object.metadata().get("finalizers"), rest.metadata().get("finalizers"));
    let why = Why::new("PlacementCleaned", "nothing of it is left");
    let patch = json!({"metadata": {"finalizers": after}});
    (before != after).then(|| Action::patch(Verb::Release, object, patch, why))
}
