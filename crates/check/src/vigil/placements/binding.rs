//! What matters of a binding, read from its JSON.

use convoy_api::Object;
use convoy_api::object::member::{list, text};
use convoy_api::object::meta::timestamp;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::PARENT;

const PREVIOUS_STATE: &str = "kubernetes-fleet.io/previous-binding-state";

/// Availability that nobody can track counts after a while.
const UNTRACKED: [&str; 2] = ["NotAllWorkAreAvailabilityTrackable", "WorkNotTrackable"];

#[derive(Clone, Debug)]
pub(super) struct Binding {
    pub(super) name: String,
    pub(super) placement: String,
    pub(super) cluster: String,
    pub(super) is_deleting: bool,
    pub(super) reports_differences: bool,
    /// The snapshot and the overrides that it places.
    pub(super) content: Value,
    state: String,
    was_bound: bool,
    /// Since when it is available, and whether that could be tracked.
    available: Option<(Timestamp, bool)>,
}

impl Binding {
    pub(super) fn read(object: &Object) -> Self {
        let spec = object.spec();
        let current = |kind: &str| {
            object.condition(kind).filter(|it| it["observedGeneration"] == object.generation())
        };
        let is_true = |entry: &&Value| text(entry, "status") == "True";
        let available = current("Available").filter(is_true).map(|entry| {
            let since = timestamp(entry.get("lastTransitionTime")).unwrap_or(Timestamp::MIN);
            (since, !UNTRACKED.contains(&text(entry, "reason")))
        });
        let differences = current("DiffReported");
        let diff = differences.filter(is_true).map(|_| (Timestamp::MIN, true));
        Self {
            name: object.name().to_string(),
            placement: object.label(PARENT).unwrap_or_default().to_owned(),
            cluster: text(spec, "targetCluster").to_owned(),
            is_deleting: object.is_deleting(),
            reports_differences: differences.is_some(),
            content: Value::Array(vec![
                spec.get("resourceSnapshotName").cloned().unwrap_or_default(),
                list(spec, "clusterResourceOverrideSnapshots").to_vec().into(),
                list(spec, "resourceOverrideSnapshots").to_vec().into(),
            ]),
            state: text(spec, "state").to_owned(),
            was_bound: object.annotation(PREVIOUS_STATE) == Some("Bound"),
            available: diff.or(available),
        }
    }

    pub(super) fn is_bound(&self) -> bool {
        self.state == "Bound"
    }

    pub(super) fn is_picked(&self) -> bool {
        self.is_bound() || self.state == "Scheduled"
    }

    /// Whether its cluster is picked and has nothing yet.
    pub(super) fn is_waiting(&self) -> bool {
        self.state == "Scheduled" && !self.is_deleting
    }

    /// Whether resources may be on the cluster because of it.
    pub(super) fn is_placed(&self) -> bool {
        self.is_bound() || self.state == "Unscheduled" && self.was_bound
    }

    /// Whether the resources work; what cannot be tracked has to stand for `period`.
    pub(super) fn is_ready(&self, period: SignedDuration, now: Timestamp) -> bool {
        self.available
            .is_some_and(|(since, is_tracked)| is_tracked || now.duration_since(since) > period)
    }
}
