//! The initial state of a forecast. Objects of a server (they have a uid) stay as they are;
//! manifests get what a server would add. Nodes become simulated ones.

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::kinds::{CUSTOM_RESOURCE_DEFINITION, NAMESPACE, NODE, POD};
use convoy_api::object::member::{field, text};
use convoy_api::well_known::annotation::SIMULATED;
use convoy_api::{GroupKind, Object};
use convoy_plan::World;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::ForecastError;
use super::controllers::Home;
use super::review::Review;
use super::scope::placed;
use crate::kubelet::stamp;
use crate::node;
use crate::scenario::PREFIX;
use crate::seed::Seed;

/// What a manifest says about an object that exists beside its spec.
const KEPT: [&str; 6] = [
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
];

pub(super) fn prepared(
    given: &World,
    applied: &World,
    home: &Home,
    start: Timestamp,
) -> Result<Vec<Object>, ForecastError> {
    let watches = home.dialects.iter().flat_map(|dialect| dialect.watches());
    let mut kinds: BTreeSet<GroupKind> = watches.map(|watch| watch.kind.clone()).collect();
    kinds.extend([NODE, POD, NAMESPACE]);
    // A hub places objects of any kind.
    let is_needed = |object: &&Object| home.is_hub || kinds.contains(object.kind());
    let mut review = Review::new(start);
    let is_definition = |object: &&Object| *object.kind() == CUSTOM_RESOURCE_DEFINITION;
    for object in given.iter().chain(applied.iter()).filter(is_definition).filter(is_needed) {
        review.define(object);
    }
    let mut objects = BTreeMap::new();
    for object in given.iter().filter(is_needed) {
        objects.insert(placed(object), stored(object, &mut review, start)?);
    }
    for object in applied.iter().filter(is_needed) {
        let key = placed(object);
        let new = match objects.get(&key) {
            Some(old) => changed(old, object, &reviewed(object, &mut review, start)?),
            None => stored(object, &mut review, start)?,
        };
        objects.insert(key, new);
    }
    Ok(objects.into_values().map(simulated).collect())
}

/// An object as it is in the initial state.
pub(super) fn stored(
    object: &Object,
    review: &mut Review,
    start: Timestamp,
) -> Result<Object, ForecastError> {
    if object.uid().is_some() {
        return Ok(object.clone());
    }
    let mut raw = reviewed(object, review, start)?;
    for name in KEPT {
        if let Some(value) = object.metadata().get(name) {
            raw["metadata"][name] = value.clone();
        }
    }
    if let Some(status) = object.raw().get("status") {
        raw["status"] = status.clone();
    }
    Ok(with(raw, object))
}

/// A manifest with its defaults. Nodes have none, and come in thousands.
fn reviewed(
    object: &Object,
    review: &mut Review,
    start: Timestamp,
) -> Result<Value, ForecastError> {
    if *object.kind() != NODE {
        return review.of(object, &placed(object));
    }
    let mut raw = object.raw().clone();
    raw["metadata"]["uid"] = json!(node::uuid(Seed::new(0).child("node", object.name())));
    raw["metadata"]["creationTimestamp"] = json!(stamp(start));
    Ok(raw)
}

/// An object after a manifest was applied to it: its spec is replaced, its labels and annotations
/// are added to, and a number of replicas that the manifest leaves open stays.
fn changed(old: &Object, manifest: &Object, reviewed: &Value) -> Object {
    let mut raw = old.raw().clone();
    for name in ["labels", "annotations"] {
        let new = field(manifest.metadata(), name).as_object().cloned().unwrap_or_default();
        for (key, value) in new {
            raw["metadata"][name][key.as_str()] = value;
        }
    }
    let fields = reviewed.as_object().into_iter().flatten();
    for (name, value) in fields.filter(|(name, _)| is_content(name)) {
        raw[name.as_str()] = value.clone();
    }
    let replicas = old.spec().get("replicas").filter(|_| manifest.spec().get("replicas").is_none());
    if let Some(replicas) = replicas {
        raw["spec"]["replicas"] = replicas.clone();
    }
    if raw["spec"] != *old.spec() {
        raw["metadata"]["generation"] = json!(old.generation() + 1);
    }
    with(raw, old)
}

/// Whether a field of an object is what people write, and not about it or of its status.
fn is_content(field: &str) -> bool {
    !["apiVersion", "kind", "metadata", "status"].contains(&field)
}

/// The object with this content; as it was if that is no object.
fn with(raw: Value, before: &Object) -> Object {
    Object::from_value(raw).unwrap_or_else(|_| before.clone())
}

/// A node becomes one of ours. One that was not ready, or not heard of, is so still.
fn simulated(object: Object) -> Object {
    if *object.kind() != NODE {
        return object;
    }
    let mut raw = object.raw().clone();
    raw["metadata"]["annotations"][SIMULATED] = json!("true");
    let ready = object.condition("Ready").map(|ready| text(ready, "status"));
    let power = match ready {
        Some("False") => Some("not-ready"),
        Some("Unknown") => Some("silent"),
        _ => None,
    };
    if let Some(power) = power {
        raw["metadata"]["annotations"][format!("{PREFIX}power")] = json!(power);
    }
    with(raw, &object)
}
