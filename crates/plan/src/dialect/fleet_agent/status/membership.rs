//! What the agent says about its member.

use convoy_api::Object;
use convoy_api::object::member::list;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::condition::{self, Condition, instant};
use crate::dialect::fleet_agent::decide::membership::Membership;
use crate::dialect::fleet_agent::names::{HEALTHY, JOINED, NODE_COUNT};
use crate::dialect::fleet_agent::read::internal::{Usage, agent};
use crate::resources::Amounts;

/// The status of the `InternalMemberCluster`. None: it reads so already.
pub(crate) fn status(internal: &Object, membership: &Membership, now: Timestamp) -> Option<Value> {
    let mut status = internal.status().as_object().cloned().unwrap_or_default();
    let mut told = agent(internal).as_object().cloned().unwrap_or_default();
    let mut conditions = list(agent(internal), "conditions").to_vec();
    let mut say = |kind: &str, status: &'static str, reason: &str, message: &str| {
        let wanted =
            Condition::new(kind, status, reason, message).of_generation(internal.generation());
        condition::set(&mut conditions, &wanted, now);
    };
    match membership {
        Membership::Reporting(usage) => {
            say(JOINED, "True", "InternalMemberClusterJoined", "the agent serves the cluster");
            say(HEALTHY, "True", "InternalMemberClusterHealthy", "the API server answers");
            told.insert("lastReceivedHeartbeat".into(), instant(now));
            let count = json!({"value": usage.nodes.to_string(), "observationTime": instant(now)});
            status.insert("properties".into(), json!({NODE_COUNT: count}));
            status.insert("resourceUsage".into(), resources(usage, now));
        }
        Membership::Left => {
            say(JOINED, "False", "InternalMemberClusterLeft", "the agent has let its Works go");
        }
        Membership::Unasked | Membership::Quiet { .. } | Membership::Leaving { .. } => return None,
    }
    told.insert("type".into(), json!("MemberAgent"));
    told.insert("conditions".into(), Value::Array(conditions));
    let others = list(internal.status(), "agentStatus").iter();
    let others = others.filter(|entry| entry["type"] != json!("MemberAgent")).cloned();
    let agents: Vec<Value> = std::iter::once(Value::Object(told)).chain(others).collect();
    status.insert("agentStatus".into(), Value::Array(agents));
    let status = Value::Object(status);
    (status != *internal.status()).then_some(status)
}

fn resources(usage: &Usage, now: Timestamp) -> Value {
    json!({
        "capacity": amounts(&usage.capacity),
        "allocatable": amounts(&usage.allocatable),
        "available": amounts(&usage.available),
        "observationTime": instant(now),
    })
}

/// Cpu and memory as quantities.
fn amounts(amounts: &Amounts) -> Value {
    let cpu = match amounts.cpu % 1000 {
        0 => (amounts.cpu / 1000).to_string(),
        _ => format!("{}m", amounts.cpu),
    };
    let memory = match amounts.memory % 1024 {
        0 if amounts.memory > 0 => format!("{}Ki", amounts.memory / 1024),
        _ => amounts.memory.to_string(),
    };
    json!({"cpu": cpu, "memory": memory})
}
