//! A Deployment never has more replicas than maxSurge allows, and never removes available replicas
//! that maxUnavailable requires.

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::kinds::REPLICA_SET;
use convoy_plan::budget::{IntOrPercent, Rounding};
use convoy_plan::{Action, Write};
use serde_json::Value;

use super::resolved;
use crate::{Finding, Guarantee, Subject};

const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";

pub(super) fn over(subject: &Subject<'_>) -> Option<Finding> {
    let deployment = subject.world.get(&subject.step.rollout)?;
    let strategy = deployment.spec().get("strategy").unwrap_or(&Value::Null);
    let rolling = strategy.get("type").and_then(Value::as_str) != Some("Recreate");
    if deployment.kind().kind != "Deployment" || !rolling || deployment.is_deleting() {
        return None;
    }
    let sets = subject.world.in_namespace(&REPLICA_SET, deployment.namespace());
    let ours =
        |set: &&Object| set.controller().is_some_and(|owner| Some(owner.uid) == deployment.uid());
    let sets: BTreeMap<&str, &Object> =
        sets.filter(ours).map(|set| (set.name().as_str(), set)).collect();
    let desired = deployment.spec().get("replicas").and_then(Value::as_u64).unwrap_or(1);
    let desired = u32::try_from(desired).unwrap_or(u32::MAX);
    let scaling = sets.values().any(|set| {
        let noted = set.annotation(DESIRED).and_then(|text| text.parse().ok());
        replicas(set) > 0 && noted.is_some_and(|noted: u32| noted != desired)
    });
    let after = scaled(&sets, &subject.step.actions);
    let promise = promise(strategy, desired);
    let before: u64 = sets.values().map(|set| u64::from(replicas(set))).sum();
    let total: u64 = after.iter().map(|(_, wanted)| u64::from(*wanted)).sum();
    if total > before.max(u64::from(promise.most)) {
        let message = format!("{total} replicas, more than {}", promise.most);
        return Some(subject.finding(Guarantee::G1, message));
    }
    // A ReplicaSet that was scaled down does not count replicas that it has yet to report.
    let had: u64 = sets.values().map(|set| u64::from(available(set).min(replicas(set)))).sum();
    let kept: u64 =
        after.iter().map(|(set, wanted)| u64::from(set.map_or(0, available).min(*wanted))).sum();
    if !scaling && kept < had.min(u64::from(promise.least)) {
        let message = format!("keeps {kept} of {had} available, less than {}", promise.least);
        return Some(subject.finding(Guarantee::G1, message));
    }
    None
}

/// The bounds of a rolling Deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Promise {
    pub(crate) most: u32,
    pub(crate) least: u32,
}

/// maxSurge rounds up, maxUnavailable down; if both are 0, one pod may be unavailable.
pub(crate) fn promise(strategy: &Value, desired: u32) -> Promise {
    let field = |name: &str| strategy.get("rollingUpdate").and_then(|rolling| rolling.get(name));
    let quarter = IntOrPercent::Percent(25);
    let surge = resolved(field("maxSurge"), quarter, desired, Rounding::Up);
    let unavailable =
        resolved(field("maxUnavailable"), quarter, desired, Rounding::Down { at_least: 0 });
    let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
    Promise { most: desired.saturating_add(surge), least: desired.saturating_sub(unavailable) }
}

/// The replicas of every ReplicaSet after the actions; a new one has no object.
fn scaled<'o>(
    sets: &BTreeMap<&str, &'o Object>,
    actions: &[Action],
) -> Vec<(Option<&'o Object>, u32)> {
    let mut wanted: BTreeMap<String, (Option<&'o Object>, u32)> =
        sets.iter().map(|(name, set)| ((*name).to_owned(), (Some(*set), replicas(set)))).collect();
    for action in actions.iter().filter(|action| action.target.kind == REPLICA_SET) {
        let name = action.target.name.to_string();
        match &action.write {
            Write::Create { object } => _ = wanted.insert(name, (None, replicas_in(object))),
            Write::Delete { .. } => _ = wanted.remove(&name),
            Write::Patch { patch, .. } => {
                if let (Some(count), Some(entry)) =
                    (patch.pointer("/spec/replicas"), wanted.get_mut(&name))
                {
                    entry.1 = u32::try_from(count.as_u64().unwrap_or(0)).unwrap_or(u32::MAX);
                }
            }
            // No controller of this dialect applies on the server.
            Write::Apply { .. } | Write::Evict { .. } => {}
        }
    }
    wanted.into_values().collect()
}

fn replicas(set: &Object) -> u32 {
    replicas_in(set.raw())
}

fn replicas_in(set: &Value) -> u32 {
    let count = set.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn available(set: &Object) -> u32 {
    let count = set.status().get("availableReplicas").and_then(Value::as_u64).unwrap_or(0);
    u32::try_from(count).unwrap_or(u32::MAX)
}
