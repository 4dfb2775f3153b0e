//! What an update of a service keeps though it does not say so, and what it gives up.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{is_blank, needs_address, needs_health_check, needs_node_ports, port_number};

/// The one address and the list of them say the same; the one that was changed wins.
pub(super) fn settle_addresses(service: &mut Value, current: &Value) {
    let (new, old) = (&mut service["spec"], &current["spec"]);
    let list_is_empty = |value: &Value| value.as_array().is_none_or(Vec::is_empty);
    if !list_is_empty(&old["clusterIPs"])
        && list_is_empty(&new["clusterIPs"])
        && old["clusterIP"] == new["clusterIP"]
    {
        new["clusterIPs"] = old["clusterIPs"].clone();
    }
    if old["clusterIP"] == new["clusterIP"] || old["clusterIPs"] != new["clusterIPs"] {
        return;
    }
    if !is_blank(&old["clusterIP"]) && is_blank(&new["clusterIP"]) {
        new["clusterIPs"] = Value::Null;
    } else {
        new["clusterIPs"] = json!([new["clusterIP"]]);
    }
}

/// What an update leaves out stays, as long as the service has a use for it.
pub(super) fn keep_allocated(service: &mut Value, current: &Value) {
    if needs_address(current) && needs_address(service) {
        for field in ["clusterIP", "clusterIPs"] {
            let is_empty = crate::kinds::at::At::root(&service["spec"][field]).is_empty();
            if is_empty && !current["spec"][field].is_null() {
                service["spec"][field] = current["spec"][field].clone();
            }
        }
    }
    if needs_node_ports(current) && needs_node_ports(service) {
        keep_node_ports(service, current);
    }
    let check = "healthCheckNodePort";
    if needs_health_check(current)
        && needs_health_check(service)
        && port_number(&service["spec"][check]).is_none()
    {
        service["spec"][check] = current["spec"][check].clone();
    }
}

fn keep_node_ports(service: &mut Value, current: &Value) {
    let old = current["spec"]["ports"].as_array().cloned().unwrap_or_default();
    let Some(ports) = service["spec"]["ports"].as_array_mut() else { return };
    let mut used: BTreeSet<u16> =
        ports.iter().filter_map(|port| port_number(&port["nodePort"])).collect();
    for port in ports.iter_mut().filter(|port| port["nodePort"].as_i64().unwrap_or(0) == 0) {
        let name = |port: &Value| port["name"].as_str().unwrap_or_default().to_owned();
        let same = old.iter().find(|before| name(before) == name(port));
        if let Some(number) = same.and_then(|before| port_number(&before["nodePort"]))
            && used.insert(number)
        {
            port["nodePort"] = json!(number);
        }
    }
}

/// A service of another type gives up what only its old type has, unless it says otherwise.
pub(super) fn drop_dependent(service: &mut Value, current: &Value) {
    let same = |service: &Value, field: &str| service["spec"][field] == current["spec"][field];
    let drop = |service: &mut Value, field: &str| {
        if let Some(spec) = service["spec"].as_object_mut() {
            spec.shift_remove(field);
        }
    };
    if needs_address(current) && !needs_address(service) {
        if same(service, "clusterIPs") {
            drop(service, "clusterIP");
        }
        for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if same(service, field) {
                drop(service, field);
            }
        }
    }
    if needs_node_ports(current) && !needs_node_ports(service) {
        drop_node_ports(service, current);
    }
    if needs_health_check(current)
        && !needs_health_check(service)
        && same(service, "healthCheckNodePort")
    {
        drop(service, "healthCheckNodePort");
    }
    if super::kind(current) == "LoadBalancer" && super::kind(service) != "LoadBalancer" {
        for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if same(service, field) {
                drop(service, field);
            }
        }
        if service["status"].is_object() {
            service["status"]["loadBalancer"] = json!({});
        }
    }
    if super::is_public(current)
        && !super::is_public(service)
        && same(service, "externalTrafficPolicy")
    {
        drop(service, "externalTrafficPolicy");
    }
}

fn drop_node_ports(service: &mut Value, current: &Value) {
    let numbers = |service: &Value| -> BTreeSet<u16> {
        let ports = service["spec"]["ports"].as_array().into_iter().flatten();
        ports.filter_map(|port| port_number(&port["nodePort"])).collect()
    };
    if numbers(service) != numbers(current) {
        return;
    }
    for port in service["spec"]["ports"].as_array_mut().into_iter().flatten() {
        if let Some(port) = port.as_object_mut() {
            port.shift_remove("nodePort");
        }
    }
}
