//! A Node and what matters about it.

use convoy_api::Object;
use serde_json::Value;

use super::resources::Amounts;
use crate::dialect::karpenter::names::{DISRUPTED_TAINT, UNSCHEDULABLE_TAINT, annotation, label};
use crate::taint::Taint;

/// A Node and what matters about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'w> {
    pub(crate) object: &'w Object,
    pub(crate) facts: NodeFacts<'w>,
}

/// What a Node says about itself.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, read from the object"
)]
pub(crate) struct NodeFacts<'w> {
    pub(crate) pool: Option<&'w str>,
    pub(crate) is_registered: bool,
    pub(crate) is_initialized: bool,
    pub(crate) is_ready: bool,
    pub(crate) is_deleting: bool,
    pub(crate) is_tainted: bool,
    pub(crate) is_protected: bool,
    pub(crate) provider_id: &'w str,
}

impl<'w> Node<'w> {
    pub(crate) fn new(object: &'w Object) -> Self {
        Self { object, facts: NodeFacts::read(object) }
    }

    pub(crate) fn pool(&self) -> Option<&'w str> {
        self.facts.pool
    }

    /// What it has, else what of it is for pods.
    pub(crate) fn capacity(&self) -> Option<Amounts> {
        let capacity = self.object.status_member("capacity");
        let capacity = capacity.or_else(|| self.object.status_member("allocatable"))?;
        Some(Amounts::from_value(Some(capacity)))
    }
}

impl<'w> NodeFacts<'w> {
    fn read(object: &'w Object) -> Self {
        let is = |key| object.label(key) == Some("true");
        Self {
            pool: object.label(label::NODE_POOL),
            is_registered: is(label::REGISTERED),
            is_initialized: is(label::INITIALIZED),
            is_ready: object.condition_words().any(|words| words == ("Ready", "True")),
            is_deleting: object.is_deleting(),
            is_tainted: object.spec_member("taints").is_some_and(is_disrupted),
            is_protected: object.annotation(annotation::DO_NOT_DISRUPT) == Some("true"),
            provider_id: object.spec_text("providerID"),
        }
    }
}

/// Whether a list of taints has the one that marks a disruption.
fn is_disrupted(taints: &Value) -> bool {
    let mut taints = taints.as_array().into_iter().flatten();
    taints.any(|taint| taint.get("key").and_then(Value::as_str) == Some(DISRUPTED_TAINT))
}

/// The taints of a Node or NodeClaim; a cordoned node has one more.
pub(crate) fn taints(object: &Object) -> Vec<Taint<'_>> {
    let taints = object.spec().get("taints").and_then(Value::as_array).into_iter().flatten();
    let mut taints: Vec<Taint<'_>> = taints.map(Taint::from_value).collect();
    if object.spec().get("unschedulable") == Some(&Value::Bool(true)) {
        taints.push(Taint { key: UNSCHEDULABLE_TAINT, value: "", effect: "NoSchedule" });
    }
    taints
}
