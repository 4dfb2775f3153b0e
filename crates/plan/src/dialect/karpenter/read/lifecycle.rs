//! What the life of a NodeClaim depends on: what it asks for, its node class, and the Nodes that
//! may be its machine.

use convoy_api::Object;
use convoy_api::object::member::{field, list, text};
use convoy_api::text::GoDuration;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::claim::ClaimFacts;
use super::node;
use super::requirement;
use crate::dialect::karpenter::names::{KWOK_GROUP, KWOK_NODE_CLASS, NODE, annotation};
use crate::hash::structure::fingerprint;
use crate::requirement::Requirements;
use crate::resources::{self, Amounts};
use crate::snapshot::Snapshot;

/// A claim and its surroundings.
#[derive(Clone, Debug)]
pub(crate) struct Claim<'w> {
    pub(crate) object: &'w Object,
    pub(crate) facts: ClaimFacts,
    /// The Nodes with its provider id.
    pub(crate) nodes: Vec<&'w Object>,
    /// Whether its machine is a simulated one.
    pub(crate) is_simulated: bool,
    pub(crate) class_name: &'w str,
    /// Absent: it is not there, or on its way out.
    pub(crate) class: Option<NodeClass<'w>>,
}

/// The settings of simulated machines.
#[derive(Clone, Debug)]
pub(crate) struct NodeClass<'w> {
    pub(crate) is_ready: bool,
    /// How long a machine takes to appear.
    pub(crate) delay: SignedDuration,
    /// Instance types, zones or capacity types that there is none of.
    pub(crate) sold_out: Vec<&'w str>,
    /// What new machines are made from.
    pub(crate) image: Option<&'w str>,
    /// How many of 100 claims are not launched.
    launch_failures: u32,
    /// How long the end of a machine takes.
    pub(crate) termination_delay: SignedDuration,
}

impl<'w> Claim<'w> {
    pub(crate) fn read(snapshot: &Snapshot<'w>) -> Self {
        let object = snapshot.rollout();
        let facts = ClaimFacts::read(object);
        let id = facts.provider_id.as_str();
        let nodes = snapshot.of(&NODE).iter().copied();
        let nodes = nodes.filter(|node| !id.is_empty() && node::provider_id(node) == id);
        let reference = field(object.spec(), "nodeClassRef");
        let class_name = text(reference, "name");
        let class = snapshot.find(&KWOK_NODE_CLASS, "", class_name);
        Self {
            object,
            nodes: nodes.collect(),
            is_simulated: text(reference, "group") == KWOK_GROUP,
            class_name,
            class: class.filter(|class| !class.is_deleting()).map(NodeClass::read),
            facts,
        }
    }

    pub(crate) fn is(&self, kind: &str) -> bool {
        self.object.condition_status(kind) == Some("True")
    }

    pub(crate) fn requirements(&self) -> Requirements {
        requirement::from_value(list(self.object.spec(), "requirements"))
    }

    fn requests(&self) -> &'w Value {
        field(field(self.object.spec(), "resources"), "requests")
    }

    /// What its machine has to have room for.
    pub(crate) fn amounts(&self) -> Amounts {
        Amounts::from_value(Some(self.requests()))
    }

    /// The resources that it asks for.
    pub(crate) fn requested(&self) -> impl Iterator<Item = &'w str> {
        let asked = self.requests().as_object().into_iter().flatten();
        asked.filter(|(_, amount)| is_some(amount)).map(|(name, _)| name.as_str())
    }

    /// The first resource that it asks for and its Node does not have.
    pub(crate) fn unregistered_resource(&self, node: &Object) -> Option<&'w str> {
        let given = field(node.status(), "allocatable");
        self.requested().find(|name| !is_some(field(given, name)))
    }

    /// The label by which its node class is known on claims and Nodes.
    pub(crate) fn class_label(&self) -> Option<(String, &'w str)> {
        let reference = field(self.object.spec(), "nodeClassRef");
        let (group, kind) = (text(reference, "group"), text(reference, "kind"));
        let is_whole = ![group, kind, self.class_name].contains(&"");
        is_whole.then(|| (format!("{group}/{}", kind.to_lowercase()), self.class_name))
    }
}

fn is_some(amount: &Value) -> bool {
    resources::quantity(amount).is_some_and(|amount| amount.as_millis() > 0)
}

/// Since when a condition of a claim is as it is; since its creation if it does not have it.
pub(crate) fn since(claim: &Object, kind: &str) -> Option<Timestamp> {
    let mut conditions = claim.condition_summaries();
    let since = conditions.find(|condition| condition.kind == kind).and_then(|it| it.since);
    since.or(claim.created_at())
}

impl<'w> NodeClass<'w> {
    pub(crate) fn read(class: &'w Object) -> Self {
        let span = |text: &str| {
            text.parse::<GoDuration>().map_or(SignedDuration::ZERO, GoDuration::signed)
        };
        let noted = |key: &str| class.annotation(key).unwrap_or_default();
        let failures = noted(annotation::LAUNCH_FAILURES).strip_suffix('%');
        let sold_out = class.annotation(annotation::SOLD_OUT).unwrap_or_default().split(',');
        Self {
            // Ready from the start, unless it says otherwise.
            is_ready: matches!(class.condition_status("Ready"), None | Some("True")),
            delay: span(class.spec_text("nodeRegistrationDelay")),
            image: class.annotation(annotation::IMAGE),
            launch_failures: failures.and_then(|share| share.parse().ok()).unwrap_or(0),
            termination_delay: span(noted(annotation::TERMINATION_DELAY)),
            sold_out: sold_out.map(str::trim).filter(|word| !word.is_empty()).collect(),
        }
    }

    /// Whether the provider fails to launch this claim; always the same for the same claim.
    pub(crate) fn fails(&self, claim: &Object) -> bool {
        let print = fingerprint(claim.uid().unwrap_or_default());
        let drawn = u32::from_str_radix(print.get(..8).unwrap_or_default(), 16).unwrap_or(u32::MAX);
        drawn % 100 < self.launch_failures
    }
}
