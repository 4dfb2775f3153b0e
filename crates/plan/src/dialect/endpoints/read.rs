//! Pods as those who connect to a Service see them.

use convoy_api::Object;
use convoy_api::kinds::{NODE, POD};
use convoy_api::object::member::{list, text};
use serde_json::{Map, Value, json};

use super::names::ZONE;
use crate::snapshot::Snapshot;

/// A pod that a Service selects, and that has an address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backend<'o> {
    service: &'o Object,
    pod: &'o Object,
    node: Option<&'o Object>,
}

impl<'o> Backend<'o> {
    /// The pods of a Service that have not ended, by name.
    pub(super) fn all(snapshot: &Snapshot<'o>) -> Vec<Self> {
        let service = snapshot.rollout();
        let has_ended = |pod: &Object| matches!(pod.status_text("phase"), "Failed" | "Succeeded");
        let pods = snapshot.of(&POD).iter().copied();
        let live = pods.filter(|pod| !has_ended(pod) && !addresses(pod).is_empty());
        live.map(|pod| {
            let node = snapshot.find(&NODE, "", pod.spec_text("nodeName"));
            Self { service, pod, node }
        })
        .collect()
    }

    /// Whether it takes connections, or is told to be shown as if it did.
    pub(super) fn is_ready(&self) -> bool {
        is_published(self.service) || self.is_serving() && !self.pod.is_deleting()
    }

    fn is_serving(&self) -> bool {
        self.pod.condition_status("Ready") == Some("True")
    }

    /// Whether Endpoints list it: those that are on their way out only where even pods that are
    /// not ready are asked for.
    pub(super) fn is_listed(&self) -> bool {
        is_published(self.service) || !self.pod.is_deleting()
    }

    /// Its address in a family, `IPv4` or `IPv6`.
    pub(super) fn address(&self, family: &str) -> Option<&'o str> {
        addresses(self.pod).into_iter().find(|ip| ip.contains(':') == (family == "IPv6"))
    }

    /// The ports of the Service that it has, in the Service's order.
    pub(super) fn ports(&self) -> Vec<Value> {
        let ports = list(self.service.spec(), "ports").iter();
        ports.filter_map(|port| self.port(port)).collect()
    }

    fn port(&self, port: &Value) -> Option<Value> {
        let protocol = Some(text(port, "protocol")).filter(|it| !it.is_empty()).unwrap_or("TCP");
        let number = match &port["targetPort"] {
            Value::String(name) if !name.is_empty() => self.named_port(name, protocol)?,
            Value::Number(number) if number.as_i64() != Some(0) => number.as_i64()?,
            _ => port["port"].as_i64()?,
        };
        let mut found = json!({"name": text(port, "name"), "port": number, "protocol": protocol});
        if let Some(protocol) = port.get("appProtocol").filter(|it| !it.is_null()) {
            found["appProtocol"] = protocol.clone();
        }
        Some(found)
    }

    /// The number of a container's port, by its name.
    fn named_port(&self, name: &str, protocol: &str) -> Option<i64> {
        let spec = self.pod.spec();
        let first = list(spec, "initContainers").iter();
        let sidecars = first.filter(|container| text(container, "restartPolicy") == "Always");
        let containers = list(spec, "containers").iter().chain(sidecars);
        let mut ports = containers.flat_map(|container| list(container, "ports"));
        let is_it = |port: &&Value| {
            let own = text(port, "protocol");
            text(port, "name") == name && (own == protocol || own.is_empty() && protocol == "TCP")
        };
        ports.find(is_it)?["containerPort"].as_i64()
    }

    /// As an item of an EndpointSlice.
    pub(super) fn endpoint(&self, address: &str) -> Value {
        let pod = self.pod;
        let conditions = json!({"ready": self.is_ready(), "serving": self.is_serving(),
            "terminating": pod.is_deleting()});
        let mut endpoint = json!({"addresses": [address], "conditions": conditions});
        for (field, value) in self.more() {
            endpoint[field] = value;
        }
        if let Some(zone) = self.node.and_then(|node| node.label(ZONE)) {
            endpoint["zone"] = json!(zone);
        }
        endpoint
    }

    /// As an address of Endpoints.
    pub(super) fn endpoint_address(&self, address: &str) -> Value {
        let mut fields = Map::from_iter([("ip".to_owned(), json!(address))]);
        fields.extend(self.more());
        Value::Object(fields)
    }

    /// What both say of it beside the address.
    fn more(&self) -> Map<String, Value> {
        let pod = self.pod;
        let mut fields = Map::new();
        let hostname = pod.spec_text("hostname");
        if !hostname.is_empty() && pod.spec_text("subdomain") == self.service.name() {
            fields.insert("hostname".to_owned(), json!(hostname));
        }
        let node = pod.spec_text("nodeName");
        if !node.is_empty() {
            fields.insert("nodeName".to_owned(), json!(node));
        }
        let target = json!({"kind": "Pod", "namespace": pod.namespace(), "name": pod.name(),
            "uid": pod.uid().unwrap_or_default()});
        fields.insert("targetRef".to_owned(), target);
        fields
    }
}

fn is_published(service: &Object) -> bool {
    service.spec()["publishNotReadyAddresses"] == true
}

/// The labels that pods of a Service have; none if somebody else knows where it leads.
pub(super) fn selector(service: &Object) -> Option<&Map<String, Value>> {
    service.spec().get("selector").and_then(Value::as_object).filter(|labels| !labels.is_empty())
}

/// The families of a Service's addresses, the first one first.
pub(super) fn families(service: &Object) -> Vec<&'static str> {
    let given = list(service.spec(), "ipFamilies").iter().filter_map(Value::as_str);
    let known = given.filter_map(|family| ["IPv4", "IPv6"].into_iter().find(|it| *it == family));
    let families: Vec<&str> = known.collect();
    match (families.is_empty(), service.spec_text("clusterIP").contains(':')) {
        (false, _) => families,
        (true, false) => vec!["IPv4"],
        (true, true) => vec!["IPv6"],
    }
}

/// Whether a Service is another name, and leads to no pods.
pub(super) fn is_external(service: &Object) -> bool {
    service.spec_text("type") == "ExternalName"
}

/// Whether a Service has no address of its own.
pub(super) fn is_headless(service: &Object) -> bool {
    matches!(service.spec_text("clusterIP"), "" | "None")
}

fn addresses(pod: &Object) -> Vec<&str> {
    let several = list(pod.status(), "podIPs").iter().map(|entry| text(entry, "ip"));
    let mut addresses: Vec<&str> = several.filter(|ip| !ip.is_empty()).collect();
    let one = pod.status_text("podIP");
    if addresses.is_empty() && !one.is_empty() {
        addresses.push(one);
    }
    addresses
}

/// Whether nothing changed that an endpoint says of a pod, or that a Service selects by.
pub(super) fn is_reached_alike(before: &Object, after: &Object) -> bool {
    let spec = |pod: &Object| {
        ["nodeName", "hostname", "subdomain"].map(|field| pod.spec_text(field).to_owned())
    };
    let phase = |pod: &Object| matches!(pod.status_text("phase"), "Failed" | "Succeeded");
    before.uid() == after.uid()
        && before.labels().eq(after.labels())
        && before.is_deleting() == after.is_deleting()
        && before.condition_status("Ready") == after.condition_status("Ready")
        && phase(before) == phase(after)
        && spec(before) == spec(after)
        && addresses(before) == addresses(after)
}
