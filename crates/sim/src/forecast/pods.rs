//! The pods of ReplicaSets that say how many they have, where the pods themselves are not among the
//! objects. Without them a forecast would begin with an outage that nobody has.

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::kinds::{POD, REPLICA_SET};
use convoy_api::object::member::field;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::ForecastError;
use super::objects::stored;
use super::review::Review;
use crate::seed::Seed;

/// More are not made: a ReplicaSet of a simulated world is far below it.
const PODS_MAX: u64 = 10_000;

/// One pod for each that a ReplicaSet has by its status, wants still, and that is not given.
pub(super) fn missing(objects: &[Object], start: Timestamp) -> Result<Vec<Object>, ForecastError> {
    let mut given: BTreeMap<&str, u64> = BTreeMap::new();
    for pod in objects.iter().filter(|object| *object.kind() == POD) {
        if let Some(owner) = pod.controller() {
            *given.entry(owner.uid).or_default() += 1;
        }
    }
    let mut review = Review::new(start);
    let mut found = Vec::new();
    for set in objects.iter().filter(|object| *object.kind() == REPLICA_SET) {
        let number = |value: Option<&Value>| value.and_then(Value::as_u64);
        let has = number(set.status_member("replicas")).unwrap_or(0);
        let wanted = number(set.spec_member("replicas")).unwrap_or(1);
        let known = given.get(set.uid().unwrap_or_default()).copied().unwrap_or(0);
        for index in 0..has.min(wanted).min(PODS_MAX).saturating_sub(known) {
            if let Some(pod) = pod(set, index) {
                found.push(stored(&pod, &mut review, start)?);
            }
        }
    }
    Ok(found)
}

fn pod(set: &Object, index: u64) -> Option<Object> {
    let template = set.spec().get("template")?;
    let identity = format!("{}/{}/{index}", set.namespace(), set.name());
    let suffix = Seed::new(0).child("pod", &identity).number() % 0x10_0000;
    let mut metadata = json!({
        "name": format!("{}-{suffix:05x}", set.name()),
        "ownerReferences": [{"apiVersion": set.api_version(), "kind": "ReplicaSet",
            "name": set.name(), "uid": set.uid()?, "controller": true,
            "blockOwnerDeletion": true}],
    });
    if !set.namespace().is_empty() {
        metadata["namespace"] = json!(set.namespace());
    }
    for name in ["labels", "annotations"] {
        let given = field(field(template, "metadata"), name);
        if !given.is_null() {
            metadata[name] = given.clone();
        }
    }
    let raw = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": field(template, "spec")});
    Object::from_value(raw).ok()
}
