//! What a pod uses of quotas, and what its containers must say for that to be known.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use smol_str::{SmolStr, format_smolstr};

use super::amount::Amount;
use super::names::is_extended;
use super::{Usage, read};

/// A quota of one of these asks every container to say how much it needs.
const REQUIRED: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/// What a pod uses. A pod that has ended still counts as an object, and for nothing else.
pub(super) fn usage(pod: &Value, now: Timestamp) -> Usage {
    let one = Amount::of_units(1);
    let mut usage = Usage::from([(SmolStr::new("count/pods"), one)]);
    if is_live(pod, now) {
        usage.insert(SmolStr::new("pods"), one);
        named(&total(pod, "requests"), &total(pod, "limits"), &mut usage);
    }
    usage
}

/// Whether a pod still uses what it asked for: it has not ended, and its node is not so late with
/// its end that it may be lost.
pub(super) fn is_live(pod: &Value, now: Timestamp) -> bool {
    if matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded")) {
        return false;
    }
    let metadata = &pod["metadata"];
    let deletion = metadata["deletionTimestamp"].as_str().and_then(|time| time.parse().ok());
    let grace = metadata["deletionGracePeriodSeconds"].as_i64();
    let (Some(deletion), Some(grace)): (Option<Timestamp>, _) = (deletion, grace) else {
        return true;
    };
    let last = deletion.checked_add(SignedDuration::from_secs(grace)).unwrap_or(Timestamp::MAX);
    now <= last
}

/// What containers leave out that the quota's names ask for: `cpu for: a,b; memory for: a`.
pub(super) fn missing(pod: &Value, restricted: &[&SmolStr]) -> Option<String> {
    let spec = &pod["spec"];
    let has = |side: &str| spec["resources"][side].as_object().is_some_and(|map| !map.is_empty());
    if has("requests") || has("limits") {
        return None;
    }
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for container in list(spec, "containers").chain(list(spec, "initContainers")) {
        let mut given = Usage::new();
        let resources = &container["resources"];
        named(&read(&resources["requests"]), &read(&resources["limits"]), &mut given);
        for name in restricted.iter().map(|name| name.as_str()) {
            if REQUIRED.contains(&name) && !given.contains_key(name) {
                let container = container["name"].as_str().unwrap_or_default();
                missing.entry(name).or_default().insert(container);
            }
        }
    }
    let said = missing.iter().map(|(name, containers)| {
        let containers: Vec<&str> = containers.iter().copied().collect();
        format!("{name} for: {}", containers.join(","))
    });
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// Requests and limits under the names that quotas have for them.
fn named(requests: &Usage, limits: &Usage, usage: &mut Usage) {
    let is_native = |name: &str| matches!(name, "cpu" | "memory" | "ephemeral-storage");
    for (name, amount) in requests {
        if is_native(name) || name.starts_with("hugepages-") {
            usage.insert(name.clone(), *amount);
            usage.insert(format_smolstr!("requests.{name}"), *amount);
        } else if is_extended(name) {
            usage.insert(format_smolstr!("requests.{name}"), *amount);
        }
    }
    for (name, amount) in limits.iter().filter(|(name, _)| is_native(name)) {
        usage.insert(format_smolstr!("limits.{name}"), *amount);
    }
}

/// The requests or limits of a whole pod: its containers together, or the largest moment of its
/// initialization, with the overhead; what the pod itself says of a resource goes before that.
fn total(pod: &Value, side: &str) -> Usage {
    let spec = &pod["spec"];
    let amounts = |container: &Value| read(&container["resources"][side]);
    let mut running = Usage::new();
    for container in list(spec, "containers") {
        super::add(&mut running, &amounts(container));
    }
    let (mut sidecars, mut largest) = (Usage::new(), Usage::new());
    for container in list(spec, "initContainers") {
        let mut moment = sidecars.clone();
        super::add(&mut moment, &amounts(container));
        if container["restartPolicy"] == "Always" {
            super::add(&mut running, &amounts(container));
            sidecars.clone_from(&moment);
        }
        raise(&mut largest, moment);
    }
    raise(&mut running, largest);
    for (name, amount) in amounts(spec) {
        if matches!(name.as_str(), "cpu" | "memory") || name.starts_with("hugepages-") {
            running.insert(name, amount);
        }
    }
    let mut overhead = read(&spec["overhead"]);
    if side == "limits" {
        overhead.retain(|name, _| running.contains_key(name));
    }
    super::add(&mut running, &overhead);
    running
}

/// The larger of both, resource by resource.
fn raise(most: &mut Usage, other: Usage) {
    for (name, amount) in other {
        let known = most.entry(name).or_default();
        *known = amount.max(*known);
    }
}

fn list<'v>(spec: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> {
    spec.get(field).and_then(Value::as_array).into_iter().flatten()
}
