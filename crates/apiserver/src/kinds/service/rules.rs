//! Rules of services.

use std::net::IpAddr;

use convoy_api::text::Name;
use serde_json::{Value, json};

use super::{is_headless, is_public, kind, needs_health_check};
use crate::kinds::at::{At, Errors};
use crate::kinds::pod::{port_name, port_reference};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

pub(in crate::kinds) fn validate(service: &Value, old: Option<&Value>) -> Errors {
    let root = At::root(service);
    let spec = root.get("spec");
    let mut errors = Errors::new();
    if let Some(old) = old {
        update(service, old, &mut errors);
    }
    let ports = spec.get("ports");
    if ports.is_empty() && !is_headless(service) && kind(service) != "ExternalName" {
        errors.push(ports.required(""));
    }
    by_type(service, &spec, &mut errors);
    every_port(&ports, kind(service), &mut errors);
    spec.get("selector").labels(&mut errors);
    spec.get("sessionAffinity").one_of(&["ClientIP", "None"], &mut errors);
    if spec.get("sessionAffinity").text() == "ClientIP" {
        let seconds = spec.get("sessionAffinityConfig.clientIP.timeoutSeconds");
        if seconds.integer().is_some_and(|seconds| !(1..=86_400).contains(&seconds)) {
            errors.push(seconds.invalid("must be greater than 0 and less than 86400"));
        }
    }
    addresses(service, &spec, &mut errors);
    for address in spec.get("externalIPs").items() {
        ip(&address, &mut errors);
    }
    spec.get("type").one_of(&TYPES, &mut errors);
    traffic(service, &spec, &mut errors);
    balancer(service, &spec, &mut errors);
    errors
}

fn update(service: &Value, old: &Value, errors: &mut Errors) {
    if kind(service) == "ExternalName" || kind(old) == "ExternalName" {
        return;
    }
    if is_headless(service) && is_headless(old) {
        return;
    }
    let addresses = At::new("spec.clusterIPs", &service["spec"]["clusterIPs"]);
    let first = |service: &Value| service["spec"]["clusterIPs"][0].as_str().map(str::to_owned);
    let at_first = At::new("spec.clusterIPs[0]", addresses.value);
    match (first(old), first(service)) {
        (Some(_), None) => errors.push(at_first.invalid("primary clusterIP can not be unset")),
        (Some(old), Some(new)) if old != new => {
            errors.push(at_first.invalid("may not change once set"));
        }
        _ => {}
    }
    let check = At::new("spec.healthCheckNodePort", &service["spec"]["healthCheckNodePort"]);
    if needs_health_check(service)
        && needs_health_check(old)
        && check.value != &old["spec"]["healthCheckNodePort"]
    {
        errors.push(check.forbidden("field is immutable"));
    }
    if kind(service) == "LoadBalancer" && kind(old) == "LoadBalancer" {
        let class = At::new("spec.loadBalancerClass", &service["spec"]["loadBalancerClass"]);
        if class.value != &old["spec"]["loadBalancerClass"] {
            errors.push(class.invalid("may not change once set"));
        }
    }
}

fn by_type(service: &Value, spec: &At<'_>, errors: &mut Errors) {
    match kind(service) {
        kind @ ("LoadBalancer" | "NodePort") if is_headless(service) => {
            let detail = format!("may not be set to 'None' for {kind} services");
            let first = At::new("spec.clusterIPs[0]", &service["spec"]["clusterIPs"][0]);
            errors.push(first.invalid(&detail));
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if !spec.get(field).is_empty() {
                    let detail = "may not be set for ExternalName services";
                    errors.push(spec.get(field).forbidden(detail));
                }
            }
            let name = spec.get("externalName");
            let bare = name.text().strip_suffix('.').unwrap_or(name.text());
            if bare.is_empty() {
                errors.push(name.required(""));
            }
            At { path: name.path, value: &json!(bare) }.name(Name::Dns1123Subdomain, errors);
        }
        _ => {}
    }
}

fn every_port(ports: &At<'_>, kind: &str, errors: &mut Errors) {
    let all = ports.items();
    let mut names: Vec<&str> = Vec::new();
    for port in &all {
        let name = port.get("name");
        if name.text().is_empty() && all.len() > 1 {
            errors.push(name.required(""));
        } else if !name.text().is_empty() {
            name.name(Name::Dns1123Label, errors);
            if names.contains(&name.text()) {
                errors.push(name.duplicate());
            }
            names.push(name.text());
        }
        let number = port.get("port");
        let shown = number.integer().unwrap_or(0);
        At { path: number.path.clone(), value: &json!(shown) }.port(errors);
        port.get("protocol").one_of(&["SCTP", "TCP", "UDP"], errors);
        match port.get("targetPort").value {
            Value::String(_) => port_name(&port.get("targetPort"), errors),
            _ => port_reference(&port.get("targetPort"), errors),
        }
        port.get("appProtocol").name(Name::QualifiedName, errors);
        if kind == "ClusterIP" && port.get("nodePort").integer().unwrap_or(0) != 0 {
            let detail = "may not be used when `type` is 'ClusterIP'";
            errors.push(port.get("nodePort").forbidden(detail));
        }
    }
    let mut node_ports = Vec::new();
    let mut own_ports = Vec::new();
    for port in &all {
        let protocol = port.get("protocol").text();
        let node_port = port.get("nodePort");
        if let Some(number) = node_port.integer().filter(|number| *number != 0) {
            if node_ports.contains(&(protocol, number)) {
                errors.push(node_port.duplicate());
            }
            node_ports.push((protocol, number));
        }
        let number = port.get("port").integer().unwrap_or(0);
        if own_ports.contains(&(protocol, number)) {
            let shown = json!({"protocol": protocol, "port": number, "targetPort": 0});
            errors.push(At { path: port.path.clone(), value: &shown }.duplicate());
        }
        own_ports.push((protocol, number));
    }
}

fn addresses(service: &Value, spec: &At<'_>, errors: &mut Errors) {
    if kind(service) == "ExternalName" {
        return;
    }
    let (one, all) = (spec.get("clusterIP"), spec.get("clusterIPs"));
    let listed = all.items();
    match (one.text(), listed.first()) {
        ("", Some(_)) => {
            errors.push(all.invalid("must be empty when `clusterIP` is not specified"));
        }
        (text, None) if !text.is_empty() => errors.push(all.required("")),
        (text, Some(first)) if first.text() != text => {
            errors.push(all.invalid("first value must match `clusterIP`"));
        }
        _ => {}
    }
    let mut families: Vec<&str> = Vec::new();
    for family in spec.get("ipFamilies").items() {
        family.one_of(&["IPv4", "IPv6"], errors);
        if families.contains(&family.text()) {
            errors.push(family.duplicate());
        }
        families.push(family.text());
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    spec.get("ipFamilyPolicy").one_of_if_given(&policies, errors);
    for (index, address) in listed.iter().enumerate() {
        if address.text() == "None" {
            if index > 0 || listed.len() > 1 {
                errors.push(all.invalid("'None' must be the first and only value"));
            }
            continue;
        }
        ip(address, errors);
    }
    if listed.len() > 2 {
        errors.push(all.invalid("may only hold up to 2 values"));
    }
}

fn ip(address: &At<'_>, errors: &mut Errors) {
    if address.text().parse::<IpAddr>().is_err() {
        let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        errors.push(address.invalid(detail));
    }
}

fn traffic(service: &Value, spec: &At<'_>, errors: &mut Errors) {
    let outside = spec.get("externalTrafficPolicy");
    if is_public(service) {
        outside.one_of(&["Cluster", "Local"], errors);
    } else if !outside.is_empty() {
        errors.push(outside.invalid("may only be set for externally-accessible services"));
    }
    let check = spec.get("healthCheckNodePort");
    if !needs_health_check(service) && check.integer().unwrap_or(0) != 0 {
        let detail =
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.push(check.invalid(detail));
    }
    if needs_health_check(service) {
        check.port(errors);
    }
    spec.get("internalTrafficPolicy").one_of_if_given(&["Cluster", "Local"], errors);
    let near = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    spec.get("trafficDistribution").one_of_if_given(&near, errors);
}

fn balancer(service: &Value, spec: &At<'_>, errors: &mut Errors) {
    if kind(service) == "LoadBalancer" {
        spec.get("loadBalancerClass").name(Name::QualifiedName, errors);
        return;
    }
    for (field, shown) in [
        ("loadBalancerSourceRanges", "LoadBalancerSourceRanges"),
        ("allocateLoadBalancerNodePorts", "allocateLoadBalancerNodePorts"),
        ("loadBalancerClass", "loadBalancerClass"),
    ] {
        let given = spec.get(field);
        if !given.is_empty() {
            let at = At { path: format!("spec.{shown}"), value: given.value };
            errors.push(at.forbidden("may only be used when `type` is 'LoadBalancer'"));
        }
    }
}
