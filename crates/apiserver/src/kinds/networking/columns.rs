//! Endpoints, ingresses, policies and addresses in tables.

use serde_json::{Value, json};

use crate::column::Cell::{Made, Selector, Text, Words};
use crate::column::{AGE, Column, NAME, Row, name, plain, string};
use crate::kinds::service::columns::balancer_addresses;

pub(super) const ENDPOINTS: &[Column] = &[NAME, string("Endpoints", Made(endpoints)), AGE];

pub(super) const ENDPOINT_SLICE: &[Column] = &[
    NAME,
    string("AddressType", Text("/addressType", "")),
    string("Ports", Made(slice_ports)),
    string("Endpoints", Made(slice_endpoints)),
    AGE,
];

pub(super) const INGRESS: &[Column] = &[
    NAME,
    string("Class", Text("/spec/ingressClassName", "<none>")),
    string("Hosts", Made(ingress_hosts)),
    string("Address", Made(ingress_address)),
    string("Ports", Made(ingress_ports)),
    AGE,
];

pub(super) const INGRESS_CLASS: &[Column] = &[
    name(Made(ingress_class_name)),
    string("Controller", Text("/spec/controller", "")),
    string("Parameters", Made(ingress_parameters)),
    AGE,
];

pub(super) const NETWORK_POLICY: &[Column] =
    &[NAME, string("Pod-Selector", Selector("/spec/podSelector", "<none>")), AGE];

pub(super) const SERVICE_RANGE: &[Column] = &[NAME, string("CIDRs", Words("/spec/cidrs", "")), AGE];

pub(super) const ADDRESS: &[Column] = &[NAME, string("ParentRef", Made(address_parent))];

/// How many of a long list are shown.
const SHOWN_MAX: usize = 3;

fn endpoints(row: &Row<'_>) -> Value {
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

fn slice_ports(row: &Row<'_>) -> Value {
    let ports = row.items("/ports").map(|port| match (&port["port"], &port["name"]) {
        (Value::Null, Value::Null) => "*".to_owned(),
        (Value::Null, name) => plain(name),
        (number, _) => plain(number),
    });
    json!(shortened_or_unset(&ports.collect::<Vec<_>>()))
}

fn slice_endpoints(row: &Row<'_>) -> Value {
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

fn ingress_hosts(row: &Row<'_>) -> Value {
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

fn ingress_address(row: &Row<'_>) -> Value {
    let addresses: Vec<String> = balancer_addresses(row).into_iter().collect();
    json!(addresses.join(","))
}

fn ingress_ports(row: &Row<'_>) -> Value {
    json!(if row.items("/spec/tls").next().is_some() { "80, 443" } else { "80" })
}

fn ingress_class_name(row: &Row<'_>) -> Value {
    let annotations = &row.object["metadata"]["annotations"];
    let is_default = annotations["ingressclass.kubernetes.io/is-default-class"] == "true";
    json!(format!("{}{}", row.text("/metadata/name"), if is_default { " (default)" } else { "" }))
}

fn ingress_parameters(row: &Row<'_>) -> Value {
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
fn address_parent(row: &Row<'_>) -> Value {
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
