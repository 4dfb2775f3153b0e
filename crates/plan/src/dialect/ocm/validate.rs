//! What is wrong with the dialect's objects, beyond their schemas: what admission webhooks
//! and the scheduler would object to.

use std::collections::BTreeSet;

use convoy_api::object::member::{list, member, text};
use convoy_api::ocm::names::{
    ADD_ON_PLACEMENT_SCORE, APPLIED_MANIFEST_WORK, CLUSTER_CLAIM, MANAGED_CLUSTER,
    MANAGED_CLUSTER_SET, MANAGED_CLUSTER_SET_BINDING, MANIFEST_WORK, MANIFEST_WORK_REPLICA_SET,
    PLACEMENT, PLACEMENT_DECISION,
};
use convoy_api::ocm::spelling;
use convoy_api::{GroupKind, Object};
use serde_json::Value;

use super::names::{LABEL_VALUE_MAX, NAME_FIELD};
use super::read::cluster::Membership;
use super::read::placement::{Policy, spec};
use super::read::replica_set::owner_value;
use super::read::strategy::{Strategy, old_spellings};
use crate::diagnostic::{Diagnostic, Severity};
use crate::selector::is_dns_label;
use crate::validation;

/// The most bytes that the manifests of one work may have together.
const MANIFEST_BYTES_MAX: usize = 500 * 1024;

pub(crate) const KINDS: &[GroupKind] = &[
    MANAGED_CLUSTER,
    MANAGED_CLUSTER_SET,
    MANAGED_CLUSTER_SET_BINDING,
    PLACEMENT,
    PLACEMENT_DECISION,
    ADD_ON_PLACEMENT_SCORE,
    CLUSTER_CLAIM,
    MANIFEST_WORK,
    APPLIED_MANIFEST_WORK,
    MANIFEST_WORK_REPLICA_SET,
];

pub(crate) fn validate(object: &Object) -> Vec<Diagnostic> {
    let mut found = validation::schema(object);
    let kind = object.kind();
    if *kind == MANAGED_CLUSTER {
        cluster(object, &mut found);
    } else if *kind == MANAGED_CLUSTER_SET {
        if let Err(error) = Membership::read(object) {
            found.push(Diagnostic::error(object, "spec.clusterSelector", error));
        }
    } else if *kind == MANAGED_CLUSTER_SET_BINDING {
        binding(object, &mut found);
    } else if *kind == PLACEMENT {
        placement(object, &mut found);
    } else if *kind == MANIFEST_WORK {
        let empty = "manifests should not be empty";
        manifests(object, object.spec(), "spec", empty, &mut found);
    } else if *kind == MANIFEST_WORK_REPLICA_SET {
        replica_set(object, &mut found);
    }
    found
}

fn cluster(object: &Object, found: &mut Vec<Diagnostic>) {
    if !is_dns_label(object.name()) {
        let right = "the cluster's namespace has the same name: want at most 63 lower-case \
                     letters, digits or '-', beginning and ending with a letter or digit";
        found.push(Diagnostic::invalid(
            object,
            "metadata.name",
            &Value::from(object.name().as_str()),
            right,
        ));
    }
    for (index, config) in list(object.spec(), "managedClusterClientConfigs").iter().enumerate() {
        let url = config.get("url").unwrap_or(&Value::Null);
        if !url.as_str().is_some_and(|url| url.starts_with("https://") && url.len() > 8) {
            let field = format!("spec.managedClusterClientConfigs[{index}].url");
            found.push(Diagnostic::invalid(object, field, url, "want an https URL"));
        }
    }
}

fn binding(object: &Object, found: &mut Vec<Diagnostic>) {
    let set = object.spec().get("clusterSet").unwrap_or(&Value::Null);
    if set.as_str() != Some(object.name()) {
        let right =
            "the ManagedClusterSetBinding must have the same name as the target ManagedClusterSet";
        found.push(Diagnostic::invalid(object, "spec.clusterSet", set, right));
    }
}

fn placement(object: &Object, found: &mut Vec<Diagnostic>) {
    match spec(object) {
        Ok((spec, raw)) => {
            for wrong in Policy::of(spec, &raw).err().into_iter().flatten() {
                found.push(Diagnostic::error(object, wrong.field, wrong.message));
            }
        }
        // As a rule the schema has named the value at fault already, and better.
        Err(_) if has_error(found) => {}
        Err(error) => found.push(Diagnostic::error(object, error.field, error.message)),
    }
    for (field, now) in spelling::old_in_placement(object.spec()) {
        found.push(old_spelling(object, field, now));
    }
}

fn has_error(found: &[Diagnostic]) -> bool {
    found.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}

/// The works of a replica set say whose they are by `namespace.name` in a label. One that is
/// being deleted is let go whatever its name is.
fn owner(object: &Object, found: &mut Vec<Diagnostic>) {
    let owner = owner_value(object);
    if owner.len() > LABEL_VALUE_MAX && !object.is_deleting() {
        let (name, length) = (Value::from(object.name().as_str()), owner.len());
        let name_max = LABEL_VALUE_MAX.saturating_sub(object.namespace().len() + 1);
        let right = format!(
            "ManifestWorks are labelled with {owner:?}, which has {length} characters, and a \
             label value has at most {LABEL_VALUE_MAX}: in namespace {} the name must have at \
             most {name_max}",
            object.namespace()
        );
        found.push(Diagnostic::invalid(object, NAME_FIELD, &name, &right));
    }
}

fn replica_set(object: &Object, found: &mut Vec<Diagnostic>) {
    let mistyped = has_error(found);
    owner(object, found);
    let template = object.spec().get("manifestWorkTemplate").unwrap_or(&Value::Null);
    let empty = "Workload manifests should not be empty";
    manifests(object, template, "spec.manifestWorkTemplate", empty, found);
    let mut names = BTreeSet::new();
    for (index, entry) in list(object.spec(), "placementRefs").iter().enumerate() {
        let at = format!("spec.placementRefs[{index}]");
        if !names.insert(text(entry, "name")) {
            let right = "another entry refers to the same placement; remove one of them";
            let name = entry.get("name").unwrap_or(&Value::Null);
            found.push(Diagnostic::invalid(object, format!("{at}.name"), name, right));
        }
        let strategy = entry.get("rolloutStrategy").unwrap_or(&Value::Null);
        match Strategy::read(strategy) {
            Err(error) if error.field.is_empty() && mistyped => {}
            Err(error) => {
                let dot = if error.field.is_empty() { "" } else { "." };
                let field = format!("{at}.rolloutStrategy{dot}{}", error.field);
                found.push(Diagnostic::error(object, field, error.message));
            }
            Ok(_) => {}
        }
        for (field, now) in old_spellings(strategy) {
            found.push(old_spelling(object, format!("{at}.rolloutStrategy.{field}"), now));
        }
    }
}

fn old_spelling(object: &Object, field: String, now: &str) -> Diagnostic {
    Diagnostic::warning(object, field, format!("old spelling, read as: {now}"))
}

/// What a work must be to be applied: named, distinct manifests that fit into one object.
fn manifests(object: &Object, spec: &Value, at: &str, empty: &str, found: &mut Vec<Diagnostic>) {
    let field = format!("{at}.workload.manifests");
    let manifests = list(member(spec, "workload").unwrap_or(&Value::Null), "manifests");
    if manifests.is_empty() {
        found.push(Diagnostic::required(object, field, empty));
        return;
    }
    let bytes: usize = manifests.iter().map(|manifest| manifest.to_string().len()).sum();
    if bytes > MANIFEST_BYTES_MAX {
        let message = format!(
            "the size of manifests is {bytes} bytes which exceeds the {MANIFEST_BYTES_MAX} limit"
        );
        found.push(Diagnostic::error(object, field.clone(), message));
    }
    let mut seen = BTreeSet::new();
    for (index, manifest) in manifests.iter().enumerate() {
        let at = format!("{field}[{index}]");
        let metadata = manifest.get("metadata").unwrap_or(&Value::Null);
        let [api_version, kind] = ["apiVersion", "kind"].map(|field| text(manifest, field));
        let [name, namespace] = ["name", "namespace"].map(|field| text(metadata, field));
        if api_version.is_empty() || kind.is_empty() {
            found.push(Diagnostic::required(object, at, "apiVersion and kind of the manifest"));
        } else if !text(metadata, "generateName").is_empty() {
            let message = "generateName must not be set in manifest";
            found.push(Diagnostic::error(object, format!("{at}.metadata.generateName"), message));
        } else if name.is_empty() {
            let message = "name must be set in manifest";
            found.push(Diagnostic::error(object, format!("{at}.metadata.name"), message));
        } else if !seen.insert((api_version, kind, namespace, name)) {
            let message = format!(
                "duplicate manifest for resource {namespace}/{name} with resource type {api_version}.{kind}"
            );
            found.push(Diagnostic::error(object, at, message));
        }
    }
}
