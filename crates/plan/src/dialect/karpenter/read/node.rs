//! A Node and what matters about it.

use convoy_api::Object;
use serde_json::Value;
use smol_str::SmolStr;

use crate::dialect::karpenter::names::{DISRUPTED_TAINT, UNSCHEDULABLE_TAINT, annotation, label};
use crate::resources::Amounts;
use crate::taint::Taint;

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
    pub(crate) is_deleting: bool,
    pub(crate) is_tainted: bool,
    pub(crate) is_protected: bool,
    pub(crate) provider_id: SmolStr,
    /// What it has, if it says so.
    pub(crate) capacity: Option<Amounts>,
}

impl<'w> Node<'w> {
    pub(crate) fn pool(&self) -> Option<&'w str> {
        self.facts.pool.as_deref()
    }
}

impl NodeFacts {
    pub(crate) fn read(object: &Object) -> Self {
        let is = |key| object.label(key) == Some("true");
        Self {
            pool: object.label(label::NODE_POOL).map(SmolStr::new),
            is_registered: is(label::REGISTERED),
            is_initialized: is(label::INITIALIZED),
            is_ready: object
                .condition_summaries()
                .any(|condition| (condition.kind, condition.status) == ("Ready", "True")),
            is_deleting: object.is_deleting(),
            is_tainted: object.has_taint(DISRUPTED_TAINT),
            is_protected: object.annotation(annotation::DO_NOT_DISRUPT) == Some("true"),
            provider_id: object.spec_text("providerID").into(),
            capacity: Amounts::capacity(object),
        }
    }
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
