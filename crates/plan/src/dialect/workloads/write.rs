//! Actions, and the events that Kubernetes records about them.

pub(crate) mod daemon_set;
pub(crate) mod job;
mod revisions;
pub(crate) mod stateful_set;

use convoy_api::{Object, ObjectKey};
use serde_json::{Value, json};

use super::read::OwnedPods;
use crate::gate::Permit;
use crate::ownership;
use crate::step::{Action, Event, EventType, Propagation, Verb, Why};

/// What a step writes and tells about one owner.
#[derive(Debug)]
pub(crate) struct Writes<'o> {
    owner: &'o Object,
    pub(crate) actions: Vec<Action>,
    pub(crate) events: Vec<Event>,
}

impl<'o> Writes<'o> {
    fn new(owner: &'o Object) -> Self {
        Self { owner, actions: Vec::new(), events: Vec::new() }
    }

    fn tell(&mut self, kind: EventType, reason: &str, message: String) {
        let (regarding, reason) = (self.owner.key().clone(), reason.to_owned());
        self.events.push(Event { regarding, kind, reason, message, reports: None });
    }

    /// Tells of a pod that is created or deleted.
    fn tell_of_pod(&mut self, reason: &str, message: String, pod: &ObjectKey) {
        self.tell(EventType::Normal, reason, message);
        if let Some(event) = self.events.last_mut() {
            event.reports = Some(pod.clone());
        }
    }

    fn start(&mut self, permit: Permit, key: ObjectKey, pod: Value, why: Why) {
        self.tell_of_pod("SuccessfulCreate", format!("Created pod: {}", key.name), &key);
        self.actions.push(Action::create(Verb::Start(permit), key, pod, why));
    }

    fn remove(&mut self, permit: Permit, pod: &Object, why: Why) {
        self.tell_of_pod("SuccessfulDelete", format!("Deleted pod: {}", pod.name()), pod.key());
        self.actions.push(Action::delete(Verb::Remove(permit), pod, Propagation::Background, why));
    }

    /// Adopts and releases pods.
    fn claim(&mut self, pods: &OwnedPods<'_>) {
        let (released, adopted) = (pods.released.iter(), pods.adopted.iter());
        let writes = ownership::writes(self.owner, released.copied(), adopted.copied());
        self.actions.extend(writes);
    }
}

/// Puts a text into a map of the metadata of an object that is being made.
fn note(object: &mut Value, map: &str, key: &str, text: &str) {
    let metadata = object["metadata"].as_object_mut().expect("it is made with metadata");
    let entry = metadata.entry(map).or_insert_with(|| json!({}));
    entry[key] = json!(text);
}
