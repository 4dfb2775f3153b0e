//! Overrides: what they select, which clusters, and what they may change.

use std::collections::BTreeSet;

use convoy_api::Object;
use serde_json::{Value, json};

use crate::diagnostic::Diagnostic;
use crate::dialect::fleet::names;
use crate::dialect::fleet::read::placement::{field, list, text};
use crate::dialect::fleet::validate::selector;
use crate::world::World;

/// The most overrides of one kind.
const OVERRIDES_MAX: usize = 100;

pub(crate) fn validate(world: &World, object: &Object) -> Vec<Diagnostic> {
    let mut found = selectors(object);
    found.extend(beside_others(world, object));
    for (index, rule) in list(field(object.spec(), "policy"), "overrideRules").iter().enumerate() {
        let at = format!("spec.policy.overrideRules[{index}]");
        found.extend(clusters(object, &at, field(rule, "clusterSelector")));
        found.extend(patches(object, &at, rule));
    }
    found
}

fn selector_field(object: &Object) -> &'static str {
    if *object.kind() == names::CLUSTER_OVERRIDE {
        "clusterResourceSelectors"
    } else {
        "resourceSelectors"
    }
}

fn identity(term: &Value) -> [&str; 4] {
    ["group", "version", "kind", "name"].map(|field| text(term, field))
}

fn selectors(object: &Object) -> Vec<Diagnostic> {
    let name = selector_field(object);
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, term) in list(object.spec(), name).iter().enumerate() {
        let at = format!("spec.{name}[{index}]");
        if !field(term, "labelSelector").is_null() {
            let message = "must be absent: overrides select by name";
            found.push(Diagnostic::error(object, format!("{at}.labelSelector"), message));
        }
        if text(term, "name").is_empty() {
            let at = format!("{at}.name");
            found.push(Diagnostic::required(object, at, "overrides select by name"));
        }
        if !seen.insert(identity(term)) {
            let message = format!("Duplicate value: {term}: resources must be unique");
            found.push(Diagnostic::error(object, at, message));
        }
    }
    found
}

/// Of two overrides for one resource the later one is at fault, and so is the 101st.
fn beside_others(world: &World, object: &Object) -> Vec<Diagnostic> {
    let name = selector_field(object);
    let age = |other: &Object| (other.created_at(), other.key().clone());
    let own = age(object);
    let earlier: Vec<&Object> = world.of(object.kind()).filter(|other| age(other) < own).collect();
    let mut found = Vec::new();
    if earlier.len() >= OVERRIDES_MAX {
        let message = format!("there are {OVERRIDES_MAX} overrides of this kind already");
        found.push(Diagnostic::error(object, "metadata.name", message));
    }
    let neighbours = earlier.iter().filter(|other| other.namespace() == object.namespace());
    for other in neighbours {
        let taken: BTreeSet<[&str; 4]> = list(other.spec(), name).iter().map(identity).collect();
        for (index, term) in list(object.spec(), name).iter().enumerate() {
            if taken.contains(&identity(term)) {
                let at = format!("spec.{name}[{index}]");
                let message = format!("{} selects the same resource: {term}", other.name());
                found.push(Diagnostic::error(object, at, message));
            }
        }
    }
    found
}

fn clusters(object: &Object, at: &str, clusters: &Value) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (index, term) in list(clusters, "clusterSelectorTerms").iter().enumerate() {
        let at = format!("{at}.clusterSelector.clusterSelectorTerms[{index}]");
        found.extend(selector(
            object,
            &format!("{at}.labelSelector"),
            field(term, "labelSelector"),
        ));
        for name in ["propertySelector", "propertySorter"] {
            if !field(term, name).is_null() {
                let message = "must be absent: overrides select clusters by label";
                found.push(Diagnostic::error(object, format!("{at}.{name}"), message));
            }
        }
    }
    found
}

fn patches(object: &Object, at: &str, rule: &Value) -> Vec<Diagnostic> {
    let patches = list(rule, "jsonPatchOverrides");
    let at = format!("{at}.jsonPatchOverrides");
    match (text(rule, "overrideType"), patches.is_empty()) {
        ("Delete", false) => {
            let message = "must be absent: overrideType Delete leaves the object out";
            return vec![Diagnostic::error(object, at, message)];
        }
        ("" | "JSONPatch", true) => {
            return vec![Diagnostic::required(object, at, "overrideType JSONPatch needs patches")];
        }
        _ => {}
    }
    let mut found = Vec::new();
    for (index, patch) in patches.iter().enumerate() {
        let path = text(patch, "path");
        if let Some(wrong) = forbidden(path) {
            found.push(Diagnostic::invalid(
                object,
                format!("{at}[{index}].path"),
                &json!(path),
                wrong,
            ));
        }
        if text(patch, "op") == "remove" && !field(patch, "value").is_null() {
            let message = "must be absent: op remove takes no value";
            found.push(Diagnostic::error(object, format!("{at}[{index}].value"), message));
        }
    }
    found
}

/// Why a path may not be patched. None: it may.
fn forbidden(path: &str) -> Option<&'static str> {
    let Some(rest) = path.strip_prefix('/') else {
        return Some("must begin with /");
    };
    let parts: Vec<&str> = rest.split('/').collect();
    if parts.iter().any(|part| part.is_empty()) {
        return Some("must not have empty parts");
    }
    match parts.as_slice() {
        ["kind" | "apiVersion", ..] => Some("kind and apiVersion cannot be overridden"),
        ["status", ..] => Some("status cannot be overridden"),
        ["metadata", "annotations" | "labels", ..] => None,
        ["metadata", ..] => Some("of metadata only annotations and labels can be overridden"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_and_status_are_out_of_reach() {
        let cases = [
            ("/spec/replicas", true),
            ("/metadata/labels/a~1b", true),
            ("/metadata/annotations", true),
            ("/metadata/name", false),
            ("/metadata", false),
            ("/kind", false),
            ("/apiVersion", false),
            ("/status/x", false),
            ("spec", false),
            ("/spec//x", false),
            ("/", false),
        ];
        for (path, allowed) in cases {
            assert_eq!(forbidden(path).is_none(), allowed, "{path}");
        }
    }

    #[test]
    fn the_later_of_two_overrides_is_refused() {
        let made = |name: &str, created: &str| {
            Object::from_value(json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
                "kind": "ClusterResourceOverride",
                "metadata": {"name": name, "creationTimestamp": created},
                "spec": {"clusterResourceSelectors": [
                    {"group": "", "version": "v1", "kind": "Namespace", "name": "shop"}]}}))
            .unwrap()
        };
        let late = made("a", "2026-01-02T00:00:00Z");
        let early = made("b", "2026-01-01T00:00:00Z");
        let world: World = [late.clone(), early.clone()].into_iter().collect();
        assert!(beside_others(&world, &early).is_empty());
        assert_eq!(beside_others(&world, &late)[0].field, "spec.clusterResourceSelectors[0]");
    }
}
