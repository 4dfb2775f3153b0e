//! A placement never disturbs more available clusters than maxUnavailable allows, and never binds
//! more clusters than maxSurge allows.

use std::collections::BTreeSet;

use convoy_api::object::meta::timestamp;
use convoy_api::{GroupKind, Object};
use convoy_plan::budget::{IntOrPercent, Rounding};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::resolved;
use crate::{Finding, Guarantee, Subject};

const BINDING: GroupKind =
    GroupKind::new("placement.kubernetes-fleet.io", "ClusterResourceBinding");
const TRACKED_BY: &str = "kubernetes-fleet.io/parent-CRP";
const UNTRACKABLE: [&str; 2] = ["NotAllWorkAreAvailabilityTrackable", "WorkNotTrackable"];

pub(super) fn over(subject: &Subject<'_>) -> Option<Finding> {
    let placement = subject.world.get(&subject.step.rollout)?;
    let strategy = placement.spec().get("strategy").unwrap_or(&Value::Null);
    let external = strategy.get("type").and_then(Value::as_str) == Some("External");
    if placement.kind().kind != "ClusterResourcePlacement" || external {
        return None;
    }
    let of_placement = |binding: &&Object| binding.label(TRACKED_BY) == Some(placement.name());
    let bindings: Vec<&Object> = subject.world.of(&BINDING).filter(of_placement).collect();
    let rolling = strategy.get("rollingUpdate").unwrap_or(&Value::Null);
    let period = rolling.get("unavailablePeriodSeconds").and_then(Value::as_i64).unwrap_or(60);
    let now = subject.plan.now;
    let ready: BTreeSet<&str> = bindings
        .iter()
        .filter(|binding| is_ready(binding, now, period))
        .map(|binding| binding.name().as_str())
        .collect();
    let leaving = bindings.iter().filter(|binding| binding.is_deleting());
    let leaving = leaving.filter(|binding| ready.contains(binding.name().as_str())).count();
    let target = target(placement, &bindings);
    if target == 0 {
        return None;
    }
    let unavailable =
        resolved(rolling.get("maxUnavailable"), IntOrPercent::Percent(25), target, Rounding::Up)
            .max(1);
    let picked = named(subject, "remove").chain(named(subject, "roll"));
    let disturbed = picked.filter(|name| ready.contains(name)).collect::<BTreeSet<_>>().len();
    let room = (ready.len() - leaving).saturating_sub(target.saturating_sub(unavailable) as usize);
    (disturbed > room).then(|| {
        let message = format!(
            "disturbs {disturbed} of {} available clusters (wanted: {target}, maxUnavailable: {unavailable})",
            ready.len()
        );
        subject.finding(Guarantee::G1, message)
    })
}

fn named<'s>(subject: &Subject<'s>, key: &str) -> impl Iterator<Item = &'s str> {
    let names = subject.step.decision.get(key).and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

/// Number of clusters that the placement wants.
fn target(placement: &Object, bindings: &[&Object]) -> u32 {
    let policy = placement.spec().get("policy").unwrap_or(&Value::Null);
    let count = match policy.get("placementType").and_then(Value::as_str) {
        Some("PickN") => policy.get("numberOfClusters").and_then(Value::as_u64).unwrap_or(0),
        Some("PickFixed") => {
            policy.get("clusterNames").and_then(Value::as_array).map_or(0, Vec::len) as u64
        }
        _ => {
            let wanted = |binding: &&&Object| matches!(state(binding), "Scheduled" | "Bound");
            bindings.iter().filter(wanted).count() as u64
        }
    };
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn state(binding: &Object) -> &str {
    binding.spec().get("state").and_then(Value::as_str).unwrap_or_default()
}

/// Whether a binding is available: the status of its current generation says so, for long enough if
/// availability cannot be tracked. Scheduled bindings are not available yet.
fn is_ready(binding: &Object, now: Timestamp, period_secs: i64) -> bool {
    let current = |kind: &str| {
        let condition = binding.condition(kind)?;
        let observed = condition.get("observedGeneration").and_then(Value::as_i64).unwrap_or(0);
        (observed == binding.generation() && condition.get("status")?.as_str()? == "True")
            .then_some(condition)
    };
    if state(binding) == "Scheduled" {
        return false;
    }
    if current("DiffReported").is_some() {
        return true;
    }
    let Some(available) = current("Available") else { return false };
    let reason = available.get("reason").and_then(Value::as_str).unwrap_or_default();
    let since = timestamp(available.get("lastTransitionTime"));
    let long_enough = since
        .is_some_and(|since| now.duration_since(since) > SignedDuration::from_secs(period_secs));
    !UNTRACKABLE.contains(&reason) || long_enough
}
