//! What a controller writes about its pods, and the events that Kubernetes records about it.

use convoy_api::{Object, ObjectKey};
use serde_json::Value;

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
    pub(crate) fn new(owner: &'o Object) -> Self {
        Self { owner, actions: Vec::new(), events: Vec::new() }
    }

    pub(crate) fn tell(&mut self, kind: EventType, reason: &str, message: String) {
        self.events.push(Event::new(self.owner.key(), kind, reason, message));
    }

    /// Tells of an object that is created or deleted.
    pub(crate) fn tell_of(&mut self, written: &ObjectKey, reason: &str, message: String) {
        let event = Event::new(self.owner.key(), EventType::Normal, reason, message);
        self.events.push(event.reporting(written));
    }

    pub(crate) fn start(&mut self, permit: Permit, key: ObjectKey, pod: Value, why: Why) {
        self.tell_of(&key, "SuccessfulCreate", format!("Created pod: {}", key.name));
        self.actions.push(Action::create(Verb::Start(permit), key, pod, why));
    }

    pub(crate) fn remove(&mut self, permit: Permit, pod: &Object, why: Why) {
        self.tell_of(pod.key(), "SuccessfulDelete", format!("Deleted pod: {}", pod.name()));
        self.actions.push(Action::delete(Verb::Remove(permit), pod, Propagation::Background, why));
    }

    /// Adopts and releases pods.
    pub(crate) fn claim<'p>(
        &mut self,
        released: impl Iterator<Item = &'p Object>,
        adopted: impl Iterator<Item = &'p Object>,
    ) where
        'o: 'p,
    {
        let owner: &'p Object = self.owner;
        self.actions.extend(ownership::writes(owner, released, adopted));
    }
}
