//! A Node and what matters about it.

use convoy_api::Object;
use convoy_api::object::member::list;
use jiff::Timestamp;
use serde_json::Value;
use smol_str::SmolStr;

use crate::dialect::karpenter::names::{
    DISRUPTED_EFFECT, DISRUPTED_TAINT, EPHEMERAL_PREFIX, EPHEMERAL_TAINTS, annotation, label,
};
use crate::node_selector::CORDONED;
use crate::resources::Amounts;
use crate::taint::{self, Taint};

/// A Node and what matters about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'w> {
    pub(crate) object: &'w Object,
    pub(crate) facts: &'w NodeFacts,
}

/// What a Node says about itself.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, read from the object"
)]
pub(crate) struct NodeFacts {
    pub(crate) pool: Option<SmolStr>,
    pub(crate) is_registered: bool,
    pub(crate) is_initialized: bool,
    pub(crate) is_ready: bool,
    /// Since when it says that it is not ready, or says nothing.
    pub(crate) unready_since: Option<Timestamp>,
    pub(crate) is_deleting: bool,
    /// With the taint and effect that a disruption starts with.
    pub(crate) is_tainted: bool,
    pub(crate) is_protected: bool,
    pub(crate) provider_id: SmolStr,
    pub(crate) machine: Machine,
    /// What it has, if it says so.
    pub(crate) capacity: Option<Amounts>,
    /// What pods may use of it.
    pub(crate) allocatable: Amounts,
}

/// What labels say about a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) instance_type: Option<SmolStr>,
    pub(crate) zone: Option<SmolStr>,
    pub(crate) capacity_type: Option<SmolStr>,
}

impl Machine {
    pub(crate) fn read(object: &Object) -> Self {
        let label = |key| object.label(key).map(SmolStr::new);
        Self {
            instance_type: label(label::INSTANCE_TYPE),
            zone: label(label::ZONE),
            capacity_type: label(label::CAPACITY_TYPE),
        }
    }
}

impl<'w> Node<'w> {
    pub(crate) fn pool(&self) -> Option<&'w str> {
        self.facts.pool.as_deref()
    }
}

impl NodeFacts {
    pub(crate) fn read(object: &Object) -> Self {
        let is = |key| object.label(key) == Some("true");
        let readiness = object.condition_summaries().find(|condition| condition.kind == "Ready");
        Self {
            pool: object.label(label::NODE_POOL).map(SmolStr::new),
            is_registered: is(label::REGISTERED),
            is_initialized: is(label::INITIALIZED),
            is_ready: readiness.is_some_and(|condition| condition.status == "True"),
            unready_since: readiness
                .filter(|condition| ["False", "Unknown"].contains(&condition.status))
                .and_then(|condition| condition.since),
            is_deleting: object.is_deleting(),
            is_tainted: is_disrupted(object),
            is_protected: object.annotation(annotation::DO_NOT_DISRUPT) == Some("true"),
            provider_id: provider_id(object).into(),
            machine: Machine::read(object),
            capacity: Amounts::capacity(object),
            allocatable: Amounts::allocatable(object),
        }
    }
}

/// Whether a Node has the taint that a disruption starts with. One with the same key and another
/// effect is somebody else's.
fn is_disrupted(object: &Object) -> bool {
    let taints = object.spec().get("taints").and_then(Value::as_array).into_iter().flatten();
    taints.map(Taint::from_value).any(|taint| taint::is(&taint, DISRUPTED_TAINT, DISRUPTED_EFFECT))
}

/// The machine that a Node is; empty where it does not say.
pub(crate) fn provider_id(node: &Object) -> &str {
    node.spec_text("providerID")
}

/// The taints of a Node or NodeClaim; a cordoned node has one more.
pub(crate) fn taints(object: &Object) -> Vec<Taint<'_>> {
    let taints = object.spec().get("taints").and_then(Value::as_array).into_iter().flatten();
    let mut taints: Vec<Taint<'_>> = taints.map(Taint::from_value).collect();
    if object.spec().get("unschedulable") == Some(&Value::Bool(true)) {
        taints.push(CORDONED);
    }
    taints
}

/// The taints of a NodeClaim that something else removes once its node is set up.
pub(crate) fn startup_taints(claim: &Object) -> Vec<Taint<'_>> {
    list(claim.spec(), "startupTaints").iter().map(Taint::from_value).collect()
}

pub(crate) fn is_startup(startup: &[Taint<'_>], taint: &Taint<'_>) -> bool {
    startup.iter().any(|it| taint::is(taint, it.key, it.effect))
}

/// Taints that a node has while it comes up.
pub(crate) fn is_ephemeral(taint: &Taint<'_>) -> bool {
    EPHEMERAL_TAINTS.contains(&(taint.key, taint.effect)) || taint.key.starts_with(EPHEMERAL_PREFIX)
}
