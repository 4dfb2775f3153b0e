//! The body of the ReplicaSet that a Deployment creates.

use convoy_api::apps::TEMPLATE_HASH;
use serde_json::{Map, Value, json};

use crate::dialect::apps::decide::new_set::NewSet;
use crate::dialect::apps::read::deployment::Deployment;
use crate::ownership;

pub(super) fn object(deployment: &Deployment<'_>, new: &NewSet) -> Value {
    let owner = deployment.object;
    let mut template = deployment.raw_template().clone();
    put_label(&mut template, "metadata", "labels", &new.hash);
    let labels = template.pointer("/metadata/labels").cloned().unwrap_or_default();
    let mut selector = owner.spec().get("selector").cloned().unwrap_or_default();
    put_label_in(&mut selector, "matchLabels", &new.hash);
    let mut spec = Map::new();
    spec.insert("replicas".to_owned(), json!(new.replicas));
    if deployment.min_ready_secs > 0 {
        spec.insert("minReadySeconds".to_owned(), json!(deployment.min_ready_secs));
    }
    spec.insert("selector".to_owned(), selector);
    spec.insert("template".to_owned(), template);
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), json!(new.name));
    if !owner.namespace().is_empty() {
        metadata.insert("namespace".to_owned(), json!(owner.namespace()));
    }
    metadata.insert("labels".to_owned(), labels);
    metadata.insert("annotations".to_owned(), Value::Object(new.annotations.clone()));
    metadata.insert("ownerReferences".to_owned(), Value::Array(vec![ownership::reference(owner)]));
    // Put together by hand: a literal would copy the template once more.
    let mut object = Map::with_capacity(4);
    object.insert("apiVersion".to_owned(), json!("apps/v1"));
    object.insert("kind".to_owned(), json!("ReplicaSet"));
    object.insert("metadata".to_owned(), Value::Object(metadata));
    object.insert("spec".to_owned(), Value::Object(spec));
    Value::Object(object)
}

/// Adds the hash label to the map at `parent.map`, making both where they are missing.
fn put_label(value: &mut Value, parent: &str, map: &str, hash: &str) {
    if let Some(fields) = object_of(value) {
        let parent = fields.entry(parent).or_insert_with(|| json!({}));
        put_label_in(parent, map, hash);
    }
}

fn put_label_in(parent: &mut Value, map: &str, hash: &str) {
    let Some(fields) = object_of(parent) else { return };
    if let Some(labels) = object_of(fields.entry(map).or_insert_with(|| json!({}))) {
        labels.insert(TEMPLATE_HASH.to_owned(), json!(hash));
    }
}

/// The map that `value` is; null becomes an empty one.
fn object_of(value: &mut Value) -> Option<&mut Map<String, Value>> {
    if value.is_null() {
        *value = json!({});
    }
    value.as_object_mut()
}
