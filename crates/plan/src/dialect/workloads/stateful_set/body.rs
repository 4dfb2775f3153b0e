//! The pods and volume claims of a StatefulSet.

use convoy_api::apps::POD;
use convoy_api::object::member::{field, list, text};
use convoy_api::{Object, ObjectKey};
use serde_json::{Value, json};

use super::super::CLAIM;
use super::super::kept::{HASH_LABEL, note};
use crate::pods as new_pod;

/// The volume claims of an ordinal. They outlive their pod.
pub(super) fn claims(owner: &Object, ordinal: i64) -> Vec<(ObjectKey, Value)> {
    let templates = list(owner.spec(), "volumeClaimTemplates").iter();
    let claims = templates.map(|template| {
        let name = claim_name(owner, template, ordinal);
        let key = owner.key().sibling(&CLAIM, owner.namespace(), &name);
        let mut claim = json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": name,
                "namespace": owner.namespace(),
                "annotations": field(template, "metadata").get("annotations"),
            },
            "spec": field(template, "spec"),
        });
        let own = field(field(template, "metadata"), "labels").as_object();
        let selected = field(field(owner.spec(), "selector"), "matchLabels").as_object();
        for (key, value) in own.into_iter().chain(selected).flatten() {
            note(&mut claim, "labels", key, value.as_str().unwrap_or_default());
        }
        (key, claim)
    });
    claims.collect()
}

fn claim_name(owner: &Object, template: &Value, ordinal: i64) -> String {
    format!("{}-{}-{ordinal}", text(field(template, "metadata"), "name"), owner.name())
}

/// The pod of an ordinal at a revision.
pub(super) fn pod(
    owner: &Object,
    ordinal: i64,
    template: &Value,
    revision: &str,
) -> (ObjectKey, Value) {
    let name = format!("{}-{ordinal}", owner.name());
    let key = owner.key().sibling(&POD, owner.namespace(), &name);
    let mut pod = new_pod::pod(owner, template, &key);
    note(&mut pod, "labels", HASH_LABEL, revision);
    note(&mut pod, "labels", "statefulset.kubernetes.io/pod-name", &name);
    note(&mut pod, "labels", "apps.kubernetes.io/pod-index", &ordinal.to_string());
    let spec = &mut pod["spec"];
    spec["hostname"] = json!(name);
    let service = owner.spec_text("serviceName");
    if !service.is_empty() {
        spec["subdomain"] = json!(service);
    }
    let claimed: Vec<Value> = list(owner.spec(), "volumeClaimTemplates")
        .iter()
        .map(|template| {
            json!({"name": text(field(template, "metadata"), "name"),
                "persistentVolumeClaim": {"claimName": claim_name(owner, template, ordinal)}})
        })
        .collect();
    if !claimed.is_empty() {
        let is_claimed = |volume: &&Value| claimed.iter().any(|own| own["name"] == volume["name"]);
        let others = list(spec, "volumes").iter().filter(|volume| !is_claimed(volume)).cloned();
        let volumes: Vec<Value> = claimed.iter().cloned().chain(others).collect();
        spec["volumes"] = Value::Array(volumes);
    }
    (key, pod)
}
