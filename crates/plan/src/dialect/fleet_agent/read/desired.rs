//! The object that a manifest asks for, as it should read on the member.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use convoy_api::Object;
use convoy_api::object::member::{field, list, text};
use serde_json::{Map, Value, json};

use super::manifest::{Manifest, is_built_in};
use crate::dialect::fleet_agent::names::{
    APPLIED_WORK, FOREIGN_ANNOTATIONS, LAST_APPLIED, PLACEMENT_API, RESERVED_DOMAINS, SPEC_HASH,
};
use crate::hash::content as hash;
use crate::three_way;

/// Kubernetes takes no more bytes of annotations.
const ANNOTATION_BYTES_MAX: usize = 256 * 1024;

/// Fields that a server sets, and no manifest.
const SERVER_METADATA: [&str; 8] = [
    "resourceVersion",
    "uid",
    "generation",
    "creationTimestamp",
    "managedFields",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// The hash of a manifest, as the annotation of an applied object records it.
pub(crate) fn hash_of(manifest: &Manifest<'_>) -> String {
    let mut cleaned = comparable(manifest.raw);
    // What upstream's cleaning leaves behind as empty takes part in its hash.
    let metadata = &mut cleaned["metadata"];
    for (name, empty) in [
        ("annotations", json!({})),
        ("labels", json!({})),
        ("finalizers", json!([])),
        ("managedFields", json!([])),
        ("ownerReferences", json!([])),
    ] {
        if field(metadata, name).is_null() {
            metadata[name] = empty;
        }
    }
    hash::hex(&hash::sorted(&cleaned))
}

/// An object without what says nothing when two of them are compared.
pub(crate) fn comparable(object: &Value) -> Value {
    let mut copy = object.clone();
    let Some(fields) = copy.as_object_mut() else { return copy };
    fields.shift_remove("status");
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    if let Some(metadata) = metadata.as_object_mut() {
        for name in SERVER_METADATA {
            metadata.shift_remove(name);
        }
        for name in ["name", "namespace", "generateName", "finalizers", "ownerReferences"] {
            metadata.shift_remove(name);
        }
        for name in ["annotations", "labels"] {
            drop_reserved(metadata, name);
        }
    }
    for path in ["/spec/template/metadata", "/spec/jobTemplate/spec/template/metadata"] {
        if let Some(template) = copy.pointer_mut(path).and_then(Value::as_object_mut) {
            template.shift_remove("creationTimestamp");
        }
    }
    copy
}

/// Takes reserved keys away. The map stays though it is empty, so that a key that only one side has
/// is a difference at that key, and not of the whole map.
fn drop_reserved(metadata: &mut Map<String, Value>, name: &str) {
    let entries = metadata.entry(name).or_insert(Value::Null);
    if entries.is_null() {
        *entries = json!({});
    }
    let Some(entries) = entries.as_object_mut() else { return };
    entries.retain(|key, _| !RESERVED_DOMAINS.iter().any(|domain| key.contains(domain)));
}

/// Whether an object carries the manifest that was applied to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastApplied {
    /// In an annotation, which is empty where the manifest is too large for it.
    Annotated,
    /// The server keeps it.
    None,
}

/// `live` as it should read. Its owners are `owners` and this Work.
pub(crate) fn updated(manifest: &Manifest<'_>, live: &Object, owners: &[Value]) -> Value {
    let wanted = sent(manifest, owners, LastApplied::Annotated);
    let mut last = last_applied(live);
    if let Some(metadata) = last.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("ownerReferences");
    }
    let mut base = live.raw().clone();
    // Owners are given whole: the merge must not keep those that are to go.
    if let Some(metadata) = base.get_mut("metadata").and_then(Value::as_object_mut) {
        let same = list(live.metadata(), "ownerReferences") == owners;
        if !same {
            metadata.shift_remove("ownerReferences");
        }
    }
    let mut merged = three_way::merged(&last, &wanted, &base, is_built_in(live.kind()));
    // A version is a way to read the object, not a part of it.
    merged["apiVersion"] = json!(live.api_version());
    merged
}

/// `live` with only what the manifest sets.
pub(crate) fn overlaid(manifest: &Manifest<'_>, live: &Object) -> Value {
    let wanted = sanitized(manifest.raw);
    let mut merged = three_way::merged(&wanted, &wanted, live.raw(), is_built_in(live.kind()));
    merged["apiVersion"] = json!(live.api_version());
    merged
}

/// The reference by which an object belongs to an `AppliedWork`.
pub(crate) fn owner(applied_work: &Object) -> Value {
    json!({
        "apiVersion": PLACEMENT_API,
        "kind": APPLIED_WORK.kind,
        "name": applied_work.name(),
        "uid": applied_work.uid().unwrap_or_default(),
        "blockOwnerDeletion": true,
    })
}

/// The manifest as it is sent, with these owners.
pub(crate) fn sent(manifest: &Manifest<'_>, owners: &[Value], history: LastApplied) -> Value {
    let mut object = sanitized(manifest.raw);
    let hash = hash_of(manifest);
    let metadata = &mut object["metadata"];
    if !metadata["annotations"].is_object() {
        metadata["annotations"] = json!({});
    }
    metadata["annotations"][SPEC_HASH] = json!(hash);
    metadata["ownerReferences"] = json!(owners);
    if history == LastApplied::Annotated {
        let last = hash::sorted(&object).to_string();
        let annotations = &mut object["metadata"]["annotations"];
        annotations[LAST_APPLIED] = json!(last);
        if annotation_bytes(annotations) > ANNOTATION_BYTES_MAX {
            annotations[LAST_APPLIED] = json!("");
        }
    }
    object
}

/// Whether what was applied does not fit into an annotation, so that no client can merge it.
pub(crate) fn is_too_large(manifest: &Manifest<'_>, owners: &[Value]) -> bool {
    let sent = sent(manifest, owners, LastApplied::Annotated);
    sent["metadata"]["annotations"][LAST_APPLIED] == json!("")
}

fn annotation_bytes(annotations: &Value) -> usize {
    let entries = annotations.as_object().into_iter().flatten();
    entries.map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum()
}

/// Whether `live` has every field of `sent`; owners are looked at elsewhere.
pub(crate) fn covers(live: &Object, sent: &Value) -> bool {
    let mut wanted = sent.clone();
    if let Some(metadata) = wanted.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("ownerReferences");
    }
    wanted["apiVersion"] = json!(live.api_version());
    three_way::merged(&wanted, &wanted, live.raw(), is_built_in(live.kind())) == *live.raw()
}

/// A manifest without what only a server sets, and in the form in which it is stored.
pub(crate) fn sanitized(manifest: &Value) -> Value {
    let mut object = manifest.clone();
    let is_secret = text(manifest, "apiVersion") == "v1" && text(manifest, "kind") == "Secret";
    let Some(fields) = object.as_object_mut() else { return object };
    fields.shift_remove("status");
    let texts = if is_secret { fields.shift_remove("stringData") } else { None };
    if let Some(Value::Object(texts)) = texts {
        let data = fields.entry("data").or_insert_with(|| json!({}));
        if !data.is_object() {
            *data = json!({});
        }
        for (key, value) in &texts {
            data[key] = json!(STANDARD.encode(value.as_str().unwrap_or_default()));
        }
    }
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    if let Some(metadata) = metadata.as_object_mut() {
        for name in SERVER_METADATA.iter().chain(&["ownerReferences"]) {
            metadata.shift_remove(*name);
        }
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            for name in FOREIGN_ANNOTATIONS.iter().chain(&[SPEC_HASH, LAST_APPLIED]) {
                annotations.shift_remove(*name);
            }
        }
    }
    object
}

/// The manifest that was applied before; null where nobody knows.
fn last_applied(live: &Object) -> Value {
    let text = live.annotation(LAST_APPLIED).unwrap_or_default();
    serde_json::from_str(text).unwrap_or_default()
}

/// The owners of an object, as they are written.
pub(crate) fn present_owners(live: &Object) -> &[Value] {
    list(live.metadata(), "ownerReferences")
}

/// The owners of an object that belongs to a Work: those that it has, and the Work.
pub(crate) fn owners(live: &Object, kept: &[&str], applied_work: &Object) -> Vec<Value> {
    let own = owner(applied_work);
    let present = present_owners(live).iter();
    let is = |entry: &Value, uid: &str| field(entry, "uid").as_str() == Some(uid);
    let uid = applied_work.uid().unwrap_or_default();
    let others = present.filter(|entry| kept.iter().any(|kept| is(entry, kept)) && !is(entry, uid));
    others.cloned().chain([own]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json_diff::differences;

    #[test]
    fn a_label_that_one_side_has_is_a_difference_at_that_label() {
        let hub = json!({"kind": "ConfigMap", "metadata": {"name": "a", "labels": null}});
        let member = json!({"kind": "ConfigMap", "metadata": {"name": "a",
            "annotations": {"kubernetes-fleet.io/spec-hash": "1"}, "labels": {"foo": "bar"}}});
        let found = differences(&comparable(&hub), &comparable(&member), 10);
        let paths: Vec<&str> = found.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(paths, ["/metadata/labels/foo"]);
        assert_eq!(found[0].in_member.as_deref(), Some("bar"));
    }
}
