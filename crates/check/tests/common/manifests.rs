//! What is placed on members, and what is told about it.

use convoy_api::{GroupKind, ObjectKey};
use convoy_testkit::NOW;
use jiff::Timestamp;
use serde_json::{Value, json};

pub(crate) fn now() -> Timestamp {
    NOW.parse().expect("a fixed instant")
}

pub(crate) fn on(member: &str, kind: &GroupKind, namespace: &str, name: &str) -> ObjectKey {
    ObjectKey { cluster: member.into(), ..kind.key(namespace, name) }
}

pub(crate) fn shop() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
}

pub(crate) fn deployment(image: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "front", "namespace": "shop"},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [
            {"name": "app", "image": image}]}}}})
}

pub(crate) fn config(value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "shop"}, "data": {"mode": value}})
}

/// `Type=Status/Reason` of an object's status or of one of its parts.
pub(crate) fn conditions(of: &Value) -> Vec<String> {
    let word = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    let entries = of["conditions"].as_array().cloned().unwrap_or_default();
    entries
        .iter()
        .map(|it| format!("{}={}/{}", word(it, "type"), word(it, "status"), word(it, "reason")))
        .collect()
}
