//! Volumes, claims on them, and classes of storage.

mod columns;
pub(super) mod defaults;

use convoy_api::text::{Name, Quantity};
use serde_json::{Value, json};

use super::at::{At, Errors, same};
use super::fill;
use super::kind::{Change, Kind, OWNERSHIP_ALONE};
use super::priority;
use super::selector;
use crate::column::Column;
use crate::registry::Resource;
use crate::resource_request::ResourceRequest;
use crate::status::ApiResult;
use crate::surroundings::seconds;

const ACCESS: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const MODES: [&str; 2] = ["Block", "Filesystem"];

/// Fields of a volume's spec that are not its source.
const NO_SOURCE: [&str; 9] = [
    "capacity",
    "accessModes",
    "claimRef",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "mountOptions",
    "volumeMode",
    "nodeAffinity",
    "volumeAttributesClassName",
];

pub(super) fn volume(object: &Value, old: Option<&Value>) -> Errors {
    let spec = At::root(object).get("spec");
    let mut errors = Errors::new();
    access_modes(&spec.get("accessModes"), "", &mut errors);
    let capacity = spec.get("capacity");
    if capacity.is_empty() {
        errors.push(capacity.required(""));
    }
    if capacity.key("storage").is_absent() || capacity.entries().len() > 1 {
        errors.push(capacity.unsupported(&["storage"]));
    }
    let policies = ["Delete", "Recycle", "Retain"];
    spec.get("persistentVolumeReclaimPolicy").one_of_if_given(&policies, &mut errors);
    spec.get("storageClassName").name(Name::Dns1123Subdomain, &mut errors);
    spec.get("volumeMode").one_of_if_given(&MODES, &mut errors);
    let sources = sources(spec.value);
    match sources.len() {
        0 => errors.push(spec.required("must specify a volume type")),
        1 => {}
        _ => {
            for (kind, _) in &sources[1..] {
                errors.push(spec.get(kind).forbidden("may not specify more than 1 volume type"));
            }
        }
    }
    let path = spec.get("hostPath.path");
    if !spec.get("hostPath").is_absent() && path.is_empty() {
        errors.push(path.required(""));
    }
    let Some(old) = old else { return errors };
    let of_old: Value = sources_value(&old["spec"]);
    if !same(&sources_value(spec.value), &of_old) {
        let at = At::new("spec.persistentvolumesource", spec.value);
        errors.push(at.forbidden("spec.persistentvolumesource is immutable after creation"));
    }
    let mode = At::new("volumeMode", spec.get("volumeMode").value);
    mode.immutable(&At::root(&old["spec"]["volumeMode"]), &mut errors);
    errors
}

fn sources(spec: &Value) -> Vec<(&str, &Value)> {
    let fields = spec.as_object().into_iter().flatten();
    fields
        .map(|(key, value)| (key.as_str(), value))
        .filter(|(key, _)| !NO_SOURCE.contains(key))
        .collect()
}

fn sources_value(spec: &Value) -> Value {
    let pairs = sources(spec).into_iter().map(|(key, value)| (key.to_owned(), value.clone()));
    Value::Object(pairs.collect())
}

fn access_modes(modes: &At<'_>, missing: &str, errors: &mut Errors) {
    if modes.is_empty() {
        errors.push(modes.required(missing));
    }
    for mode in modes.items() {
        if !ACCESS.contains(&mode.text()) {
            errors.push(At { path: modes.path.clone(), value: mode.value }.unsupported(&ACCESS));
        }
    }
    let all = modes.items();
    let is_alone = all.iter().any(|mode| mode.text() == "ReadWriteOncePod") && all.len() > 1;
    if is_alone {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.push(modes.forbidden(detail));
    }
}

pub(super) fn claim(object: &Value, old: Option<&Value>) -> Errors {
    let mut errors = Errors::new();
    claim_spec(&At::root(object).get("spec"), &mut errors);
    if let Some(old) = old {
        claim_update(object, old, &mut errors);
    }
    errors
}

/// What is claimed, by itself or in a template.
pub(super) fn claim_spec(spec: &At<'_>, errors: &mut Errors) {
    access_modes(&spec.get("accessModes"), "at least 1 access mode is required", errors);
    selector::validate(&spec.get("selector"), errors);
    let amount = spec.get("resources.requests").key("storage");
    let amount = At { path: format!("{}.resources[storage]", spec.path), value: amount.value };
    match quantity(amount.value) {
        None => errors.push(amount.required("")),
        Some(quantity) if quantity <= Quantity::ZERO => {
            errors.push(amount.invalid("must be greater than zero"));
        }
        Some(_) => {}
    }
    spec.get("storageClassName").name(Name::Dns1123Subdomain, errors);
    spec.get("volumeMode").one_of_if_given(&MODES, errors);
}

fn claim_update(object: &Value, old: &Value, errors: &mut Errors) {
    let mut wanted = object["spec"].clone();
    let mut before = old["spec"].clone();
    if At::root(&before["volumeName"]).is_empty() {
        before["volumeName"] = wanted["volumeName"].clone();
    }
    if before["storageClassName"].is_null() {
        wanted["storageClassName"] = Value::Null;
    }
    if object["status"]["phase"] == "Bound" {
        wanted["resources"]["requests"]["storage"] =
            before["resources"]["requests"]["storage"].clone();
        wanted["volumeAttributesClassName"] = before["volumeAttributesClassName"].clone();
    }
    let spec = At::new("spec", &object["spec"]);
    if !same(&wanted, &before) {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        errors.push(spec.forbidden(detail));
    }
    let size = |object: &Value| quantity(&object["spec"]["resources"]["requests"]["storage"]);
    let capacity = quantity(&old["status"]["capacity"]["storage"]).unwrap_or_default();
    if let (Some(new), Some(old)) = (size(object), size(old))
        && new < old
        && new <= capacity
    {
        let at = spec.get("resources.requests.storage");
        errors.push(at.forbidden("field can not be less than status.capacity"));
    }
}

fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

pub(super) fn class(object: &Value, old: Option<&Value>) -> Errors {
    let root = At::root(object);
    let mut errors = Errors::new();
    if root.get("provisioner").is_empty() {
        errors.push(root.get("provisioner").required(""));
    }
    root.get("reclaimPolicy").one_of_if_given(&["Delete", "Retain"], &mut errors);
    let modes = ["Immediate", "WaitForFirstConsumer"];
    root.get("volumeBindingMode").one_of_if_given(&modes, &mut errors);
    let Some(old) = old else { return errors };
    for (field, detail) in [
        ("parameters", "updates to parameters are forbidden."),
        ("reclaimPolicy", "updates to reclaimPolicy are forbidden."),
    ] {
        if !same(root.get(field).value, &old[field]) {
            errors.push(root.get(field).forbidden(detail));
        }
    }
    root.get("provisioner").immutable(&At::root(old).get("provisioner"), &mut errors);
    root.get("volumeBindingMode").immutable(&At::root(old).get("volumeBindingMode"), &mut errors);
    errors
}

/// A new claim begins unbound.
pub(super) fn prepare_claim(object: &mut Value) {
    object["status"] = json!({"phase": "Pending"});
}

pub(super) struct Volume;

impl Kind for Volume {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::volume(object);
    }

    fn prepare_create(&self, request: &ResourceRequest, object: &mut Value) -> ApiResult<()> {
        let now = seconds(request.server.now());
        object["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": now});
        Ok(())
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        volume(change.object, change.old)
    }

    fn columns(&self) -> &'static [Column] {
        columns::VOLUME
    }
}

pub(super) struct Claim;

impl Kind for Claim {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        fill::with(object, defaults::claim);
    }

    fn admit(&self, request: &ResourceRequest, object: &mut Value) -> ApiResult<()> {
        priority::choose_storage_class(request, object);
        Ok(())
    }

    fn prepare_create(&self, _request: &ResourceRequest, object: &mut Value) -> ApiResult<()> {
        prepare_claim(object);
        Ok(())
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        claim(change.object, change.old)
    }

    fn columns(&self) -> &'static [Column] {
        columns::CLAIM
    }
}

pub(super) struct Class;

impl Kind for Class {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::class(object);
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        class(change.object, change.old)
    }

    fn columns(&self) -> &'static [Column] {
        columns::CLASS
    }
}

pub(super) struct AttributesClass;

impl Kind for AttributesClass {
    fn columns(&self) -> &'static [Column] {
        columns::ATTRIBUTES_CLASS
    }
}

pub(super) struct Driver;

impl Kind for Driver {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::driver(object);
    }

    fn columns(&self) -> &'static [Column] {
        columns::DRIVER
    }
}

pub(super) struct Attachment;

impl Kind for Attachment {
    fn status_metadata(&self) -> &'static [&'static str] {
        OWNERSHIP_ALONE
    }

    fn columns(&self) -> &'static [Column] {
        columns::ATTACHMENT
    }
}

/// The drivers on a node.
pub(super) struct Node;

impl Kind for Node {
    fn columns(&self) -> &'static [Column] {
        columns::NODE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim_object() -> Value {
        json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
    }

    #[test]
    fn claims_ask_for_something_and_stay() {
        assert!(claim(&claim_object(), None).is_empty());
        for (place, value) in [
            ("/spec/accessModes", json!([])),
            ("/spec/accessModes", json!(["Sometimes"])),
            ("/spec/resources/requests", json!({})),
            ("/spec/resources/requests/storage", json!("0")),
        ] {
            let mut object = claim_object();
            *object.pointer_mut(place).unwrap() = value.clone();
            assert_eq!(claim(&object, None).len(), 1, "{place} {value}");
        }
        let mut larger = claim_object();
        larger["spec"]["resources"]["requests"]["storage"] = json!("2Gi");
        assert_eq!(claim(&larger, Some(&claim_object())).len(), 1);
        larger["status"] = json!({"phase": "Bound"});
        assert!(claim(&larger, Some(&claim_object())).is_empty());
        let mut bound = claim_object();
        bound["spec"]["volumeName"] = json!("v");
        assert!(claim(&bound, Some(&claim_object())).is_empty());
    }

    #[test]
    fn volumes_keep_their_source() {
        let object = |path: &str| {
            json!({"spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
                "hostPath": {"path": path}}})
        };
        assert!(volume(&object("/a"), Some(&object("/a"))).is_empty());
        assert_eq!(volume(&object("/a"), Some(&object("/b"))).len(), 1);
        let mut none = object("/a");
        none["spec"].as_object_mut().unwrap().remove("hostPath");
        assert_eq!(
            volume(&none, None)[0].to_string(),
            "spec: Required value: must specify a volume type"
        );
    }

    #[test]
    fn classes_do_not_change() {
        let object = |provisioner: &str| json!({"provisioner": provisioner});
        assert!(class(&object("a"), Some(&object("a"))).is_empty());
        assert_eq!(
            class(&object("b"), Some(&object("a")))[0].to_string(),
            "provisioner: Invalid value: \"b\": field is immutable"
        );
        assert_eq!(class(&json!({}), None).len(), 1);
    }
}
