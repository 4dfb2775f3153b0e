//! Which objects a quota's scopes select. An object of a kind that a scope says nothing about is
//! never selected by it.

use serde_json::Value;

use super::names::{CLAIMS, PODS};

/// Whether all scopes of a quota select an object; a quota without scopes selects all.
pub(super) fn selects(quota: &Value, resource: &str, object: &Value) -> bool {
    let spec = &quota["spec"];
    let plain = list(&spec["scopes"]).filter_map(Value::as_str);
    let mut plain = plain.map(|scope| holds(scope, &Value::Null, resource, object));
    let mut selected = list(&spec["scopeSelector"]["matchExpressions"]).map(|expression| {
        let scope = expression["scopeName"].as_str().unwrap_or_default();
        holds(scope, expression, resource, object)
    });
    plain.all(|held| held) && selected.all(|held| held)
}

fn holds(scope: &str, expression: &Value, resource: &str, object: &Value) -> bool {
    let spec = &object["spec"];
    match (resource, scope) {
        (PODS, "Terminating") => has_deadline(object),
        (PODS, "NotTerminating") => !has_deadline(object),
        (PODS, "BestEffort") => object["status"]["qosClass"] == "BestEffort",
        (PODS, "NotBestEffort") => object["status"]["qosClass"] != "BestEffort",
        (PODS, "PriorityClass") => {
            let class = spec["priorityClassName"].as_str().filter(|class| !class.is_empty());
            is_met(expression, &class.into_iter().collect::<Vec<_>>())
        }
        (PODS, "CrossNamespacePodAffinity") => looks_elsewhere(&spec["affinity"]),
        (CLAIMS, "VolumeAttributesClass") => is_met(expression, &attributes_classes(object)),
        _ => false,
    }
}

/// Whether a pod ends of itself after a while.
pub(super) fn has_deadline(pod: &Value) -> bool {
    pod["spec"]["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0)
}

/// Whether one of the names, or having none, is what the expression asks for. A scope without an
/// expression asks for any name.
fn is_met(expression: &Value, names: &[&str]) -> bool {
    let values: Vec<&str> = list(&expression["values"]).filter_map(Value::as_str).collect();
    match expression["operator"].as_str().unwrap_or("Exists") {
        "Exists" => !names.is_empty(),
        "DoesNotExist" => names.is_empty(),
        "In" => names.iter().any(|name| values.contains(name)),
        "NotIn" => names.is_empty() || names.iter().any(|name| !values.contains(name)),
        _ => false,
    }
}

/// Whether a pod's affinity names other namespaces than its own.
fn looks_elsewhere(affinity: &Value) -> bool {
    let is_across = |term: &Value| {
        list(&term["namespaces"]).next().is_some() || !term["namespaceSelector"].is_null()
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|side| {
        let side = &affinity[*side];
        list(&side["requiredDuringSchedulingIgnoredDuringExecution"]).any(is_across)
            || list(&side["preferredDuringSchedulingIgnoredDuringExecution"])
                .any(|weighted| is_across(&weighted["podAffinityTerm"]))
    })
}

/// The classes that a claim has, wants, or is on its way to.
pub(super) fn attributes_classes(claim: &Value) -> Vec<&str> {
    let status = &claim["status"];
    let places = [
        &claim["spec"]["volumeAttributesClassName"],
        &status["currentVolumeAttributesClassName"],
        &status["modifyVolumeStatus"]["targetVolumeAttributesClassName"],
    ];
    let named = places.into_iter().filter_map(Value::as_str).filter(|name| !name.is_empty());
    let mut names: Vec<&str> = named.collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
