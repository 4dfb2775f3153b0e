//! What the hub asks of the agent, and what the agent said last.

use convoy_api::Object;
use convoy_api::object::member::{field, list, text};
use convoy_api::object::meta::timestamp;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::dialect::fleet_agent::names::JOINED;
use crate::resources::Amounts;

/// What is asked of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Join,
    Leave,
}

const DEFAULT_PERIOD_SECS: i64 = 60;

/// None: the hub has not said.
pub(crate) fn wanted(internal: &Object) -> Option<Wanted> {
    match internal.spec_text("state") {
        "Join" => Some(Wanted::Join),
        "Leave" => Some(Wanted::Leave),
        _ => None,
    }
}

/// The time between two heartbeats, up to 5 % more or less so that not all members of a fleet
/// report in the same instant; always the same for one member.
pub(crate) fn period(internal: &Object) -> SignedDuration {
    let secs = field(internal.spec(), "heartbeatPeriodSeconds").as_i64();
    let secs = secs.filter(|secs| (1..=600).contains(secs)).unwrap_or(DEFAULT_PERIOD_SECS);
    let spread: i64 = internal.name().bytes().map(i64::from).sum::<i64>() % 101 - 50;
    SignedDuration::from_millis(secs.saturating_mul(1000 + spread))
}

/// What the agent wrote about itself; null if it never did.
pub(crate) fn agent(internal: &Object) -> &Value {
    let agents = list(internal.status(), "agentStatus").iter();
    let mut own = agents.filter(|agent| text(agent, "type") == "MemberAgent");
    own.next().unwrap_or(&Value::Null)
}

pub(crate) fn heartbeat(internal: &Object) -> Option<Timestamp> {
    timestamp(agent(internal).get("lastReceivedHeartbeat"))
}

/// The status word of `Joined`, and the generation it was written for.
pub(crate) fn joined(internal: &Object) -> Option<(&str, i64)> {
    let conditions = list(agent(internal), "conditions").iter();
    let mut joined = conditions.filter(|entry| text(entry, "type") == JOINED);
    let entry = joined.next()?;
    Some((text(entry, "status"), field(entry, "observedGeneration").as_i64().unwrap_or_default()))
}

/// The resources of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) nodes: usize,
    pub(crate) capacity: Amounts,
    pub(crate) allocatable: Amounts,
    pub(crate) available: Amounts,
}

/// What the nodes have, and what the pods on them leave of it.
pub(crate) fn usage(nodes: &[&Object], pods: &[&Object]) -> Usage {
    let mut usage = Usage { nodes: nodes.len(), ..Usage::default() };
    for node in nodes {
        usage.capacity.add(&Amounts::capacity(node).unwrap_or_default());
        usage.allocatable.add(&Amounts::allocatable(node));
    }
    let mut free = usage.allocatable.clone();
    for pod in pods.iter().filter(|pod| takes_room(pod)) {
        free.subtract(&Amounts::of_pod(pod.spec()));
    }
    usage.available = Amounts::new(free.cpu.max(0), free.memory.max(0), 0, 0);
    usage
}

fn takes_room(pod: &Object) -> bool {
    let ended = ["Succeeded", "Failed"].contains(&pod.status_text("phase"));
    !pod.spec_text("nodeName").is_empty() && !ended
}
