//! What a member cluster says about itself: whether it can be trusted with resources, and the
//! properties it reports.

use convoy_api::Object;
use convoy_api::object::meta::timestamp;
use convoy_api::text::Quantity;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use crate::dialect::fleet::names::{NAMESPACES_COLLECTED, RESOURCE_PROPERTY_PREFIX};
use crate::dialect::fleet::read::placement::{field, list, text};
use crate::taint::Taint;

/// How long a silent or unhealthy cluster is given the benefit of the doubt.
const PATIENCE: SignedDuration = SignedDuration::from_mins(5);

/// The shortest time there is.
const INSTANT: SignedDuration = SignedDuration::from_nanos(1);

/// The field of an agent's status with the instant at which it was heard.
pub(super) const HEARTBEAT: &str = "lastReceivedHeartbeat";

/// Why a cluster may not be given resources. None: it may.
pub(crate) fn ineligibility(cluster: &Object, now: Timestamp) -> Option<&'static str> {
    if cluster.is_deleting() {
        return Some("cluster is leaving");
    }
    let Some(agent) = agent(cluster) else {
        return Some("cluster has not reported through its member agent");
    };
    if is_silent(cluster, now) {
        return Some("cluster is silent: last heartbeat is more than 5m old");
    }
    let condition = |kind: &str| {
        list(agent, "conditions").iter().find(|condition| text(condition, "type") == kind)
    };
    if condition("Joined").is_none_or(|joined| text(joined, "status") != "True") {
        return Some("cluster has not joined");
    }
    let Some(health) = condition("Healthy") else {
        return Some("cluster has not reported its health");
    };
    let since = timestamp(health.get("lastTransitionTime"));
    let recent = since.is_some_and(|at| now.duration_since(at) <= PATIENCE);
    let healthy = text(health, "status") == "True" || recent;
    (!healthy).then_some("cluster has been unhealthy for more than 5m")
}

/// What the member agent says about itself.
pub(crate) fn agent(cluster: &Object) -> Option<&Value> {
    let agents = list(cluster.status(), "agentStatus");
    agents.iter().find(|agent| text(agent, "type") == "MemberAgent")
}

/// The cluster manager that keeps a ClusterProfile.
pub(crate) fn profile_manager(profile: &Object) -> &str {
    text(field(profile.spec(), "clusterManager"), "name")
}

/// When the member agent was heard last.
pub(crate) fn heartbeat(cluster: &Object) -> Option<Timestamp> {
    timestamp(agent(cluster)?.get(HEARTBEAT))
}

/// Whether the member agent has not been heard for too long.
pub(crate) fn is_silent(cluster: &Object, now: Timestamp) -> bool {
    heartbeat(cluster).is_none_or(|at| now.duration_since(at) > PATIENCE)
}

/// When a cluster that is trusted now no longer is, should its agent say nothing more. Heartbeats
/// make nobody decide again, so whoever tells why it was not picked looks again then.
pub(crate) fn trusted_until(cluster: &Object, now: Timestamp) -> Option<Timestamp> {
    let health =
        list(agent(cluster)?, "conditions").iter().find(|it| text(it, "type") == "Healthy");
    let unhealthy = health.filter(|health| text(health, "status") != "True");
    let since = unhealthy.and_then(|health| timestamp(health.get("lastTransitionTime")));
    // Strictly longer than that.
    let end = |since: Timestamp| since.checked_add(PATIENCE).ok()?.checked_add(INSTANT).ok();
    [heartbeat(cluster), since].into_iter().flatten().filter_map(end).filter(|at| *at > now).min()
}

/// The value of a property, if the cluster reports it and it is a quantity.
pub(crate) fn property(cluster: &Object, name: &str) -> Option<Quantity> {
    let value = match resource_property(name) {
        Some((class, resource)) => {
            let usage = field(cluster.status(), "resourceUsage");
            field(usage, class).get(resource)?
        }
        None => field(cluster.status(), "properties").get(name)?.get("value")?,
    };
    quantity(value)
}

/// The member of `resourceUsage` and the resource that a computed property stands for.
pub(crate) fn resource_property(name: &str) -> Option<(&'static str, &str)> {
    let rest = name.strip_prefix(RESOURCE_PROPERTY_PREFIX)?;
    let (class, resource) = rest.split_once('-')?;
    let class = match class {
        "total" => "capacity",
        "allocatable" => "allocatable",
        "available" => "available",
        _ => return None,
    };
    (!resource.is_empty()).then_some((class, resource))
}

fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

/// `Joined` over all agents: Unknown until the member agent reported, and while they differ.
pub(crate) fn joined(internal: Option<&Object>) -> &'static str {
    let agents = internal.map_or(&[][..], |internal| list(internal.status(), "agentStatus"));
    let said = |agent: &Value| {
        let conditions = list(agent, "conditions").iter();
        let mut joined = conditions.filter(|condition| text(condition, "type") == "Joined");
        joined.next().map_or("Unknown", |condition| match text(condition, "status") {
            "True" => "True",
            "False" => "False",
            _ => "Unknown",
        })
    };
    if !agents.iter().any(|agent| text(agent, "type") == "MemberAgent") {
        return "Unknown";
    }
    let mut words = agents.iter().map(said);
    let first = words.next().unwrap_or("Unknown");
    if words.all(|word| word == first) { first } else { "Unknown" }
}

/// Whether neither its agent nor the hub has said anything about it yet.
pub(crate) fn is_new(member: &Object) -> bool {
    field(member.status(), "conditions").is_null()
        && field(member.status(), "agentStatus").is_null()
}

/// Whether a condition of the cluster is True, and was written for its spec as it is.
pub(crate) fn holds(cluster: &Object, kind: &str) -> bool {
    cluster.condition(kind).is_some_and(|entry| {
        text(entry, "status") == "True"
            && field(entry, "observedGeneration").as_i64() == Some(cluster.generation())
    })
}

/// The namespaces that the cluster reports; None: it does not, or not reliably.
pub(crate) fn namespaces(cluster: &Object) -> Option<&Map<String, Value>> {
    let collected = cluster.condition_status(NAMESPACES_COLLECTED) == Some("True");
    field(cluster.status(), "namespaces").as_object().filter(|_| collected)
}

pub(crate) fn taints(cluster: &Object) -> Vec<Taint<'_>> {
    list(cluster.spec(), "taints").iter().map(Taint::from_value).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn properties_are_read_from_the_report_or_the_usage() {
        let cluster = Object::from_value(json!({
            "apiVersion": "cluster.kubernetes-fleet.io/v1beta1", "kind": "MemberCluster",
            "metadata": {"name": "a"},
            "status": {
                "properties": {"kubernetes-fleet.io/node-count": {"value": "4"}},
                "resourceUsage": {"capacity": {"cpu": "16"}, "available": {"cpu": "3500m"}}}}))
        .unwrap();
        let cases = [
            ("kubernetes-fleet.io/node-count", Some("4")),
            ("resources.kubernetes-fleet.io/total-cpu", Some("16")),
            ("resources.kubernetes-fleet.io/available-cpu", Some("3.5")),
            ("resources.kubernetes-fleet.io/allocatable-cpu", None),
            ("resources.kubernetes-fleet.io/other-cpu", None),
            ("kubernetes-fleet.io/none", None),
        ];
        for (name, value) in cases {
            assert_eq!(property(&cluster, name), value.map(|v| v.parse().unwrap()), "{name}");
        }
    }

    fn agent(kind: &str, joined: &str) -> Value {
        json!({"type": kind, "conditions": [{"type": "Joined", "status": joined}]})
    }

    #[test]
    fn a_cluster_has_joined_when_all_its_agents_have() {
        let internal = |agents: &[Value]| {
            Object::from_value(json!({"apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
                "kind": "InternalMemberCluster",
                "metadata": {"name": "a", "namespace": "fleet-member-a"},
                "status": {"agentStatus": agents}}))
            .unwrap()
        };
        let cases = [
            (vec![], "Unknown"),
            (vec![agent("MemberAgent", "True")], "True"),
            (vec![agent("MemberAgent", "False")], "False"),
            (vec![agent("ServiceExportImportAgent", "True")], "Unknown"),
            (
                vec![agent("MemberAgent", "True"), agent("ServiceExportImportAgent", "False")],
                "Unknown",
            ),
        ];
        for (agents, expected) in cases {
            assert_eq!(joined(Some(&internal(&agents))), expected, "{agents:?}");
        }
        assert_eq!(joined(None), "Unknown");
    }
}
