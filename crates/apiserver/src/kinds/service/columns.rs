//! Services in a table.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::column::Cell::{Labels, Made, Text};
use crate::column::{AGE, Column, NAME, Row, plain, string, wide};

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    string("Type", Text("/spec/type", "")),
    string("Cluster-IP", Text("/spec/clusterIPs/0", "<none>")),
    string("External-IP", Made(external_address)),
    string("Port(s)", Made(ports)),
    AGE,
    wide("Selector", Labels("/spec/selector")),
];

/// Where a service is reached from outside.
fn external_address(row: &Row<'_>) -> Value {
    let given: Vec<String> = row.items("/spec/externalIPs").map(plain).collect();
    json!(match row.text("/spec/type") {
        "ClusterIP" | "NodePort" if given.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => given.join(","),
        "LoadBalancer" => {
            let mut all: Vec<String> = balancer_addresses(row).into_iter().collect();
            all.extend(given);
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        "ExternalName" => row.text("/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    })
}

/// Addresses that a load balancer reported, sorted, each once.
pub(in crate::kinds) fn balancer_addresses(row: &Row<'_>) -> BTreeSet<String> {
    let ingress = row.items("/status/loadBalancer/ingress");
    let addresses = ingress.map(|one| {
        let ip = plain(&one["ip"]);
        if ip.is_empty() { plain(&one["hostname"]) } else { ip }
    });
    addresses.filter(|address| !address.is_empty()).collect()
}

/// `80:30080/TCP,443/TCP`.
fn ports(row: &Row<'_>) -> Value {
    let ports = row.items("/spec/ports").map(|port| {
        let node = match port["nodePort"].as_i64() {
            Some(node) if node > 0 => format!(":{node}"),
            _ => String::new(),
        };
        format!("{}{node}/{}", plain(&port["port"]), plain(&port["protocol"]))
    });
    let ports: Vec<String> = ports.collect();
    json!(if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") })
}
