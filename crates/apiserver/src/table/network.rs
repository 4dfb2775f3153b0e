//! Cells of what connects: services, endpoints, ingresses, addresses.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::column::Row;
use super::text::plain;

/// How many of a long list are shown.
const SHOWN_MAX: usize = 3;

/// Where a service is reached from outside.
pub(super) fn external_address(row: &Row<'_>) -> Value {
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
fn balancer_addresses(row: &Row<'_>) -> BTreeSet<String> {
    let ingress = row.items("/status/loadBalancer/ingress");
    let addresses = ingress.map(|one| {
        let ip = plain(&one["ip"]);
        if ip.is_empty() { plain(&one["hostname"]) } else { ip }
    });
    addresses.filter(|address| !address.is_empty()).collect()
}

/// `80:30080/TCP,443/TCP`.
pub(super) fn service_ports(row: &Row<'_>) -> Value {
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

pub(super) fn endpoints(row: &Row<'_>) -> Value {
    let mut all = Vec::new();
    for subset in row.items("/subsets") {
        let addresses = || subset["addresses"].as_array().into_iter().flatten();
        let ports: Vec<&Value> = subset["ports"].as_array().into_iter().flatten().collect();
        if ports.is_empty() {
            all.extend(addresses().map(|address| plain(&address["ip"])));
        }
        for port in ports {
            all.extend(addresses().map(|one| host_port(&plain(&one["ip"]), &port["port"])));
        }
    }
    json!(if row.items("/subsets").next().is_none() {
        "<none>".to_owned()
    } else {
        shortened(&all)
    })
}

fn host_port(host: &str, port: &Value) -> String {
    let port = plain(port);
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

pub(super) fn slice_ports(row: &Row<'_>) -> Value {
    let ports = row.items("/ports").map(|port| match (&port["port"], &port["name"]) {
        (Value::Null, Value::Null) => "*".to_owned(),
        (Value::Null, name) => plain(name),
        (number, _) => plain(number),
    });
    json!(shortened_or_unset(&ports.collect::<Vec<_>>()))
}

pub(super) fn slice_endpoints(row: &Row<'_>) -> Value {
    let endpoints = row.items("/endpoints");
    let addresses = endpoints.flat_map(|one| one["addresses"].as_array().into_iter().flatten());
    json!(shortened_or_unset(&addresses.map(plain).collect::<Vec<_>>()))
}

fn shortened_or_unset(all: &[String]) -> String {
    let text = shortened(all);
    if text.is_empty() { "<unset>".to_owned() } else { text }
}

fn shortened(all: &[String]) -> String {
    match all.len().checked_sub(SHOWN_MAX) {
        Some(more @ 1..) => format!("{} + {more} more...", all[..SHOWN_MAX].join(",")),
        _ => all.join(","),
    }
}

pub(super) fn ingress_hosts(row: &Row<'_>) -> Value {
    let rules = row.items("/spec/rules").count();
    let hosts: Vec<String> = row
        .items("/spec/rules")
        .map(|rule| plain(&rule["host"]))
        .filter(|host| !host.is_empty())
        .collect();
    json!(match hosts.len() {
        0 => "*".to_owned(),
        shown if shown > SHOWN_MAX => {
            format!("{} + {} more...", hosts[..SHOWN_MAX].join(","), rules - SHOWN_MAX)
        }
        _ => hosts.join(","),
    })
}

pub(super) fn ingress_address(row: &Row<'_>) -> Value {
    let addresses: Vec<String> = balancer_addresses(row).into_iter().collect();
    json!(addresses.join(","))
}

pub(super) fn ingress_ports(row: &Row<'_>) -> Value {
    json!(if row.items("/spec/tls").next().is_some() { "80, 443" } else { "80" })
}

pub(super) fn ingress_class_name(row: &Row<'_>) -> Value {
    let annotations = &row.object["metadata"]["annotations"];
    let is_default = annotations["ingressclass.kubernetes.io/is-default-class"] == "true";
    json!(format!("{}{}", row.text("/metadata/name"), if is_default { " (default)" } else { "" }))
}

pub(super) fn ingress_parameters(row: &Row<'_>) -> Value {
    let parameters = &row.object["spec"]["parameters"];
    if !parameters.is_object() {
        return json!("<none>");
    }
    let group = match &parameters["apiGroup"] {
        Value::Null => String::new(),
        group => format!(".{}", plain(group)),
    };
    json!(format!("{}{group}/{}", plain(&parameters["kind"]), plain(&parameters["name"])))
}

/// `services/default/kubernetes`: who an address belongs to.
pub(super) fn address_parent(row: &Row<'_>) -> Value {
    let parent = &row.object["spec"]["parentRef"];
    if !parent.is_object() {
        return json!("<none>");
    }
    let part = |field: &str| plain(&parent[field]);
    let resource = match part("group") {
        group if group.is_empty() => part("resource"),
        group => format!("{}.{group}", part("resource")),
    };
    let mut parts = vec![resource.to_lowercase(), part("namespace"), part("name")];
    if parts[1].is_empty() {
        parts.remove(1);
    }
    json!(parts.join("/"))
}
