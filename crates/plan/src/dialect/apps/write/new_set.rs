//! The ReplicaSet that a Deployment asks for when none has its template.

use convoy_api::apps::hash::template_hash;
use convoy_api::apps::types::Release;
use convoy_api::apps::{REPLICA_SET, TEMPLATE_HASH, annotation};
use serde_json::{Map, Value, json};

use crate::dialect::apps::decide::Pass;
use crate::ownership as claim;
use crate::step::{Event, EventType};

/// The longest name of an object.
const NAME_CHARS_MAX: usize = 253;

/// A ReplicaSet made in this step.
#[derive(Debug)]
pub(crate) struct Created {
    pub(crate) name: String,
    pub(crate) hash: String,
    pub(crate) replicas: i64,
    pub(crate) revision: i64,
    pub(crate) object: Value,
}

/// The name computed for a new ReplicaSet belongs to another template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Collision;

impl Pass<'_> {
    /// Makes the new set with `replicas`, if it does not exist.
    ///
    /// A name that is taken counts a collision, and the next pass computes another.
    pub(crate) fn ensure_new(&mut self, replicas: i64) -> Result<(), Collision> {
        if self.new.is_some() || self.created.is_some() {
            return Ok(());
        }
        let deployment = &self.deployment;
        let hash =
            template_hash(deployment.raw_template(), self.collision_count, Release::default());
        let name = set_name(deployment.object.name(), &hash);
        if self.neighbours.iter().any(|set| *set.name() == name) {
            self.collision_count = Some(self.collision_count.unwrap_or(0).saturating_add(1));
            return Err(Collision);
        }
        let revision = self.next_revision();
        let object = self.new_object(&name, &hash, replicas, revision);
        if replicas > 0 {
            let message = format!("Scaled up replica set {name} from 0 to {replicas}");
            let owner = self.deployment.object.key();
            self.events.push(Event {
                regarding: owner.clone(),
                kind: EventType::Normal,
                reason: "ScalingReplicaSet".to_owned(),
                message,
                reports: Some(owner.sibling(&REPLICA_SET, &owner.namespace, &name)),
            });
        }
        if self.deployment.deadline_secs.is_some() {
            let message = format!("Created new replica set {name:?}");
            self.set_progressing("True", "NewReplicaSetCreated", &message);
        }
        self.take_revision(revision.to_string());
        self.created = Some(Created { name, hash, replicas, revision, object });
        Ok(())
    }

    fn new_object(&self, name: &str, hash: &str, replicas: i64, revision: i64) -> Value {
        let owner = self.deployment.object;
        let mut annotations: Map<String, Value> =
            self.copied_annotations().map(|(key, text)| (key.to_owned(), json!(text))).collect();
        let numbers = [
            (annotation::REVISION, revision),
            (annotation::DESIRED_REPLICAS, self.deployment.replicas),
            (annotation::MAX_REPLICAS, self.deployment.most()),
        ];
        for (key, number) in numbers {
            annotations.insert(key.to_owned(), json!(number.to_string()));
        }
        let mut template = self.deployment.raw_template().clone();
        put_label(&mut template, "metadata", "labels", hash);
        let labels = template.pointer("/metadata/labels").cloned().unwrap_or_default();
        let mut selector = owner.spec().get("selector").cloned().unwrap_or_default();
        put_label_in(&mut selector, "matchLabels", hash);
        let mut spec = Map::new();
        spec.insert("replicas".to_owned(), json!(replicas));
        if self.deployment.min_ready_secs > 0 {
            spec.insert("minReadySeconds".to_owned(), json!(self.deployment.min_ready_secs));
        }
        spec.insert("selector".to_owned(), selector);
        spec.insert("template".to_owned(), template);
        let mut metadata = Map::new();
        metadata.insert("name".to_owned(), json!(name));
        if !owner.namespace().is_empty() {
            metadata.insert("namespace".to_owned(), json!(owner.namespace()));
        }
        metadata.insert("labels".to_owned(), labels);
        metadata.insert("annotations".to_owned(), Value::Object(annotations));
        metadata.insert("ownerReferences".to_owned(), Value::Array(vec![claim::reference(owner)]));
        // Put together by hand: a literal would copy the template once more.
        let mut object = Map::with_capacity(4);
        object.insert("apiVersion".to_owned(), json!("apps/v1"));
        object.insert("kind".to_owned(), json!("ReplicaSet"));
        object.insert("metadata".to_owned(), Value::Object(metadata));
        object.insert("spec".to_owned(), Value::Object(spec));
        Value::Object(object)
    }
}

/// `<deployment>-<hash>`; of a name that gets too long the Deployment's part is cut.
fn set_name(deployment: &str, hash: &str) -> String {
    let room = NAME_CHARS_MAX.saturating_sub(hash.len() + 1);
    let mut end = deployment.len().min(room);
    while !deployment.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}-{hash}", &deployment[..end])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_before_the_hash() {
        assert_eq!(set_name("web", "abc"), "web-abc");
        let long = "x".repeat(260);
        let name = set_name(&long, "0123456789");
        assert_eq!(name.len(), NAME_CHARS_MAX);
        assert!(name.ends_with("x-0123456789"));
        set_name(&"\u{e9}".repeat(200), "abc"); // cut between characters
    }
}
