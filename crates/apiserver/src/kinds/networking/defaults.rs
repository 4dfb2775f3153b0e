//! Defaults of network policies, ingress classes, endpoint slices.

use serde_json::{Value, json};

use crate::kinds::fill;

pub(super) fn policy(object: &mut Value) {
    let Some(spec) = fill::spec(object) else { return };
    if fill::is_empty_list(spec, "policyTypes") {
        let types = if fill::is_empty_list(spec, "egress") {
            json!(["Ingress"])
        } else {
            json!(["Ingress", "Egress"])
        };
        spec.insert("policyTypes".into(), types);
    }
    for direction in ["ingress", "egress"] {
        fill::each(spec.get_mut(direction), |rule| {
            fill::each(rule.get_mut("ports"), |port| {
                fill::absent(port, "protocol", || json!("TCP"));
            });
        });
    }
}

pub(super) fn ingress_class(object: &mut Value) {
    let Some(spec) = fill::spec(object) else { return };
    if let Some(parameters) = fill::fields(spec.get_mut("parameters")) {
        fill::absent(parameters, "scope", || json!("Cluster"));
    }
}

pub(super) fn endpoint_slice(object: &mut Value) {
    fill::each(object.get_mut("ports"), |port| {
        fill::absent(port, "name", || json!(""));
        fill::absent(port, "protocol", || json!("TCP"));
    });
}
