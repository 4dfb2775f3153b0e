//! The actions and events of a step while they are gathered.

use std::collections::BTreeMap;

use convoy_api::ObjectKey;
use jiff::Timestamp;

use super::counts;
use crate::dialect::karpenter::names::event;
use crate::dialect::karpenter::read::Cluster;
use crate::dialect::karpenter::read::claim::Member;
use crate::gate::Permit;
use crate::hold::HoldReason;
use crate::metric::Increment;
use crate::step::{Action, Event, EventType, MemberState, Propagation, Step, Verb, Why};

/// What a member waits for, and the instant at which time frees it.
pub(crate) type Wait = (HoldReason, Option<Timestamp>);

/// Everything that is to be done, in the order of its parts, and what members wait for.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    pub(crate) undo: Vec<Action>,
    pub(crate) record: Vec<Action>,
    pub(crate) start: Vec<Action>,
    pub(crate) create: Vec<Action>,
    pub(crate) delete: Vec<Action>,
    pub(crate) events: Vec<Event>,
    /// What the writes add to counters.
    pub(crate) counts: Vec<Increment>,
    /// Evictions of this step, by the PodDisruptionBudget that they count against: nodes that are
    /// drained at once share their budgets.
    pub(crate) spent: BTreeMap<String, i64>,
    /// Pods that no pool makes a node for.
    pub(crate) hopeless: Vec<ObjectKey>,
    /// Why the pool does not get the nodes that it asks for.
    pub(crate) hold: Option<HoldReason>,
    /// The state of members that a command or a deletion concerns, and what they wait for.
    pub(crate) states: BTreeMap<usize, (MemberState, Option<Wait>)>,
}

impl Writes {
    /// Moves the events and counts into `step`; gives the actions.
    pub(crate) fn fill(self, step: &mut Step) -> Vec<Action> {
        let parts = [self.undo, self.record, self.start, self.create, self.delete];
        step.events = self.events;
        step.counts = self.counts;
        parts.into_iter().flatten().collect()
    }

    /// Deletes a member's claim.
    pub(crate) fn remove(&mut self, member: &Member<'_>, permit: Permit, why: Why) {
        let verb = Verb::Remove(permit);
        self.delete.push(Action::delete(verb, member.claim, Propagation::Background, why));
    }

    /// The same at the end of a disruption, which is told for the reason `word`.
    pub(crate) fn terminate<'w>(
        &mut self,
        cluster: &Cluster<'w>,
        member: &Member<'w>,
        word: &str,
        permit: Permit,
        why: Why,
    ) {
        let pods = cluster.pods_of(member).iter().filter(|pod| pod.is_reschedulable()).count();
        let policy = Some(cluster.pool().policy);
        let counts = counts::claim_disrupted(member.claim, member.facts, word, policy, pods);
        self.counts.extend(counts);
        let message = |kind: &str| format!("Disrupting {kind}: {word}");
        self.event_of(member, event::DISRUPTION_TERMINATING, message);
        self.remove(member, permit, why);
    }

    pub(crate) fn event(
        &mut self,
        regarding: &ObjectKey,
        kind: EventType,
        reason: &str,
        message: String,
    ) {
        self.events.push(Event::new(regarding, kind, reason, message));
    }

    /// An event about a state: told once as long as it lasts.
    pub(crate) fn state(
        &mut self,
        regarding: &ObjectKey,
        kind: EventType,
        reason: &str,
        message: String,
    ) {
        self.events.push(Event::new(regarding, kind, reason, message).lasting());
    }

    /// The same event on a claim and its Node.
    pub(crate) fn event_of(
        &mut self,
        member: &Member<'_>,
        reason: &str,
        message: impl Fn(&str) -> String,
    ) {
        if let Some(node) = member.node {
            self.event(node.object.key(), EventType::Normal, reason, message("Node"));
        }
        self.event(member.claim.key(), EventType::Normal, reason, message("NodeClaim"));
    }

    /// The same state on a claim and its Node.
    pub(crate) fn state_of(&mut self, member: &Member<'_>, reason: &str, message: &str) {
        let node = member.node.map(|node| node.object.key());
        for key in node.into_iter().chain([member.claim.key()]) {
            self.state(key, EventType::Normal, reason, message.to_owned());
        }
    }
}
