//! Endpoints that somebody else writes for a Service without a selector, as EndpointSlices.

use std::collections::BTreeMap;

use convoy_api::kinds::ENDPOINTS;
use convoy_api::object::member::{list, text};
use serde_json::{Map, Value, json};

use super::object::own_labels;
use super::slices::{self, Group, Header};
use crate::dialect::endpoints::names::{
    LEADER, MIRROR_CONTROLLER, NOT_MIRRORED, SERVICE_NAME, SKIP_MIRROR, SLICE_MANAGED_BY,
};
use crate::snapshot::Snapshot;
use crate::step::Action;

/// Addresses of one subset that are mirrored at most.
const SUBSET_MAX: usize = 1_000;

pub(crate) fn writes(snapshot: &Snapshot<'_>) -> Vec<Action> {
    let service = snapshot.rollout();
    let endpoints = snapshot.find(&ENDPOINTS, service.namespace(), service.name());
    // Slices of Endpoints that are gone go with them: they are owned by these.
    let Some(endpoints) = endpoints.filter(|it| !it.is_deleting()) else { return Vec::new() };
    if endpoints.annotation(LEADER).is_some() {
        return Vec::new();
    }
    let mut labels = own_labels(endpoints);
    labels.insert(SERVICE_NAME.to_owned(), json!(endpoints.name()));
    labels.insert(SLICE_MANAGED_BY.to_owned(), json!(MIRROR_CONTROLLER));
    let annotations = endpoints.annotations().filter(|(key, _)| !NOT_MIRRORED.contains(key));
    let annotations: Map<String, Value> =
        annotations.map(|(key, value)| (key.to_owned(), json!(value))).collect();
    let header = Header { owner: endpoints, labels, annotations };
    let is_skipped = endpoints.label(SKIP_MIRROR) == Some("true");
    let groups = if is_skipped { Vec::new() } else { groups(list(endpoints.raw(), "subsets")) };
    slices::writes(&header, groups, &slices::existing(snapshot, endpoints, MIRROR_CONTROLLER))
}

fn groups(subsets: &[Value]) -> Vec<Group> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for subset in subsets {
        let ports: Vec<Value> = list(subset, "ports").iter().map(port).collect();
        let ready = list(subset, "addresses").iter().map(|address| (address, true));
        let not_ready = list(subset, "notReadyAddresses").iter().map(|address| (address, false));
        for (address, is_ready) in ready.chain(not_ready).take(SUBSET_MAX) {
            let ip = text(address, "ip");
            let address_type = if ip.contains(':') { "IPv6" } else { "IPv4" };
            let group = groups.entry(json!([address_type, ports]).to_string());
            let group = group.or_insert_with(|| Group {
                address_type,
                ports: ports.clone(),
                endpoints: Vec::new(),
            });
            group.endpoints.push(endpoint(address, ip, is_ready));
        }
    }
    groups.into_values().collect()
}

fn port(port: &Value) -> Value {
    let protocol = Some(text(port, "protocol")).filter(|it| !it.is_empty()).unwrap_or("TCP");
    let mut mirrored =
        json!({"name": text(port, "name"), "port": port["port"], "protocol": protocol});
    if let Some(protocol) = port.get("appProtocol").filter(|it| !it.is_null()) {
        mirrored["appProtocol"] = protocol.clone();
    }
    mirrored
}

fn endpoint(address: &Value, ip: &str, is_ready: bool) -> Value {
    let mut endpoint = json!({"addresses": [ip], "conditions": {"ready": is_ready}});
    for field in ["hostname", "nodeName", "targetRef"] {
        if let Some(value) = address.get(field).filter(|it| !it.is_null() && *it != "") {
            endpoint[field] = value.clone();
        }
    }
    endpoint
}
