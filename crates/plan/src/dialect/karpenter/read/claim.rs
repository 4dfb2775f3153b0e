//! One member of a pool: its NodeClaim with its Node, and what matters about the claim.

use convoy_api::Object;
use convoy_api::object::member::text;
use convoy_api::object::meta::ConditionSummary;
use convoy_api::text::GoDuration;
use jiff::{SignedDuration, Timestamp};
use smol_str::SmolStr;

use super::node::{Machine, Node};
use super::pool;
use crate::dialect::karpenter::names::{self, annotation, condition, label};
use crate::resources::Amounts;

/// A NodeClaim with its Node, as far as they exist.
#[derive(Clone, Debug)]
pub(crate) struct Member<'w> {
    pub(crate) claim: &'w Object,
    pub(crate) node: Option<Node<'w>>,
    /// The Node of its machine, if other claims have that machine too.
    pub(crate) shared: Option<Node<'w>>,
    /// Index of the pool; absent if it has no label, or the pool is not there.
    pub(crate) pool: Option<usize>,
    /// What the label says.
    pub(crate) pool_name: Option<&'w str>,
    pub(crate) facts: &'w ClaimFacts,
}

/// What a NodeClaim says about itself.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, read from the object"
)]
pub(crate) struct ClaimFacts {
    pub(crate) pool: Option<SmolStr>,
    /// The uid of the pool that made it.
    pub(crate) owner: Option<SmolStr>,
    pub(crate) provider_id: SmolStr,
    /// What its machine was made from.
    pub(crate) image: SmolStr,
    pub(crate) is_deleting: bool,
    pub(crate) is_launched: bool,
    pub(crate) is_instance_terminating: bool,
    /// Since when its Node has joined the cluster.
    pub(crate) registered: Option<TrueCondition>,
    /// Since when it is initialized.
    pub(crate) initialized: Option<TrueCondition>,
    pub(crate) consolidatable: Option<TrueCondition>,
    pub(crate) drifted: Option<TrueCondition>,
    /// Whether it has the condition Drifted at all, whatever its status.
    pub(crate) says_drifted: bool,
    pub(crate) expired: Option<TrueCondition>,
    /// The disruption that is under way.
    pub(crate) disruption: Option<TrueCondition>,
    last_pod_event: Option<Timestamp>,
    pub(crate) hash: Option<SmolStr>,
    pub(crate) hash_version: Option<SmolStr>,
    pub(crate) command: Option<SmolStr>,
    pub(crate) proposal: Option<SmolStr>,
    pub(crate) created: Option<Timestamp>,
    /// As the claim's own labels say.
    pub(crate) machine: Machine,
    lifetime: Lifetime,
    pub(crate) grace_period: Option<SignedDuration>,
    /// What its machine has, as far as that is known.
    pub(crate) capacity: Amounts,
    pub(crate) allocatable: Amounts,
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
pub(crate) struct TrueCondition {
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

    /// What its labels say about the machine: the Node's once it is registered, and then nothing
    /// stands in for what the Node lacks.
    pub(crate) fn machine(&self) -> &'w Machine {
        let registered = self.node.filter(|node| node.facts.is_registered);
        registered.map_or(&self.facts.machine, |node| &node.facts.machine)
    }

    /// Whether it counts in its pool's total.
    pub(crate) fn is_counted(&self) -> bool {
        self.node.is_some_and(|node| node.facts.is_initialized)
            && !self.facts.is_instance_terminating
    }

    /// Whether it is marked for deletion: by the API, by its provider, or by a disruption under
    /// way.
    pub(crate) fn is_leaving(&self) -> bool {
        self.facts.is_deleting
            || self.facts.is_instance_terminating
            || self.facts.disruption.is_some()
    }

    /// Since when it is marked for deletion, as far as that is known.
    pub(crate) fn left_at(&self) -> Option<Timestamp> {
        let disrupted = self.facts.disruption.as_ref().and_then(|mark| mark.since);
        self.claim.deleted_at().max(disrupted)
    }

    /// Whether a disruption is under way that has not deleted it yet.
    pub(crate) fn is_in_flight(&self) -> bool {
        !self.facts.is_deleting && self.facts.disruption.is_some()
    }

    /// Whether nobody knows its machine yet.
    pub(crate) fn is_launching(&self) -> bool {
        !self.facts.is_deleting && self.facts.provider_id.is_empty()
    }

    /// Whether migrating to today's version of the hash concerns it: it has a hash of another
    /// version, or none and neither has its pool.
    pub(crate) fn migrates(&self, pool: &pool::Pool<'_>) -> bool {
        self.facts.hash_version.as_deref() != Some(names::HASH_VERSION)
            && (self.facts.hash.is_some() || !pool.is_hashed)
    }

    /// Its hash once the migration is done, if it has one to compare. A claim that said whether
    /// it has drifted keeps its hash, so that it stays drifted.
    pub(crate) fn migrated_hash<'h>(&'h self, pool: &'h pool::Pool<'_>) -> Option<&'h str> {
        let own = self.facts.hash.as_deref();
        if !self.migrates(pool) || self.facts.says_drifted {
            return own;
        }
        Some(&pool.hash)
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

impl ClaimFacts {
    pub(crate) fn read(claim: &Object) -> Self {
        let label = |key| claim.label(key).map(SmolStr::new);
        let annotation = |key| claim.annotation(key).map(SmolStr::new);
        let mut facts = Self {
            pool: label(label::NODE_POOL),
            owner: owner(claim),
            provider_id: provider_id(claim).into(),
            image: claim.status_text("imageID").into(),
            is_deleting: claim.is_deleting(),
            last_pod_event: claim.status_text("lastPodEventTime").parse().ok(),
            hash: annotation(annotation::HASH),
            hash_version: annotation(annotation::HASH_VERSION),
            command: annotation(annotation::COMMAND),
            proposal: annotation(annotation::PROPOSAL),
            created: claim.created_at(),
            machine: Machine::read(claim),
            lifetime: Lifetime::read(claim),
            grace_period: grace_period(claim.spec_text("terminationGracePeriod")),
            capacity: Amounts::capacity(claim).unwrap_or_default(),
            allocatable: Amounts::allocatable(claim),
            ..Self::default()
        };
        for ConditionSummary { kind, status, reason, since } in claim.condition_summaries() {
            facts.note(
                kind,
                (status == "True").then(|| TrueCondition { reason: reason.into(), since }),
            );
        }
        facts
    }

    fn note(&mut self, kind: &str, mark: Option<TrueCondition>) {
        match kind {
            condition::LAUNCHED => self.is_launched = mark.is_some(),
            condition::INSTANCE_TERMINATING => self.is_instance_terminating = mark.is_some(),
            condition::REGISTERED => self.registered = mark,
            condition::INITIALIZED => self.initialized = mark,
            condition::CONSOLIDATABLE => self.consolidatable = mark,
            condition::DRIFTED => {
                self.says_drifted = true;
                self.drifted = mark;
            }
            condition::EXPIRED => self.expired = mark,
            condition::DISRUPTION_REASON => self.disruption = mark,
            _ => {}
        }
    }

    /// Why it is being disrupted, in a word; empty if it is not.
    pub(crate) fn disruption_word(&self) -> &str {
        self.disruption.as_ref().map_or("", |mark| mark.reason.as_str())
    }
}

impl Lifetime {
    fn read(claim: &Object) -> Self {
        match claim.spec_str("expireAfter") {
            None => Self::Unsaid,
            given => pool::duration(given, SignedDuration::ZERO).map_or(Self::Endless, Self::Of),
        }
    }
}

/// The machine that a claim has; empty until it is launched.
pub(crate) fn provider_id(claim: &Object) -> &str {
    claim.status_text("providerID")
}

/// Reason and message of a launch that has not succeeded, as far as the claim tells them.
pub(crate) fn launch_refusal(claim: &Object) -> Option<(&str, &str)> {
    let launched = claim.condition(condition::LAUNCHED);
    let refused = launched.filter(|it| text(it, "status") != "True")?;
    let reason = Some(text(refused, "reason")).filter(|reason| !reason.is_empty())?;
    Some((reason, text(refused, "message")))
}

/// The Node of a claim; empty until it has one.
pub(crate) fn node_name(claim: &Object) -> &str {
    claim.status_text("nodeName")
}

fn owner(claim: &Object) -> Option<SmolStr> {
    let mut owners = claim.owners();
    owners.find(|owner| owner.kind == "NodePool").map(|owner| SmolStr::new(owner.uid))
}

fn grace_period(text: &str) -> Option<SignedDuration> {
    Some(text.parse::<GoDuration>().ok()?.signed())
}
