//! One node of a pool: its NodeClaim, its Node, or both, and what matters about them.

use convoy_api::Object;
use convoy_api::karpenter::names::{self, annotation, condition, label};
use convoy_api::object::member::{member, text};
use convoy_api::object::meta::timestamp;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::pool;

/// A NodeClaim with its Node, as far as they exist.
#[derive(Clone, Debug)]
pub(crate) struct Member<'w> {
    pub(crate) claim: &'w Object,
    pub(crate) node: Option<Node<'w>>,
    /// Index of the pool; absent if it has no label, or the pool is not there.
    pub(crate) pool: Option<usize>,
    /// What the label says.
    pub(crate) pool_name: Option<&'w str>,
    pub(crate) facts: ClaimFacts<'w>,
}

/// A Node and what matters about it.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, read from the object"
)]
pub(crate) struct Node<'w> {
    pub(crate) object: &'w Object,
    pub(crate) pool: Option<&'w str>,
    pub(crate) is_registered: bool,
    pub(crate) is_initialized: bool,
    pub(crate) is_ready: bool,
    pub(crate) is_deleting: bool,
    pub(crate) is_tainted: bool,
    pub(crate) is_protected: bool,
    pub(crate) provider_id: &'w str,
    pub(crate) capacity: Option<&'w Value>,
    pub(crate) allocatable: Option<&'w Value>,
}

/// What a NodeClaim says about itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClaimFacts<'w> {
    pub(crate) pool: Option<&'w str>,
    pub(crate) provider_id: &'w str,
    pub(crate) is_deleting: bool,
    pub(crate) is_launched: bool,
    pub(crate) is_instance_terminating: bool,
    /// Since when it is initialized.
    pub(crate) initialized: Option<Mark<'w>>,
    pub(crate) consolidatable: Option<Mark<'w>>,
    pub(crate) drifted: Option<Mark<'w>>,
    pub(crate) expired: Option<Mark<'w>>,
    /// The disruption that is under way.
    pub(crate) disruption: Option<Mark<'w>>,
    pub(crate) last_pod_event: Option<&'w Value>,
    pub(crate) hash: Option<&'w str>,
    pub(crate) hash_version: Option<&'w str>,
    pub(crate) command: Option<&'w str>,
    pub(crate) proposal: Option<&'w str>,
    pub(crate) created: Option<Timestamp>,
    pub(crate) instance_type: Option<&'w str>,
    pub(crate) zone: Option<&'w str>,
    pub(crate) capacity_type: Option<&'w str>,
    pub(crate) expire_after: Option<&'w Value>,
    pub(crate) grace_period: Option<&'w str>,
}

/// A condition that is True. The rest of it is read when it is asked for, which is seldom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark<'w> {
    claim: &'w Object,
    /// Its place in the list.
    at: usize,
}

impl<'w> Mark<'w> {
    pub(crate) fn reason(&self) -> &'w str {
        self.claim.condition_at(self.at).map_or("", |entry| text(entry, "reason"))
    }

    pub(crate) fn since(&self) -> Option<Timestamp> {
        timestamp(member(self.claim.condition_at(self.at)?, "lastTransitionTime"))
    }
}

impl<'w> Member<'w> {
    pub(crate) fn name(&self) -> &'w str {
        self.claim.name()
    }

    /// The name under which people look for it: the Node's, else the claim's.
    pub(crate) fn node_name(&self) -> &'w str {
        self.node.map_or(self.claim.name(), |node| node.object.name())
    }

    /// Whether it counts in its pool's total.
    pub(crate) fn is_counted(&self) -> bool {
        self.node.is_some_and(|node| node.is_initialized) && !self.facts.is_instance_terminating
    }

    /// Whether it is marked for deletion: by the API, or by a disruption under way.
    pub(crate) fn is_leaving(&self) -> bool {
        self.facts.is_deleting || self.facts.disruption.is_some()
    }

    /// Whether a disruption is under way that has not deleted it yet.
    pub(crate) fn is_in_flight(&self) -> bool {
        !self.facts.is_deleting && self.facts.disruption.is_some()
    }

    /// Whether it uses up budget: not ready, or leaving.
    pub(crate) fn is_down(&self) -> bool {
        self.is_counted() && (self.is_leaving() || self.node.is_none_or(|node| !node.is_ready))
    }

    pub(crate) fn termination_grace_period(&self) -> Option<SignedDuration> {
        Some(self.facts.grace_period?.parse::<convoy_api::text::GoDuration>().ok()?.signed())
    }

    /// When it is too old by its own account; `otherwise` where the claim does not say.
    pub(crate) fn expires_at(&self, otherwise: Option<SignedDuration>) -> Option<Timestamp> {
        let after = match self.facts.expire_after {
            None | Some(Value::Null) => otherwise?,
            given => pool::duration(given, SignedDuration::ZERO)?,
        };
        self.created_at()?.checked_add(after).ok()
    }

    pub(crate) fn created_at(&self) -> Option<Timestamp> {
        self.facts.created
    }

    /// When a pod last came or went, else when the node was initialized.
    pub(crate) fn quiet_since(&self) -> Option<Timestamp> {
        timestamp(self.facts.last_pod_event).or_else(|| self.facts.initialized?.since())
    }
}

impl<'w> Node<'w> {
    pub(crate) fn new(object: &'w Object) -> Self {
        let is = |key| object.label(key) == Some("true");
        Self {
            object,
            pool: object.label(label::NODE_POOL),
            is_registered: is(label::REGISTERED),
            is_initialized: is(label::INITIALIZED),
            is_ready: object.condition_words().any(|words| words == ("Ready", "True")),
            is_deleting: object.is_deleting(),
            is_tainted: object.spec_member("taints").is_some_and(is_disrupted),
            is_protected: object.annotation(annotation::DO_NOT_DISRUPT) == Some("true"),
            provider_id: object.spec_text("providerID"),
            capacity: object.status_member("capacity"),
            allocatable: object.status_member("allocatable"),
        }
    }
}

impl<'w> ClaimFacts<'w> {
    pub(crate) fn new(claim: &'w Object) -> Self {
        let mut facts = Self {
            pool: claim.label(label::NODE_POOL),
            provider_id: claim.status_text("providerID"),
            is_deleting: claim.is_deleting(),
            last_pod_event: claim.status_member("lastPodEventTime"),
            hash: claim.annotation(annotation::HASH),
            hash_version: claim.annotation(annotation::HASH_VERSION),
            command: claim.annotation(annotation::COMMAND),
            proposal: claim.annotation(annotation::PROPOSAL),
            created: claim.created_at(),
            instance_type: claim.label(label::INSTANCE_TYPE),
            zone: claim.label(label::ZONE),
            capacity_type: claim.label(label::CAPACITY_TYPE),
            expire_after: claim.spec_member("expireAfter"),
            grace_period: claim.spec_member("terminationGracePeriod").and_then(Value::as_str),
            ..Self::default()
        };
        for (at, (kind, status)) in claim.condition_words().enumerate() {
            facts.note(kind, (status == "True").then_some(Mark { claim, at }));
        }
        facts
    }

    fn note(&mut self, kind: &str, mark: Option<Mark<'w>>) {
        match kind {
            condition::LAUNCHED => self.is_launched = mark.is_some(),
            condition::INSTANCE_TERMINATING => self.is_instance_terminating = mark.is_some(),
            condition::INITIALIZED => self.initialized = mark,
            condition::CONSOLIDATABLE => self.consolidatable = mark,
            condition::DRIFTED => self.drifted = mark,
            condition::EXPIRED => self.expired = mark,
            condition::DISRUPTION_REASON => self.disruption = mark,
            _ => {}
        }
    }
}

/// Whether a list of taints has the one that marks a disruption.
pub(crate) fn is_disrupted(taints: &Value) -> bool {
    let mut taints = taints.as_array().into_iter().flatten();
    taints.any(|taint| taint.get("key").and_then(Value::as_str) == Some(names::DISRUPTED_TAINT))
}
