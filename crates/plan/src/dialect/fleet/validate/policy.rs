//! Policies: which parts go with which placement type, and tolerations.

use std::collections::BTreeSet;

use convoy_api::Object;
use serde_json::{Value, json};

use crate::diagnostic::Diagnostic;
use crate::dialect::fleet::read::placement::{field, list, text};
use crate::dialect::fleet::validate::{NAME_MAX, QUALIFIED_NAME, property, selector};
use crate::selector::{is_dns_subdomain, is_label_value, is_qualified_name};

const AFFINITY: &str = "spec.policy.affinity.clusterAffinity";

pub(crate) fn validate(object: &Object, policy: &Value) -> Vec<Diagnostic> {
    let mut found = names(object, policy);
    let affinity = field(field(policy, "affinity"), "clusterAffinity");
    found.extend(required(object, affinity));
    found.extend(preferred(object, affinity, text(policy, "placementType")));
    found.extend(tolerations(object, policy));
    found
}

fn names(object: &Object, policy: &Value) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, name) in list(policy, "clusterNames").iter().enumerate() {
        let at = format!("spec.policy.clusterNames[{index}]");
        let Some(name) = name.as_str() else { continue };
        if name.len() > NAME_MAX || !is_dns_subdomain(name) {
            let right =
                "want the name of a cluster: at most 63 lower-case letters, digits, '-' or '.'";
            found.push(Diagnostic::invalid(object, at, &json!(name), right));
        } else if !seen.insert(name) {
            found.push(Diagnostic::error(object, at, format!("Duplicate value: {name:?}")));
        }
    }
    found
}

fn required(object: &Object, affinity: &Value) -> Vec<Diagnostic> {
    let base = format!("{AFFINITY}.requiredDuringSchedulingIgnoredDuringExecution");
    let required = field(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
    let mut found = Vec::new();
    for (index, term) in list(required, "clusterSelectorTerms").iter().enumerate() {
        let at = format!("{base}.clusterSelectorTerms[{index}]");
        found.extend(selector(
            object,
            &format!("{at}.labelSelector"),
            field(term, "labelSelector"),
            "cluster selector",
        ));
        if !field(term, "propertySorter").is_null() {
            let message = "must be absent: a required term either matches or not";
            found.push(Diagnostic::error(object, format!("{at}.propertySorter"), message));
        }
        let expressions = list(field(term, "propertySelector"), "matchExpressions");
        let at = format!("{at}.propertySelector.matchExpressions");
        found.extend(property::requirements(object, &at, expressions));
    }
    found
}

fn preferred(object: &Object, affinity: &Value, placement_type: &str) -> Vec<Diagnostic> {
    let base = format!("{AFFINITY}.preferredDuringSchedulingIgnoredDuringExecution");
    let terms = list(affinity, "preferredDuringSchedulingIgnoredDuringExecution");
    let mut found = Vec::new();
    if !terms.is_empty() && matches!(placement_type, "" | "PickAll") {
        let message = "must be absent: placement type PickAll takes every cluster that fits";
        found.push(Diagnostic::error(object, base.clone(), message));
    }
    for (index, preference) in terms.iter().enumerate() {
        let at = format!("{base}[{index}].preference");
        let term = field(preference, "preference");
        found.extend(selector(
            object,
            &format!("{at}.labelSelector"),
            field(term, "labelSelector"),
            "preferred cluster selector",
        ));
        if !field(term, "propertySelector").is_null() {
            let message = "must be absent: a preferred term ranks with propertySorter";
            found.push(Diagnostic::error(object, format!("{at}.propertySelector"), message));
        }
        let sorter = field(term, "propertySorter");
        if !sorter.is_null() {
            let at = format!("{at}.propertySorter.name");
            found.extend(property::name(object, &at, text(sorter, "name")));
        }
    }
    found
}

fn tolerations(object: &Object, policy: &Value) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, toleration) in list(policy, "tolerations").iter().enumerate() {
        let at = |field: &str| format!("spec.policy.tolerations[{index}]{field}");
        let [key, operator, value, effect] =
            ["key", "operator", "value", "effect"].map(|field| text(toleration, field));
        if !key.is_empty() && !is_qualified_name(key) {
            let right = QUALIFIED_NAME;
            found.push(Diagnostic::invalid(object, at(".key"), &json!(key), right));
        }
        if !is_label_value(value) {
            let right = "want a label value: at most 63 letters, digits, '-', '_' or '.'";
            found.push(Diagnostic::invalid(object, at(".value"), &json!(value), right));
        }
        let operator = if operator.is_empty() { "Equal" } else { operator };
        if !seen.insert((key, operator, value, effect)) {
            let message = format!("Duplicate value: {toleration}: tolerations must be unique");
            found.push(Diagnostic::error(object, at(""), message));
        }
    }
    found
}
