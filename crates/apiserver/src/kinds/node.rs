//! Nodes, namespaces' siblings in being cluster-wide: taints, addresses, who they are.

mod columns;

use convoy_api::schema::{FieldError, Reason};
use convoy_api::text::Name;
use serde_json::Value;

use super::at::{At, Errors};
use super::fill::{self, Fields};
use super::kind::{Change, Kind};
use crate::column::Column;
use crate::registry::Resource;

pub(super) fn validate(object: &Value, old: Option<&Value>) -> Errors {
    let root = At::root(object);
    let spec = root.get("spec");
    let mut errors = Errors::new();
    taints(&spec.get("taints"), &mut errors);
    for range in spec.get("podCIDRs").items() {
        if !is_range(range.text()) {
            let detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            errors.push(range.invalid(detail));
        }
    }
    let Some(old) = old.map(At::root) else { return errors };
    let before = old.get("spec.podCIDRs");
    if !before.is_empty() && before.value != spec.get("podCIDRs").value {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(spec.get("podCIDRs").forbidden(detail));
    }
    let identity = old.get("spec.providerID");
    if !identity.is_empty() && identity.text() != spec.get("providerID").text() {
        let detail = "node updates may not change providerID except from \"\" to valid";
        errors.push(spec.get("providerID").forbidden(detail));
    }
    let mut seen: Vec<&Value> = Vec::new();
    for address in root.get("status.addresses").items() {
        if seen.contains(&address.value) {
            errors.push(address.duplicate());
        }
        seen.push(address.value);
    }
    errors
}

/// Faults of taints are reported under `metadata`, as they always have been.
fn taints(taints: &At<'_>, errors: &mut Errors) {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (index, taint) in taints.items().into_iter().enumerate() {
        let taint = At { path: format!("metadata.taints[{index}]"), value: taint.value };
        let (key, effect) = (taint.get("key"), taint.get("effect"));
        for detail in Name::QualifiedName.errors(key.text()) {
            errors.push(key.invalid_as(key.text(), &detail));
        }
        let details = Name::LabelValue.errors(taint.get("value").text());
        if !details.is_empty() {
            errors.push(taint.get("value").invalid(&details.join(";")));
        }
        effect.one_of(&["NoSchedule", "PreferNoSchedule", "NoExecute"], errors);
        let pair = (key.text(), effect.text());
        if seen.contains(&pair) {
            let detail = "taints must be unique by key and effect pair";
            errors.push(FieldError::about(Reason::Duplicate, &taint.path, taint.value, detail));
        }
        seen.push(pair);
    }
}

pub(super) fn is_range(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let Ok(length) = length.parse::<u8>() else { return false };
    match address.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(_)) => length <= 32,
        Ok(std::net::IpAddr::V6(_)) => length <= 128,
        Err(_) => false,
    }
}

/// The first of a node's ranges stands alone, too.
pub(super) fn default_ranges(object: &mut Value) {
    let first = object["spec"]["podCIDRs"][0].as_str().map(str::to_owned);
    let single = object["spec"]["podCIDR"].as_str().unwrap_or_default().to_owned();
    match (first, single.as_str()) {
        (Some(first), "") => object["spec"]["podCIDR"] = Value::from(first),
        (None, single) if !single.is_empty() => {
            object["spec"]["podCIDRs"] = serde_json::json!([single]);
        }
        (Some(first), single) if first != single => {
            object["spec"]["podCIDRs"] = serde_json::json!([single]);
        }
        _ => {}
    }
}

pub(super) struct Node;

impl Kind for Node {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        fill::with(object, default_allocatable);
        default_ranges(object);
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        validate(change.object, change.old)
    }

    fn brings_status(&self) -> bool {
        true
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &["spec.unschedulable"]
    }

    fn has_namespace_field(&self) -> bool {
        false
    }

    fn columns(&self) -> &'static [Column] {
        columns::COLUMNS
    }
}

/// A node that says nothing else gives all that it has.
fn default_allocatable(node: &mut Fields) {
    let Some(status) = fill::fields(node.get_mut("status")) else { return };
    if let Some(capacity) = status.get("capacity").filter(|capacity| capacity.is_object()) {
        let capacity = capacity.clone();
        fill::absent(status, "allocatable", || capacity);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nodes_stay_who_they_are() {
        let old = json!({"spec": {"providerID": "x://1", "podCIDRs": ["10.0.0.0/24"]}});
        assert!(validate(&old, Some(&old)).is_empty());
        let new = json!({"spec": {"providerID": "x://2", "podCIDRs": ["10.0.1.0/24"]}});
        let texts: Vec<String> =
            validate(&new, Some(&old)).iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to valid",
                "spec.providerID: Forbidden: node updates may not change providerID except from \"\" to valid",
            ]
        );
        assert!(validate(&new, Some(&json!({}))).is_empty());
    }

    #[test]
    fn taints_are_unique_by_key_and_effect() {
        let taint = |effect: &str| json!({"key": "a", "effect": effect});
        let sound = json!({"spec": {"taints": [taint("NoSchedule"), taint("NoExecute")]}});
        assert!(validate(&sound, None).is_empty());
        let twice = json!({"spec": {"taints": [taint("NoSchedule"), taint("NoSchedule")]}});
        assert_eq!(
            validate(&twice, None)[0].to_string(),
            "metadata.taints[1]: Duplicate value: {\"effect\":\"NoSchedule\",\"key\":\"a\"}: taints must be unique by key and effect pair"
        );
        assert_eq!(validate(&json!({"spec": {"taints": [taint("Never")]}}), None).len(), 1);
        assert_eq!(validate(&json!({"spec": {"podCIDRs": ["10.0.0.0"]}}), None).len(), 1);
    }
}
