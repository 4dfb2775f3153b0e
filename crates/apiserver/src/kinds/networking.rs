//! Network policies, ingresses, endpoint slices.

mod columns;
mod defaults;

use std::net::IpAddr;

use convoy_api::text::Name;
use serde_json::{Value, json};

use super::at::{At, Errors};
use super::fill;
use super::kind::{Change, Kind};
use super::node::is_range;
use super::pod::port_name;
use super::selector;
use crate::column::Column;
use crate::registry::Resource;

const RANGE: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

pub(super) fn policy(object: &Value) -> Errors {
    let spec = At::root(object).get("spec");
    let mut errors = Errors::new();
    selector::validate(&spec.get("podSelector"), &mut errors);
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.get(rules).items() {
            for port in rule.get("ports").items() {
                policy_port(&port, &mut errors);
            }
            for peer in rule.get(peers).items() {
                policy_peer(&peer, &mut errors);
            }
        }
    }
    let types = spec.get("policyTypes");
    if types.items().len() > 2 {
        errors.push(types.invalid("may not specify more than two policyTypes"));
        return errors;
    }
    for kind in types.items() {
        if !matches!(kind.text(), "Ingress" | "Egress") {
            errors.push(kind.unsupported(&["Ingress", "Egress"]));
        }
    }
    errors
}

fn policy_port(port: &At<'_>, errors: &mut Errors) {
    port.get("protocol").one_of_if_given(&["TCP", "UDP", "SCTP"], errors);
    let (number, end) = (port.get("port"), port.get("endPort"));
    match number.value {
        Value::Number(_) => {
            number.port(errors);
            if end.integer().is_some_and(|end| end < number.integer().unwrap_or(0)) {
                let shown = number.integer().unwrap_or(0);
                errors.push(end.invalid_as(shown, "must be greater than or equal to `port`"));
            }
            end.port(errors);
        }
        Value::String(_) => {
            if !end.is_absent() {
                errors.push(end.invalid("may not be specified when `port` is non-numeric"));
            }
            port_name(&number, errors);
        }
        _ if !end.is_absent() => {
            errors.push(end.invalid("may not be specified when `port` is not specified"));
        }
        _ => {}
    }
}

fn policy_peer(peer: &At<'_>, errors: &mut Errors) {
    let (pods, namespaces, block) =
        (peer.get("podSelector"), peer.get("namespaceSelector"), peer.get("ipBlock"));
    selector::validate(&pods, errors);
    selector::validate(&namespaces, errors);
    if !block.is_absent() {
        let range = block.get("cidr");
        if range.text().is_empty() {
            errors.push(range.required(""));
        } else if !is_range(range.text()) {
            errors.push(range.invalid(RANGE));
        }
        for except in block.get("except").items() {
            if !is_range(except.text()) {
                errors.push(except.invalid(RANGE));
            } else if !is_within(except.text(), range.text()) {
                errors.push(except.invalid("must be a strict subset of `cidr`"));
            }
        }
    }
    let given = [&pods, &namespaces, &block].iter().filter(|part| !part.is_absent()).count();
    if given == 0 {
        errors.push(peer.required("must specify a peer"));
    } else if given > 1 && !block.is_absent() {
        errors.push(peer.forbidden("may not specify both ipBlock and another peer"));
    }
}

/// Whether a range is a proper part of another.
fn is_within(part: &str, whole: &str) -> bool {
    let parse = |text: &str| -> Option<(u128, u32, u32)> {
        let (address, length) = text.split_once('/')?;
        let length: u32 = length.parse().ok()?;
        match address.parse().ok()? {
            IpAddr::V4(address) => Some((u128::from(u32::from(address)), 32, length)),
            IpAddr::V6(address) => Some((u128::from(address), 128, length)),
        }
    };
    let (Some((inner, width, inner_length)), Some((outer, outer_width, outer_length))) =
        (parse(part), parse(whole))
    else {
        return true;
    };
    let masked = |address: u128| match width - outer_length.min(width) {
        128 => 0,
        shift => address >> shift,
    };
    width == outer_width && inner_length > outer_length && masked(inner) == masked(outer)
}

pub(super) fn ingress(object: &Value) -> Errors {
    let spec = At::root(object).get("spec");
    let mut errors = Errors::new();
    let (rules, fallback) = (spec.get("rules"), spec.get("defaultBackend"));
    if rules.is_empty() && fallback.is_absent() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.push(At::new("spec", &json!([])).invalid_as(json!(null), detail));
    }
    if !fallback.is_absent() {
        backend(&fallback, &mut errors);
    }
    for rule in rules.items() {
        host(&rule.get("host"), &mut errors);
        let http = rule.get("http");
        if http.is_absent() {
            continue;
        }
        if http.get("paths").is_empty() {
            errors.push(http.get("paths").required(""));
        }
        for path in http.get("paths").items() {
            ingress_path(&path, &mut errors);
        }
    }
    spec.get("ingressClassName").name(Name::Dns1123Subdomain, &mut errors);
    errors
}

fn host(host: &At<'_>, errors: &mut Errors) {
    let text = host.text();
    if text.is_empty() {
        return;
    }
    if text.parse::<IpAddr>().is_ok() {
        errors.push(host.invalid("must be a DNS name, not an IP address"));
    }
    if text.contains('*') {
        if !text.strip_prefix("*.").is_some_and(|rest| Name::Dns1123Subdomain.accepts(rest)) {
            let detail = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
            errors.push(host.invalid(detail));
        }
    } else {
        host.name(Name::Dns1123Subdomain, errors);
    }
}

fn ingress_path(path: &At<'_>, errors: &mut Errors) {
    let (kind, text) = (path.get("pathType"), path.get("path"));
    if kind.is_absent() {
        errors.push(kind.required("pathType must be specified"));
        return;
    }
    let is_absolute = text.text().starts_with('/');
    match kind.text() {
        "Exact" | "Prefix" => {
            if !is_absolute {
                errors.push(text.invalid_as(text.text(), "must be an absolute path"));
            }
            for bad in ["//", "/./", "/../", "%2f", "%2F"] {
                if text.text().contains(bad) {
                    errors.push(text.invalid(&format!("must not contain '{bad}'")));
                }
            }
            for bad in ["/..", "/."] {
                if text.text().ends_with(bad) {
                    errors.push(text.invalid(&format!("cannot end with '{bad}'")));
                }
            }
        }
        "ImplementationSpecific" => {
            if !text.text().is_empty() && !is_absolute {
                errors.push(text.invalid("must be an absolute path"));
            }
        }
        _ => errors.push(kind.unsupported(&["Exact", "ImplementationSpecific", "Prefix"])),
    }
    backend(&path.get("backend"), errors);
}

fn backend(backend: &At<'_>, errors: &mut Errors) {
    let (service, resource) = (backend.get("service"), backend.get("resource"));
    match (service.is_absent(), resource.is_absent()) {
        (false, false) => {
            errors.push(backend.invalid_as("", "cannot set both resource and service backends"));
        }
        (true, true) => {
            errors.push(backend.invalid_as("", "resource or service backend is required"));
        }
        (true, false) => {}
        (false, true) => {
            service.get("name").required_name(Name::Dns1123Label, errors);
            let (name, number) = (service.get("port.name"), service.get("port.number"));
            match (name.text().is_empty(), number.integer().unwrap_or(0) == 0) {
                (false, false) => {
                    errors.push(backend.invalid_as("", "cannot set both port name & port number"));
                }
                (false, true) => port_name(&name, errors),
                (true, false) => number.port(errors),
                (true, true) => errors.push(backend.required("port name or number is required")),
            }
        }
    }
}

pub(super) fn endpoint_slice(object: &Value, old: Option<&Value>) -> Errors {
    let root = At::root(object);
    let mut errors = Errors::new();
    let kind = root.get("addressType");
    kind.one_of(&["FQDN", "IPv4", "IPv6"], &mut errors);
    if let Some(old) = old {
        kind.immutable(&At::root(old).get("addressType"), &mut errors);
    }
    for endpoint in root.get("endpoints").items() {
        let addresses = endpoint.get("addresses");
        if addresses.is_empty() {
            errors.push(addresses.required("must contain at least 1 address"));
        }
        for address in addresses.items() {
            let sound = match kind.text() {
                "IPv4" => address.text().parse::<std::net::Ipv4Addr>().is_ok(),
                "IPv6" => address.text().parse::<std::net::Ipv6Addr>().is_ok(),
                _ => true,
            };
            if !sound {
                let detail = match address.text().parse::<IpAddr>() {
                    Ok(_) => format!("must be an {} address", kind.text()),
                    Err(_) => {
                        "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()
                    }
                };
                errors.push(address.invalid(&detail));
            }
        }
    }
    let mut names: Vec<&str> = Vec::new();
    for port in root.get("ports").items() {
        let name = port.get("name");
        name.name(Name::Dns1123Label, &mut errors);
        if names.contains(&name.text()) {
            errors.push(name.duplicate());
        }
        names.push(name.text());
        port.get("protocol").one_of(&["SCTP", "TCP", "UDP"], &mut errors);
    }
    errors
}

pub(super) struct NetworkPolicy;

impl Kind for NetworkPolicy {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::policy(object);
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        policy(change.object)
    }

    fn columns(&self) -> &'static [Column] {
        columns::NETWORK_POLICY
    }
}

pub(super) struct Ingress;

impl Kind for Ingress {
    fn validate(&self, change: &Change<'_>) -> Errors {
        ingress(change.object)
    }

    fn columns(&self) -> &'static [Column] {
        columns::INGRESS
    }
}

pub(super) struct IngressClass;

impl Kind for IngressClass {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::ingress_class(object);
    }

    fn columns(&self) -> &'static [Column] {
        columns::INGRESS_CLASS
    }
}

pub(super) struct EndpointSlice;

impl Kind for EndpointSlice {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::endpoint_slice(object);
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        endpoint_slice(change.object, change.old)
    }

    fn columns(&self) -> &'static [Column] {
        columns::ENDPOINT_SLICE
    }
}

pub(super) struct Endpoints;

impl Kind for Endpoints {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        fill::with(object, |endpoints| {
            fill::each(endpoints.get_mut("subsets"), |subset| {
                fill::each(subset.get_mut("ports"), |port| fill::text(port, "protocol", "TCP"));
            });
        });
    }

    fn deprecation(&self) -> Option<&'static str> {
        Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
    }

    fn columns(&self) -> &'static [Column] {
        columns::ENDPOINTS
    }
}

pub(super) struct Address;

impl Kind for Address {
    fn name_errors(&self, _object: &Value, name: &str) -> Vec<String> {
        address(name)
    }

    fn columns(&self) -> &'static [Column] {
        columns::ADDRESS
    }
}

/// The addresses that services get theirs from.
pub(super) struct ServiceRange;

impl Kind for ServiceRange {
    fn columns(&self) -> &'static [Column] {
        columns::SERVICE_RANGE
    }
}

/// One address has one name: its canonical form.
fn address(name: &str) -> Vec<String> {
    let is_number = |part: &str| {
        part.bytes().all(|byte| byte.is_ascii_digit()) && part.parse::<u32>().is_ok_and(|n| n < 256)
    };
    let detail = match name.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => {
            "must not be an IPv4-mapped IPv6 address".to_owned()
        }
        Ok(address) if address.to_string() == name => return Vec::new(),
        Ok(address) => format!("must be in canonical form (\"{address}\")"),
        Err(_) if name.split('.').count() == 4 && name.split('.').all(is_number) => {
            "must not have leading 0s".to_owned()
        }
        Err(_) => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned(),
    };
    vec![detail]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_are_inside_their_range() {
        for (part, whole, expected) in [
            ("10.0.1.0/24", "10.0.0.0/16", true),
            ("10.1.0.0/24", "10.0.0.0/16", false),
            ("10.0.0.0/16", "10.0.0.0/16", false),
            ("10.0.0.0/8", "0.0.0.0/0", true),
            ("2001:db8:1::/48", "2001:db8::/32", true),
        ] {
            assert_eq!(is_within(part, whole), expected, "{part} {whole}");
        }
    }

    #[test]
    fn policies_name_peers_and_ports() {
        let with = |rule: Value| json!({"spec": {"podSelector": {}, "ingress": [rule]}});
        let sound = with(
            json!({"from": [{"podSelector": {}}], "ports": [{"port": 80, "protocol": "TCP"}]}),
        );
        assert!(policy(&sound).is_empty());
        for bad in [
            json!({"from": [{}]}),
            json!({"from": [{"ipBlock": {"cidr": "x"}}]}),
            json!({"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}]}),
            json!({"ports": [{"port": 0}]}),
            json!({"ports": [{"port": 80, "endPort": 79}]}),
            json!({"ports": [{"protocol": "ICMP"}]}),
        ] {
            assert!(!policy(&with(bad.clone())).is_empty(), "{bad}");
        }
    }

    #[test]
    fn ingresses_lead_somewhere() {
        let service = json!({"service": {"name": "web", "port": {"number": 80}}});
        assert!(ingress(&json!({"spec": {"defaultBackend": service}})).is_empty());
        let path = json!({"path": "/", "pathType": "Prefix", "backend": service});
        let rule = |path: Value| json!({"spec": {"rules": [{"host": "a.example.com", "http": {"paths": [path]}}]}});
        assert!(ingress(&rule(path)).is_empty());
        for bad in [
            json!({"path": "x", "pathType": "Prefix", "backend": service}),
            json!({"path": "/", "backend": service}),
            json!({"path": "/", "pathType": "Prefix", "backend": {}}),
        ] {
            assert_eq!(ingress(&rule(bad.clone())).len(), 1, "{bad}");
        }
        assert_eq!(ingress(&json!({"spec": {}})).len(), 1);
    }

    #[test]
    fn slices_keep_their_kind_of_address() {
        let slice = |kind: &str, address: &str| json!({"addressType": kind, "endpoints": [{"addresses": [address]}]});
        let sound = slice("IPv4", "10.0.0.1");
        assert!(endpoint_slice(&sound, Some(&sound)).is_empty());
        assert_eq!(endpoint_slice(&slice("IPv4", "::1"), None).len(), 1);
        assert_eq!(endpoint_slice(&slice("IPv6", "::1"), Some(&sound)).len(), 1);
    }
}
