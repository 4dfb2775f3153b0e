//! What decides which pods are given up, read once.

use convoy_api::Object;
use convoy_api::apps::annotation;
use convoy_api::object::member::{list, member};
use convoy_api::object::meta::timestamp;
use jiff::Timestamp;
use serde_json::Value;

use super::node_of;

/// A pod that is alive.
#[derive(Debug)]
pub(crate) struct ActivePod<'o> {
    pub(crate) object: &'o Object,
    /// Empty while it is not scheduled.
    pub(crate) node: &'o str,
    pub(crate) phase: Phase,
    pub(crate) ready: Readiness,
    pub(crate) deletion_cost: i32,
}

/// In the order in which pods are given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Pending,
    Unknown,
    Running,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    False,
    True { since: Option<Timestamp> },
}

impl<'o> ActivePod<'o> {
    pub(crate) fn new(object: &'o Object) -> Self {
        let text = |part: &'o Value, field: &str| member(part, field).and_then(Value::as_str);
        let phase = match text(object.status(), "phase") {
            Some("Running") => Phase::Running,
            Some("Unknown") => Phase::Unknown,
            _ => Phase::Pending,
        };
        let ready = match object.condition("Ready") {
            Some(entry) if text(entry, "status") == Some("True") => {
                Readiness::True { since: timestamp(member(entry, "lastTransitionTime")) }
            }
            _ => Readiness::False,
        };
        let cost = object.annotation(annotation::POD_DELETION_COST);
        Self {
            object,
            node: node_of(object).unwrap_or_default(),
            phase,
            ready,
            deletion_cost: cost.and_then(|cost| cost.parse().ok()).unwrap_or(0),
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready != Readiness::False
    }

    /// The most restarts of a regular container, then of a sidecar.
    pub(crate) fn restarts(&self) -> (i64, i64) {
        let (spec, status) = (self.object.spec(), self.object.status());
        let sidecars = list(spec, "initContainers").iter().filter(|container| {
            member(container, "restartPolicy").and_then(Value::as_str) == Some("Always")
        });
        let sidecars: Vec<Option<&Value>> =
            sidecars.map(|container| container.get("name")).collect();
        let regular = list(status, "containerStatuses").iter().map(restart_count).max();
        let aside = list(status, "initContainerStatuses").iter();
        let aside = aside.filter(|of| sidecars.contains(&of.get("name"))).map(restart_count).max();
        (regular.unwrap_or(0), aside.unwrap_or(0))
    }
}

fn restart_count(status: &Value) -> i64 {
    member(status, "restartCount").and_then(Value::as_i64).unwrap_or(0)
}
