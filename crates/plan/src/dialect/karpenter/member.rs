//! One node of a pool: its NodeClaim, its Node, or both. Facts are read in one pass over each
//! object, because there are many of them.

use convoy_api::Object;
use convoy_api::karpenter::names::{self, annotation, condition, label};
use convoy_api::object::meta::timestamp;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

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

/// A condition that is True.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark<'w> {
    pub(crate) since: Option<&'w str>,
    pub(crate) reason: &'w str,
}

impl Mark<'_> {
    pub(crate) fn since(&self) -> Option<Timestamp> {
        self.since?.parse().ok()
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
        let mut node = Self {
            object,
            pool: None,
            is_registered: false,
            is_initialized: false,
            is_ready: false,
            is_deleting: false,
            is_tainted: false,
            is_protected: false,
            provider_id: "",
            capacity: None,
            allocatable: None,
        };
        for (part, value) in fields(object.raw()) {
            match part.as_str() {
                "metadata" => node.read_metadata(value),
                "spec" => node.read_spec(value),
                "status" => node.read_status(value),
                _ => {}
            }
        }
        node
    }

    fn read_metadata(&mut self, metadata: &'w Value) {
        for (key, value) in fields(metadata) {
            match key.as_str() {
                "labels" => self.read_labels(value),
                "annotations" => {
                    let text = value.get(annotation::DO_NOT_DISRUPT).and_then(Value::as_str);
                    self.is_protected = text == Some("true");
                }
                "deletionTimestamp" => self.is_deleting = !value.is_null(),
                _ => {}
            }
        }
    }

    fn read_spec(&mut self, spec: &'w Value) {
        for (key, value) in fields(spec) {
            match key.as_str() {
                "providerID" => self.provider_id = value.as_str().unwrap_or_default(),
                "taints" => self.is_tainted = is_disrupted(value),
                _ => {}
            }
        }
    }

    fn read_status(&mut self, status: &'w Value) {
        for (key, value) in fields(status) {
            match key.as_str() {
                "capacity" => self.capacity = Some(value),
                "allocatable" => self.allocatable = Some(value),
                "conditions" => {
                    let mut entries = value.as_array().into_iter().flatten();
                    self.is_ready = entries.any(is_ready);
                }
                _ => {}
            }
        }
    }

    fn read_labels(&mut self, labels: &'w Value) {
        for (key, value) in fields(labels) {
            match key.as_str() {
                label::NODE_POOL => self.pool = value.as_str(),
                label::REGISTERED => self.is_registered = value.as_str() == Some("true"),
                label::INITIALIZED => self.is_initialized = value.as_str() == Some("true"),
                _ => {}
            }
        }
    }
}

impl<'w> ClaimFacts<'w> {
    pub(crate) fn new(claim: &'w Object) -> Self {
        let mut facts = Self::default();
        for (part, value) in fields(claim.raw()) {
            match part.as_str() {
                "metadata" => facts.read_metadata(value),
                "spec" => facts.read_spec(value),
                "status" => facts.read_status(value),
                _ => {}
            }
        }
        facts
    }

    fn read_metadata(&mut self, metadata: &'w Value) {
        for (key, value) in fields(metadata) {
            match key.as_str() {
                "labels" => self.read_labels(value),
                "annotations" => self.read_annotations(value),
                "creationTimestamp" => self.created = timestamp(Some(value)),
                "deletionTimestamp" => self.is_deleting = !value.is_null(),
                _ => {}
            }
        }
    }

    fn read_labels(&mut self, labels: &'w Value) {
        for (key, value) in fields(labels) {
            let place = match key.as_str() {
                label::NODE_POOL => &mut self.pool,
                label::INSTANCE_TYPE => &mut self.instance_type,
                label::ZONE => &mut self.zone,
                label::CAPACITY_TYPE => &mut self.capacity_type,
                _ => continue,
            };
            *place = value.as_str();
        }
    }

    fn read_spec(&mut self, spec: &'w Value) {
        for (key, value) in fields(spec) {
            match key.as_str() {
                "expireAfter" => self.expire_after = Some(value),
                "terminationGracePeriod" => self.grace_period = value.as_str(),
                _ => {}
            }
        }
    }

    fn read_status(&mut self, status: &'w Value) {
        for (key, value) in fields(status) {
            match key.as_str() {
                "providerID" => self.provider_id = value.as_str().unwrap_or_default(),
                "lastPodEventTime" => self.last_pod_event = Some(value),
                "conditions" => {
                    for entry in value.as_array().into_iter().flatten() {
                        self.read_condition(entry);
                    }
                }
                _ => {}
            }
        }
    }

    fn read_annotations(&mut self, annotations: &'w Value) {
        for (key, value) in fields(annotations) {
            let text = value.as_str();
            match key.as_str() {
                annotation::HASH => self.hash = text,
                annotation::HASH_VERSION => self.hash_version = text,
                annotation::COMMAND => self.command = text,
                annotation::PROPOSAL => self.proposal = text,
                _ => {}
            }
        }
    }

    fn read_condition(&mut self, entry: &'w Value) {
        let (mut kind, mut status, mut mark) = ("", "", Mark { since: None, reason: "" });
        for (key, value) in fields(entry) {
            let text = value.as_str();
            match key.as_str() {
                "type" => kind = text.unwrap_or_default(),
                "status" => status = text.unwrap_or_default(),
                "reason" => mark.reason = text.unwrap_or_default(),
                "lastTransitionTime" => mark.since = text,
                _ => {}
            }
        }
        let mark = (status == "True").then_some(mark);
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

fn is_ready(condition: &Value) -> bool {
    let (mut of_kind, mut is_true) = (false, false);
    for (key, value) in fields(condition) {
        match key.as_str() {
            "type" => of_kind = value == "Ready",
            "status" => is_true = value == "True",
            _ => {}
        }
    }
    of_kind && is_true
}

/// Whether a list of taints has the one that marks a disruption.
pub(crate) fn is_disrupted(taints: &Value) -> bool {
    let mut taints = taints.as_array().into_iter().flatten();
    taints.any(|taint| taint.get("key").and_then(Value::as_str) == Some(names::DISRUPTED_TAINT))
}

/// The entries of a JSON object; walking a small map beats hashing a key for each field.
fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}
