//! What is wrong with the dialect's objects, beyond their schemas: what admission webhooks
//! and the scheduler would object to.

use std::collections::BTreeSet;

use convoy_api::object::member::{field, list, member, text};
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
use crate::diagnostic::Diagnostic;
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
    validation::schema_and(object, rules)
}

/// What is said beyond the schema.
fn rules(object: &Object) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = ignored_labels(object).collect();
    let kind = object.kind();
    if *kind == MANAGED_CLUSTER {
        cluster(object, &mut found);
    } else if *kind == MANAGED_CLUSTER_SET {
        if let Err(error) = Membership::read(object) {
            found.push(Diagnostic::error(object, "spec.clusterSelector", error));
        }
        let selector = field(field(object.spec(), "clusterSelector"), "labelSelector");
        let old = spelling::old_in_selector("spec.clusterSelector.labelSelector", selector);
        found.extend(old_spellings_of(object, old));
    } else if *kind == PLACEMENT_DECISION {
        found.extend(old_spellings_of(object, spelling::old_in_decision(object)));
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

/// Labels and annotations that are no texts, as YAML has it that leaves the quotes out. Groups and
/// sets go by labels, so that an ignored one must not go unnoticed.
fn ignored_labels(object: &Object) -> impl Iterator<Item = Diagnostic> {
    let parts = ["labels", "annotations"].into_iter();
    let entries = parts.flat_map(|part| {
        let members = field(object.metadata(), part).as_object().into_iter().flatten();
        members.map(move |(key, value)| (part, key, value))
    });
    entries.filter(|(_, _, value)| !value.is_string()).map(|(part, key, value)| {
        let message = format!(
            "the value {value} is no text and is ignored, and an API server refuses it; write \
             \"{value}\" in quotes"
        );
        Diagnostic::warning(object, format!("metadata.{part}[{key}]"), message)
    })
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
        Err(error) => found.push(Diagnostic::error(object, error.field, error.message)),
    }
    found.extend(old_spellings_of(object, spelling::old_in_placement(object)));
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
        if let Err(error) = Strategy::read(strategy) {
            let dot = if error.field.is_empty() { "" } else { "." };
            let field = format!("{at}.rolloutStrategy{dot}{}", error.field);
            found.push(Diagnostic::error(object, field, error.message));
        }
        for (field, now) in old_spellings(strategy) {
            found.push(old_spelling(object, format!("{at}.rolloutStrategy.{field}"), now));
        }
    }
}

fn old_spellings_of(
    object: &Object,
    found: Vec<(String, &'static str)>,
) -> impl Iterator<Item = Diagnostic> {
    found.into_iter().map(|(field, now)| old_spelling(object, field, now))
}

fn old_spelling(object: &Object, field: String, now: &str) -> Diagnostic {
    Diagnostic::warning(object, field, format!("old spelling, read as: {now}"))
}

/// What a work must be to be applied: named, distinct manifests that fit into one object.
fn manifests(object: &Object, spec: &Value, at: &str, empty: &str, found: &mut Vec<Diagnostic>) {
    for Finding { field, message, is_missing } in manifest_findings(spec, empty) {
        let field = format!("{at}.{field}");
        found.push(if is_missing {
            Diagnostic::required(object, field, &message)
        } else {
            Diagnostic::error(object, field, message)
        });
    }
}

/// The first thing that is wrong with the manifests of a work, as upstream's admission tells it.
pub(crate) fn manifests_problem(spec: &Value, empty: &str) -> Option<String> {
    manifest_findings(spec, empty).into_iter().next().map(|finding| finding.message)
}

/// Something that is wrong with the manifests of a work.
struct Finding {
    field: String,
    message: String,
    /// Something has to be there, and is not.
    is_missing: bool,
}

fn manifest_findings(spec: &Value, empty: &str) -> Vec<Finding> {
    let wrong = |field: String, message: String| Finding { field, message, is_missing: false };
    let missing =
        |field: String, what: &str| Finding { field, message: what.to_owned(), is_missing: true };
    let field = "workload.manifests";
    let manifests = list(member(spec, "workload").unwrap_or(&Value::Null), "manifests");
    if manifests.is_empty() {
        return vec![missing(field.to_owned(), empty)];
    }
    let mut found = Vec::new();
    let bytes: usize = manifests.iter().map(|manifest| manifest.to_string().len()).sum();
    if bytes > MANIFEST_BYTES_MAX {
        let message = format!(
            "the size of manifests is {bytes} bytes which exceeds the {MANIFEST_BYTES_MAX} limit"
        );
        found.push(wrong(field.to_owned(), message));
    }
    let mut seen = BTreeSet::new();
    for (index, manifest) in manifests.iter().enumerate() {
        let at = format!("{field}[{index}]");
        let metadata = manifest.get("metadata").unwrap_or(&Value::Null);
        let [api_version, kind] = ["apiVersion", "kind"].map(|field| text(manifest, field));
        let [name, namespace] = ["name", "namespace"].map(|field| text(metadata, field));
        if api_version.is_empty() || kind.is_empty() {
            found.push(missing(at, "apiVersion and kind of the manifest"));
        } else if !text(metadata, "generateName").is_empty() {
            let message = "generateName must not be set in manifest".to_owned();
            found.push(wrong(format!("{at}.metadata.generateName"), message));
        } else if name.is_empty() {
            let message = "name must be set in manifest".to_owned();
            found.push(wrong(format!("{at}.metadata.name"), message));
        } else if !seen.insert((api_version, kind, namespace, name)) {
            let message = format!(
                "duplicate manifest for resource {namespace}/{name} with resource type {api_version}.{kind}"
            );
            found.push(wrong(at, message));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use convoy_testkit::object;
    use serde_json::json;

    use super::*;
    use crate::diagnostic::Severity;

    #[test]
    fn labels_that_are_no_texts_are_told() {
        let decision =
            object("cluster.open-cluster-management.io/v1beta1", "PlacementDecision", "p")
                .namespace("n")
                .with("/metadata/labels", json!({"index": 0, "name": "a"}))
                .with("/status", json!({"decisions": []}))
                .build();
        let found = validate(&decision);
        let told: Vec<(&str, Severity)> =
            found.iter().map(|it| (it.field.as_str(), it.severity)).collect();
        assert_eq!(told, [("metadata.labels[index]", Severity::Warning)]);
        assert!(found[0].message.ends_with("write \"0\" in quotes"), "{}", found[0].message);
    }

    #[test]
    fn old_operators_of_sets_are_told() {
        let set = object("cluster.open-cluster-management.io/v1beta2", "ManagedClusterSet", "s")
            .spec(json!({"clusterSelector": {"selectorType": "LabelSelector", "labelSelector":
                {"matchExpressions": [{"key": "a", "operator": "Exist"}]}}}))
            .build();
        let found = validate(&set);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].message, "old spelling, read as: Exists");
    }
}
