//! Overrides: what they select, which clusters, and what they may change.

use std::collections::BTreeSet;

use convoy_api::Object;
use serde_json::{Value, json};

use crate::diagnostic::Diagnostic;
use crate::dialect::fleet::names;
use crate::dialect::fleet::read::placement::{field, list, text};
use crate::dialect::fleet::validate::{Moment, notation, selector};
use crate::world::World;

/// The most overrides of one kind.
const OVERRIDES_MAX: usize = 100;

pub(crate) fn validate(world: &World, object: &Object, moment: Moment) -> Vec<Diagnostic> {
    let mut found = selectors(object);
    found.extend(beside_others(world, object, moment));
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

/// A selector as messages print it.
fn printed(object: &Object, term: &Value) -> String {
    if *object.kind() == names::CLUSTER_OVERRIDE {
        notation::resource_term(term)
    } else {
        notation::resource(term)
    }
}

fn selectors(object: &Object) -> Vec<Diagnostic> {
    let name = selector_field(object);
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, term) in list(object.spec(), name).iter().enumerate() {
        let at = format!("spec.{name}[{index}]");
        if !field(term, "labelSelector").is_null() {
            let message = format!(
                "label selector is not supported for resource selection {}: select it by name",
                printed(object, term)
            );
            found.push(Diagnostic::error(object, format!("{at}.labelSelector"), message));
        } else if text(term, "name").is_empty() {
            let why = format!(
                "resource name is required for resource selection {}",
                printed(object, term)
            );
            found.push(Diagnostic::required(object, format!("{at}.name"), &why));
        } else if !seen.insert(identity(term)) {
            let printed = printed(object, term);
            let message = format!("resource selector {printed} already exists, and must be unique");
            found.push(Diagnostic::error(object, at, message));
        }
    }
    found
}

/// Of two overrides for one resource the later one is at fault, and so is the 101st. An object that
/// is about to be stored comes after all that are.
fn beside_others(world: &World, object: &Object, moment: Moment) -> Vec<Diagnostic> {
    let name = selector_field(object);
    let age = |other: &Object| (other.created_at(), other.key().clone());
    let own = age(object);
    let is_earlier = |other: &&Object| match moment {
        Moment::Admission => other.key() != object.key(),
        Moment::Planning => age(other) < own,
    };
    let neighbours: Vec<&Object> = world
        .of(object.kind())
        .filter(is_earlier)
        .filter(|other| other.namespace() == object.namespace())
        .collect();
    let mut found = Vec::new();
    let is_new = world.get(object.key()).is_none() || moment == Moment::Planning;
    if is_new && neighbours.len() >= OVERRIDES_MAX {
        let message = if *object.kind() == names::CLUSTER_OVERRIDE {
            "clusterResourceOverride limit has been reached: at most 100 cluster resources can be created"
        } else {
            "resourceOverride limit has been reached: at most 100 resources can be created"
        };
        found.push(Diagnostic::error(object, "metadata.name", message));
    }
    for other in neighbours {
        let taken: BTreeSet<[&str; 4]> = list(other.spec(), name).iter().map(identity).collect();
        for (index, term) in list(object.spec(), name).iter().enumerate() {
            if taken.contains(&identity(term)) {
                let at = format!("spec.{name}[{index}]");
                let message = format!(
                    "invalid resource selector {}: the resource has been selected by both {} and \
                     {}, which is not supported",
                    printed(object, term),
                    object.name(),
                    other.name()
                );
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
            "cluster selector",
        ));
        for name in ["propertySelector", "propertySorter"] {
            if !field(term, name).is_null() {
                let message = "invalid clusterSelector: only labelSelector is supported";
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
            let message = "JSONPatchOverrides cannot be set when the override type is Delete";
            return vec![Diagnostic::error(object, at, message)];
        }
        ("" | "JSONPatch", true) => {
            return vec![Diagnostic::required(object, at, "JSONPatchOverrides cannot be empty")];
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
            let message = "remove operation cannot have value";
            found.push(Diagnostic::error(object, format!("{at}[{index}].value"), message));
        }
    }
    found
}

/// Why a path may not be patched. None: it may.
fn forbidden(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("path cannot be empty");
    }
    let Some(rest) = path.strip_prefix('/') else {
        return Some("path must start with /");
    };
    let parts: Vec<&str> = rest.split('/').collect();
    match parts.as_slice() {
        ["kind" | "apiVersion", ..] => return Some("cannot override typeMeta fields"),
        ["status", ..] => return Some("cannot override status fields"),
        ["metadata"] => return Some("cannot override field metadata"),
        ["metadata", "annotations" | "labels", ..] => {}
        ["metadata", ..] => {
            return Some("cannot override metadata fields except annotations and labels");
        }
        _ => {}
    }
    let has_gap = parts.iter().any(|part| part.trim().is_empty());
    has_gap.then_some("path cannot contain empty string")
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
        let planned = |object: &Object| beside_others(&world, object, Moment::Planning);
        assert!(planned(&early).is_empty());
        assert_eq!(planned(&late)[0].field, "spec.clusterResourceSelectors[0]");
        // At admission every other one was there before.
        let refused = &beside_others(&world, &early, Moment::Admission)[0].message;
        let wanted = "the resource has been selected by both b and a, which is not supported";
        assert!(refused.contains(wanted), "{refused}");
    }
}
