//! Services: addresses and ports that the server hands out, and what an update may change.

mod allocate;
mod change;
mod range;
mod rules;

pub(super) use allocate::{companions, prepare_create, prepare_update};
pub(super) use rules::validate;

use serde_json::Value;

#[cfg(test)]
mod tests;

fn kind(service: &Value) -> &str {
    service["spec"]["type"].as_str().unwrap_or("ClusterIP")
}

fn needs_address(service: &Value) -> bool {
    matches!(kind(service), "ClusterIP" | "NodePort" | "LoadBalancer")
}

fn is_headless(service: &Value) -> bool {
    service["spec"]["clusterIP"] == "None"
}

fn needs_node_ports(service: &Value) -> bool {
    match kind(service) {
        "NodePort" => true,
        "LoadBalancer" => service["spec"]["allocateLoadBalancerNodePorts"] != Value::Bool(false),
        _ => false,
    }
}

fn needs_health_check(service: &Value) -> bool {
    kind(service) == "LoadBalancer" && service["spec"]["externalTrafficPolicy"] == "Local"
}

fn is_public(service: &Value) -> bool {
    let has_external =
        service["spec"]["externalIPs"].as_array().is_some_and(|list| !list.is_empty());
    match kind(service) {
        "NodePort" | "LoadBalancer" => true,
        "ClusterIP" => has_external,
        _ => false,
    }
}

fn port_number(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|number| u16::try_from(number).ok()).filter(|number| *number != 0)
}

fn is_blank(value: &Value) -> bool {
    value.as_str().is_none_or(str::is_empty)
}
