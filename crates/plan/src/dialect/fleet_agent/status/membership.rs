//! What the agent says about its member.

use convoy_api::Object;
use convoy_api::object::member::list;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::condition::{self, Condition, instant};
use crate::dialect::fleet_agent::decide::membership::{Membership, Report};
use crate::dialect::fleet_agent::names::{
    HEALTHY, JOINED, NAMESPACES_COLLECTED, NODE_COUNT, PROPERTIES_COLLECTED, PROVIDER_STARTED,
};
use crate::dialect::fleet_agent::read::internal::{Usage, agent};
use crate::dialect::fleet_agent::read::provider::PropertyProvider;
use crate::resources::Amounts;

/// The status of the `InternalMemberCluster`. None: it reads so already.
pub(crate) fn status(
    internal: &Object,
    membership: &Membership,
    provider: Option<&PropertyProvider>,
    now: Timestamp,
) -> Option<Value> {
    let mut status = internal.status().as_object().cloned().unwrap_or_default();
    let mut told = agent(internal).as_object().cloned().unwrap_or_default();
    let mut conditions = list(agent(internal), "conditions").to_vec();
    let mut say = |kind: &str, status: &'static str, reason: &str, message: &str| {
        let wanted =
            Condition::new(kind, status, reason, message).of_generation(internal.generation());
        condition::set(&mut conditions, &wanted, now);
    };
    match membership {
        Membership::Reporting(report) => {
            say(JOINED, "True", "InternalMemberClusterJoined", "the agent serves the cluster");
            say(HEALTHY, "True", "InternalMemberClusterHealthy", "the API server answers");
            told.insert("lastReceivedHeartbeat".into(), instant(now));
            status.insert("properties".into(), properties(&report.usage, provider, now));
            status.insert("resourceUsage".into(), resources(&report.usage, now));
            if provider.is_some() {
                collected(internal, &mut status, report, now);
            }
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

/// What the property provider says: that it works, and the namespaces of the member.
fn collected(internal: &Object, status: &mut Map<String, Value>, report: &Report, now: Timestamp) {
    let mut conditions = list(internal.status(), "conditions").to_vec();
    let mut say = |kind: &str, status: &'static str, reason: &str, message: &str| {
        let wanted =
            Condition::new(kind, status, reason, message).of_generation(internal.generation());
        condition::set(&mut conditions, &wanted, now);
    };
    say(PROVIDER_STARTED, "True", "Started", "the property provider runs in the agent");
    say(PROPERTIES_COLLECTED, "True", "PropertiesCollected", "the properties are up to date");
    match &report.namespaces {
        Some(namespaces) if namespaces.is_cut => {
            let message = format!(
                "only the oldest {} namespaces of the cluster are reported",
                namespaces.works.len()
            );
            say(NAMESPACES_COLLECTED, "False", "Degraded", &message);
        }
        Some(_) => {
            let message = "all namespaces of the cluster are reported";
            say(NAMESPACES_COLLECTED, "True", "Succeeded", message);
        }
        None => {}
    }
    if let Some(namespaces) = &report.namespaces {
        status.insert("namespaces".into(), json!(namespaces.works));
    }
    status.insert("conditions".into(), Value::Array(conditions));
}

/// The number of nodes, and what the property provider knows.
fn properties(usage: &Usage, provider: Option<&PropertyProvider>, now: Timestamp) -> Value {
    let nodes = usage.nodes.to_string();
    let known = provider.into_iter().flat_map(PropertyProvider::properties);
    let all = std::iter::once((NODE_COUNT, nodes.as_str())).chain(known);
    let told = |value: &str| json!({"value": value, "observationTime": instant(now)});
    all.map(|(name, value)| (name.to_owned(), told(value))).collect::<Map<_, _>>().into()
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
