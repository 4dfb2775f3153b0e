//! A step under construction: writes, events and what holds, put together in the end.

use convoy_api::{Object, ObjectKey};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use smol_str::SmolStr;

use crate::hold::{Hold, HoldReason};
use crate::status::is_same as says_the_same;
use crate::step::{
    Action, Event, EventType, GroupReport, MemberState, Propagation, Step, Verb, Verdict, Why,
};

/// What is done about one owner, and said about its members.
#[derive(Debug)]
pub(super) struct Outcome<'o> {
    owner: &'o Object,
    pub(super) actions: Vec<Action>,
    pub(super) group: GroupReport,
    holds: Vec<Hold>,
    events: Vec<Event>,
    pub(super) wake_at: Option<Timestamp>,
}

impl<'o> Outcome<'o> {
    pub(super) fn new(owner: &'o Object) -> Self {
        Self {
            owner,
            actions: Vec::new(),
            group: GroupReport::new(owner.name().as_str()),
            holds: Vec::new(),
            events: Vec::new(),
            wake_at: None,
        }
    }

    pub(super) fn tell(&mut self, kind: EventType, reason: &str, message: String) {
        let (regarding, reason) = (self.owner.key().clone(), reason.to_owned());
        self.events.push(Event { regarding, kind, reason, message, reports: None });
    }

    /// Tells of a pod that is made or deleted.
    fn tell_of(&mut self, reason: &str, message: String, pod: &ObjectKey) {
        self.tell(EventType::Normal, reason, message);
        if let Some(event) = self.events.last_mut() {
            event.reports = Some(pod.clone());
        }
    }

    pub(super) fn create(&mut self, key: ObjectKey, object: Value, why: Why) {
        let kind = &key.kind.kind;
        if kind == "Pod" {
            self.tell_of("SuccessfulCreate", format!("Created pod: {}", key.name), &key);
        }
        self.actions.push(Action::create(Verb::Create, key, object, why));
    }

    pub(super) fn delete(&mut self, pod: &Object, why: Why) {
        self.tell_of("SuccessfulDelete", format!("Deleted pod: {}", pod.name()), pod.key());
        self.actions.push(Action::delete(Verb::Delete, pod, Propagation::Background, why));
    }

    /// Counts a member, with the reason if it does not move.
    pub(super) fn member(
        &mut self,
        name: impl Into<SmolStr>,
        state: MemberState,
        hold: Option<HoldReason>,
        until: Option<Timestamp>,
    ) {
        self.group.count(state);
        if let Some(reason) = hold {
            let group = self.group.name.clone();
            self.holds.push(Hold::of_member(name, reason).in_group(group).until(until));
        }
    }

    pub(super) fn hold(&mut self, reason: HoldReason) {
        self.holds.push(Hold::of_rollout(reason));
    }

    /// The step. `status` has the fields as they should read; null takes one away.
    pub(super) fn step(mut self, status: Map<String, Value>, decision: Value) -> Step {
        let mut whole = self.owner.status().as_object().cloned().unwrap_or_default();
        for (name, value) in status {
            match value {
                Value::Null => _ = whole.shift_remove(&name),
                value => _ = whole.insert(name, value),
            }
        }
        let whole = Value::Object(whole);
        let (group, acts) = (&self.group, !self.actions.is_empty());
        let in_flight = group.moving + group.settling + group.gone > 0;
        let verdict = if self.owner.is_deleting() {
            let on = "the garbage collector: it is being deleted".to_owned();
            self.hold(HoldReason::Depends { on });
            Verdict::Held
        } else if acts || in_flight {
            Verdict::Moving
        } else if group.waiting + group.failed == 0 {
            Verdict::Done
        } else {
            Verdict::Held
        };
        let mut step = Step::new("workloads", self.owner, verdict);
        step.wake_at = self.holds.iter().filter_map(|hold| hold.until).chain(self.wake_at).min();
        step.status = (!says_the_same(&whole, self.owner.status())).then_some(whole);
        step.decision = decision;
        step.groups = vec![self.group];
        (step.actions, step.holds, step.events) = (self.actions, self.holds, self.events);
        step
    }
}

/// The step about an owner that cannot be read.
pub(super) fn invalid(owner: &Object, field: &str) -> Step {
    let mut step = Step::new("workloads", owner, Verdict::Invalid);
    step.decision = json!({});
    step.holds.push(Hold::of_rollout(HoldReason::Invalid { fields: vec![field.to_owned()] }));
    step
}
