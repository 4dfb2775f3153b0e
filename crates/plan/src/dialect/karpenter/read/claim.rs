//! One node of a pool: its NodeClaim, its Node, or both, and what matters about them.

use crate::dialect::karpenter::names::{self, annotation, condition, label};
use convoy_api::Object;
use convoy_api::object::member::{member, text};
use convoy_api::object::meta::timestamp;
use convoy_api::text::GoDuration;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use smol_str::SmolStr;

use super::pool;
use super::resources::Amounts;

/// A NodeClaim with its Node, as far as they exist.
#[derive(Clone, Debug)]
pub(crate) struct Member<'w> {
    pub(crate) claim: &'w Object,
    pub(crate) node: Option<Node<'w>>,
    /// Index of the pool; absent if it has no label, or the pool is not there.
    pub(crate) pool: Option<usize>,
    /// What the label says.
    pub(crate) pool_name: Option<&'w str>,
    pub(crate) facts: &'w ClaimFacts,
}

/// A Node and what matters about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'w> {
    pub(crate) object: &'w Object,
    pub(crate) facts: &'w NodeFacts,
}

/// What a Node says about itself, kept with it.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, read from the object"
)]
pub(crate) struct NodeFacts {
    pub(crate) pool: Option<SmolStr>,
    pub(crate) is_registered: bool,
    pub(crate) is_initialized: bool,
    pub(crate) is_ready: bool,
    pub(crate) is_deleting: bool,
    pub(crate) is_tainted: bool,
    pub(crate) is_protected: bool,
    pub(crate) provider_id: SmolStr,
    /// What it has, else what of it is for pods.
    pub(crate) capacity: Option<Amounts>,
}

/// What a NodeClaim says about itself, kept with it.
#[derive(Debug, Default)]
pub(crate) struct ClaimFacts {
    pub(crate) pool: Option<SmolStr>,
    pub(crate) provider_id: SmolStr,
    pub(crate) is_deleting: bool,
    pub(crate) is_launched: bool,
    pub(crate) is_instance_terminating: bool,
    /// Since when it is initialized.
    pub(crate) initialized: Option<Mark>,
    pub(crate) consolidatable: Option<Mark>,
    pub(crate) drifted: Option<Mark>,
    pub(crate) expired: Option<Mark>,
    /// The disruption that is under way.
    pub(crate) disruption: Option<Mark>,
    last_pod_event: Option<Timestamp>,
    pub(crate) hash: Option<SmolStr>,
    pub(crate) hash_version: Option<SmolStr>,
    pub(crate) command: Option<SmolStr>,
    pub(crate) proposal: Option<SmolStr>,
    pub(crate) created: Option<Timestamp>,
    pub(crate) instance_type: Option<SmolStr>,
    pub(crate) zone: Option<SmolStr>,
    pub(crate) capacity_type: Option<SmolStr>,
    lifetime: Lifetime,
    pub(crate) grace_period: Option<SignedDuration>,
}

/// How old a claim may get by its own account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Lifetime {
    /// As the pool says.
    #[default]
    Unsaid,
    Endless,
    Of(SignedDuration),
}

/// A condition that is True.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) reason: SmolStr,
    pub(crate) since: Option<Timestamp>,
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
        self.node.is_some_and(|node| node.facts.is_initialized)
            && !self.facts.is_instance_terminating
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
        self.is_counted()
            && (self.is_leaving() || self.node.is_none_or(|node| !node.facts.is_ready))
    }

    /// When it is too old by its own account; `otherwise` where the claim does not say.
    pub(crate) fn expires_at(&self, otherwise: Option<SignedDuration>) -> Option<Timestamp> {
        let after = match self.facts.lifetime {
            Lifetime::Unsaid => otherwise?,
            Lifetime::Endless => return None,
            Lifetime::Of(after) => after,
        };
        self.created_at()?.checked_add(after).ok()
    }

    pub(crate) fn created_at(&self) -> Option<Timestamp> {
        self.facts.created
    }

    /// When a pod last came or went, else when the node was initialized.
    pub(crate) fn quiet_since(&self) -> Option<Timestamp> {
        self.facts.last_pod_event.or_else(|| self.facts.initialized.as_ref()?.since)
    }
}

impl<'w> Node<'w> {
    pub(crate) fn new(object: &'w Object) -> Self {
        Self { object, facts: object.facts(NodeFacts::read) }
    }

    pub(crate) fn pool(&self) -> Option<&'w str> {
        self.facts.pool.as_deref()
    }
}

impl NodeFacts {
    fn read(object: &Object) -> Self {
        let is = |key| object.label(key) == Some("true");
        let capacity =
            object.status_member("capacity").or_else(|| object.status_member("allocatable"));
        Self {
            pool: object.label(label::NODE_POOL).map(SmolStr::new),
            is_registered: is(label::REGISTERED),
            is_initialized: is(label::INITIALIZED),
            is_ready: object.condition_words().any(|words| words == ("Ready", "True")),
            is_deleting: object.is_deleting(),
            is_tainted: object.spec_member("taints").is_some_and(is_disrupted),
            is_protected: object.annotation(annotation::DO_NOT_DISRUPT) == Some("true"),
            provider_id: SmolStr::new(object.spec_text("providerID")),
            capacity: capacity.map(|capacity| Amounts::from_value(Some(capacity))),
        }
    }
}

impl ClaimFacts {
    pub(crate) fn of(claim: &Object) -> &Self {
        claim.facts(Self::read)
    }

    fn read(claim: &Object) -> Self {
        let label = |key| claim.label(key).map(SmolStr::new);
        let annotation = |key| claim.annotation(key).map(SmolStr::new);
        let mut facts = Self {
            pool: label(label::NODE_POOL),
            provider_id: SmolStr::new(claim.status_text("providerID")),
            is_deleting: claim.is_deleting(),
            last_pod_event: timestamp(claim.status_member("lastPodEventTime")),
            hash: annotation(annotation::HASH),
            hash_version: annotation(annotation::HASH_VERSION),
            command: annotation(annotation::COMMAND),
            proposal: annotation(annotation::PROPOSAL),
            created: claim.created_at(),
            instance_type: label(label::INSTANCE_TYPE),
            zone: label(label::ZONE),
            capacity_type: label(label::CAPACITY_TYPE),
            lifetime: Lifetime::read(claim.spec_member("expireAfter")),
            grace_period: grace_period(claim.spec_text("terminationGracePeriod")),
            ..Self::default()
        };
        for (at, (kind, status)) in claim.condition_words().enumerate() {
            facts.note(kind, (status == "True").then(|| Mark::read(claim, at)));
        }
        facts
    }

    fn note(&mut self, kind: &str, mark: Option<Mark>) {
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

    /// Why it is being disrupted, in a word; empty if it is not.
    pub(crate) fn disruption_word(&self) -> &str {
        self.disruption.as_ref().map_or("", |mark| &mark.reason)
    }
}

impl Mark {
    /// The condition at `at` of the list.
    fn read(claim: &Object, at: usize) -> Self {
        let entry = claim.condition_at(at).unwrap_or(&Value::Null);
        let since = timestamp(member(entry, "lastTransitionTime"));
        Self { reason: SmolStr::new(text(entry, "reason")), since }
    }
}

impl Lifetime {
    fn read(given: Option<&Value>) -> Self {
        match given {
            None | Some(Value::Null) => Self::Unsaid,
            given => pool::duration(given, SignedDuration::ZERO).map_or(Self::Endless, Self::Of),
        }
    }
}

fn grace_period(text: &str) -> Option<SignedDuration> {
    Some(text.parse::<GoDuration>().ok()?.signed())
}

/// Whether a list of taints has the one that marks a disruption.
pub(crate) fn is_disrupted(taints: &Value) -> bool {
    let mut taints = taints.as_array().into_iter().flatten();
    taints.any(|taint| taint.get("key").and_then(Value::as_str) == Some(names::DISRUPTED_TAINT))
}
