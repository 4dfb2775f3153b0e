//! The object that a manifest asks for, as it should read on the member.

use convoy_api::Object;
use convoy_api::object::member::{field, member};
use serde_json::{Map, Value, json};

use super::manifest::Item;
use super::owner::{reference, references};
use crate::dialect::fleet_agent::read::desired::sanitized;
use crate::dialect::fleet_agent::read::manifest::is_built_in;
use crate::merge_patch;
use crate::three_way;

/// Kinds most of which is set by others or can never change: only what the manifest sets is
/// written.
const OVERLAID: [&str; 4] = ["Job", "Namespace", "Node", "Pod"];

/// Fields that others set, and that stay where the manifest says nothing about them.
const KEPT: [(&str, &str, &[&str]); 4] = [
    (
        "Service",
        "spec",
        &["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"],
    ),
    ("ServiceAccount", "", &["secrets", "imagePullSecrets"]),
    ("PersistentVolumeClaim", "spec", &["volumeName", "volumeMode", "storageClassName"]),
    ("PersistentVolume", "spec", &["claimRef", "volumeMode"]),
];

/// The manifest as it is sent for an object that does not exist.
pub(crate) fn created(item: &Item<'_>, owner: Option<&Object>) -> Value {
    let mut object = manifest(item);
    let metadata = &mut object["metadata"];
    for name in ["labels", "annotations"] {
        if let Some(entries) = metadata.get_mut(name).and_then(Value::as_object_mut) {
            entries.retain(|key, _| !key.ends_with('-'));
        }
    }
    if let Some(owner) = owner {
        metadata["ownerReferences"] = json!([reference(owner)]);
    }
    object
}

/// `live` as it should read: what the manifest says, with the labels, annotations, finalizers and
/// owners that it has beside.
pub(crate) fn overwritten(item: &Item<'_>, live: &Object) -> Value {
    let kind = live.kind();
    if is_built_in(kind) && OVERLAID.contains(&kind.kind.as_str()) {
        return overlaid(item, live);
    }
    let mut wanted = manifest(item);
    for (_, parent, names) in KEPT.iter().filter(|(kept, ..)| kind.kind == *kept) {
        let present = if parent.is_empty() { live.raw() } else { field(live.raw(), parent) };
        let target = if parent.is_empty() { Some(&mut wanted) } else { wanted.get_mut(*parent) };
        let Some(target) = target.and_then(Value::as_object_mut) else { continue };
        for name in *names {
            if let (false, Some(value)) = (target.contains_key(*name), member(present, name)) {
                target.insert((*name).to_owned(), value.clone());
            }
        }
    }
    wanted["apiVersion"] = json!(live.api_version());
    wanted["metadata"] = merged_metadata(field(&wanted, "metadata"), live.metadata());
    if let Some(status) = member(live.raw(), "status") {
        wanted["status"] = status.clone();
    }
    wanted
}

/// What `live` says otherwise than the manifest; none if it says all that the manifest does.
pub(crate) fn difference(item: &Item<'_>, live: &Object) -> Option<Value> {
    merge_patch::between(&overlaid(item, live), live.raw())
}

/// `live` with what the manifest sets.
fn overlaid(item: &Item<'_>, live: &Object) -> Value {
    let mut wanted = manifest(item);
    wanted["metadata"] = json!({});
    let keyed = is_built_in(live.kind());
    let mut merged = three_way::merged(&Value::Null, &wanted, live.raw(), keyed);
    merged["apiVersion"] = json!(live.api_version());
    merged["metadata"] = merged_metadata(field(item.raw, "metadata"), live.metadata());
    merged
}

/// `live` with or without the reference to its owner, and otherwise as `wanted`.
pub(crate) fn owned(wanted: Value, live: &Object, applied_work: &Object, is_owned: bool) -> Value {
    let mut wanted = wanted;
    let references = references(live, applied_work, is_owned);
    if let Some(metadata) = wanted.get_mut("metadata").and_then(Value::as_object_mut) {
        if references.is_empty() {
            metadata.shift_remove("ownerReferences");
        } else {
            metadata.insert("ownerReferences".into(), Value::Array(references));
        }
    }
    wanted
}

/// The live metadata with the labels and annotations of a manifest. One whose key ends in `-`
/// takes the label or annotation of that name away.
fn merged_metadata(wanted: &Value, live: &Value) -> Value {
    let mut metadata = live.as_object().cloned().unwrap_or_default();
    for name in ["labels", "annotations"] {
        let Some(given) = field(wanted, name).as_object().filter(|given| !given.is_empty()) else {
            continue;
        };
        let mut entries: Map<String, Value> =
            metadata.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
        for (key, value) in given {
            match key.strip_suffix('-') {
                Some(gone) => _ = entries.shift_remove(gone),
                None => _ = entries.insert(key.clone(), value.clone()),
            }
        }
        if !entries.is_empty() || metadata.contains_key(name) {
            metadata.insert(name.to_owned(), Value::Object(entries));
        }
    }
    Value::Object(metadata)
}

/// A manifest without what only a server sets.
pub(crate) fn manifest(item: &Item<'_>) -> Value {
    let mut object = sanitized(item.raw);
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata.filter(|_| item.identifier.namespace.is_empty()) {
        metadata.shift_remove("namespace");
    }
    object
}
