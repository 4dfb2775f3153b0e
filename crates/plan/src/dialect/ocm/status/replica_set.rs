//! What a replica set's status says: counts per placement and in all, and three conditions.

use convoy_api::Object;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::condition::{self, Condition};
use crate::dialect::ocm::decide::replica_set::{Decision, PlacementRollout, Reference, Rolling};
use crate::dialect::ocm::names::{
    APPLIED, AS_EXPECTED, AVAILABLE, DEGRADED, INVALID_MANIFEST_WORK_NAME, LABEL_VALUE_MAX,
    MANIFEST_WORK_APPLIED, NOT_AS_EXPECTED, PLACEMENT_DECISION_EMPTY, PLACEMENT_DECISION_NOT_FOUND,
    PLACEMENT_ROLLED_OUT, PLACEMENT_VERIFIED, PROGRESSING,
};
use crate::dialect::ocm::read::replica_set::owner_value;

/// Works by what they report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    total: u64,
    applied: u64,
    available: u64,
    progressing: u64,
    degraded: u64,
}

/// The status that follows from a decision; none if it reads so already.
pub(crate) fn status(
    replica_set: &Object,
    decision: &Decision<'_>,
    now: Timestamp,
) -> Option<Value> {
    let condition = |kind, reason, message: &str| {
        let status = replica_set.status().as_object().cloned().unwrap_or_default();
        with_conditions(replica_set, status, &[(kind, false, reason)], message, now)
    };
    match decision {
        Decision::Deleting { .. } => None,
        Decision::NameTooLong => {
            let (kind, reason) = (MANIFEST_WORK_APPLIED, INVALID_MANIFEST_WORK_NAME);
            condition(kind, reason, &name_too_long(replica_set))
        }
        Decision::Rolling(rolling) if !rolling.is_protected => None,
        Decision::Rolling(rolling) => {
            let missing = |reference: &Reference<'_>| matches!(reference, Reference::NotFound(_));
            if rolling.references.iter().any(missing) {
                condition(PLACEMENT_VERIFIED, PLACEMENT_DECISION_NOT_FOUND, "")
            } else {
                rolling_status(replica_set, rolling, now)
            }
        }
    }
}

/// Why the works of a replica set cannot say whose they are.
pub(crate) fn name_too_long(replica_set: &Object) -> String {
    let owner = owner_value(replica_set);
    format!(
        "{owner:?} cannot be a label value: the combined length of namespace and name must be at \
         most {LABEL_VALUE_MAX} characters, with the dot between them"
    )
}

fn rolling_status(replica_set: &Object, rolling: &Rolling<'_>, now: Timestamp) -> Option<Value> {
    let rollouts = || rolling.rollouts();
    let mut sum = Counts::default();
    let mut placements = Vec::new();
    for rollout in rollouts() {
        let counts = Counts::of(rollout);
        sum.add(counts);
        let (groups, selected) = (rollout.groups.len(), rollout.selected);
        placements.push(json!({
            "name": rollout.placement,
            "availableDecisionGroups":
                format!("{groups} ({} / {selected} clusters applied)", counts.total),
            "summary": counts.json(),
        }));
    }
    let broken = rolling.is_broken();
    let verified = match (broken, sum.total) {
        (true, _) => NOT_AS_EXPECTED,
        (false, 0) => PLACEMENT_DECISION_EMPTY,
        (false, _) => AS_EXPECTED,
    };
    let succeeded: u64 = rollouts().map(|rollout| rollout.succeeded).sum();
    let selected: u64 = rollouts().map(|rollout| rollout.selected).sum();
    let complete = !broken && succeeded == selected;
    let (applied, applied_reason) = sum.verdict(verified);
    let mut status = replica_set.status().as_object().cloned().unwrap_or_default();
    status.insert("summary".into(), sum.json());
    status.insert("placementSummary".into(), Value::Array(placements));
    let rolled_out = if complete { "Complete" } else { "Progressing" };
    let conditions = [
        (PLACEMENT_VERIFIED, verified == AS_EXPECTED, verified),
        (PLACEMENT_ROLLED_OUT, complete, rolled_out),
        (MANIFEST_WORK_APPLIED, applied, applied_reason),
    ];
    with_conditions(replica_set, status, &conditions, "", now)
}

fn with_conditions(
    replica_set: &Object,
    mut status: Map<String, Value>,
    wanted: &[(&str, bool, &str)],
    message: &str,
    now: Timestamp,
) -> Option<Value> {
    let mut conditions =
        status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    for (kind, holds, reason) in wanted {
        let wanted = Condition::new(*kind, condition::truth(*holds), *reason, message);
        condition::set(&mut conditions, &wanted, now);
    }
    status.insert("conditions".into(), Value::Array(conditions));
    let status = Value::Object(status);
    (status != *replica_set.status()).then_some(status)
}

impl Counts {
    /// Counts works that hold the current template; `total` adds those that get it now.
    fn of(rollout: &PlacementRollout<'_>) -> Self {
        let with = |kind: &str| {
            let works = rollout.current.iter();
            works.filter(|work| work.condition_status(kind) == Some("True")).count() as u64
        };
        Self {
            total: (rollout.current.len() + rollout.starts.len()) as u64,
            applied: with(APPLIED),
            available: with(AVAILABLE),
            progressing: with(PROGRESSING),
            degraded: with(DEGRADED),
        }
    }

    fn add(&mut self, other: Self) {
        self.total += other.total;
        self.applied += other.applied;
        self.available += other.available;
        self.progressing += other.progressing;
        self.degraded += other.degraded;
    }

    /// Whether the works are as they should be, in the words of the condition.
    fn verdict(self, verified: &'static str) -> (bool, &'static str) {
        let Self { total, available, progressing, degraded, .. } = self;
        match (total, verified) {
            (0, PLACEMENT_DECISION_EMPTY) => (false, PLACEMENT_DECISION_EMPTY),
            (0, _) => (false, NOT_AS_EXPECTED),
            _ if available == total && progressing == 0 && degraded == 0 => (true, AS_EXPECTED),
            _ if progressing > 0 && degraded == 0 => (false, "Processing"),
            _ => (false, NOT_AS_EXPECTED),
        }
    }

    fn json(self) -> Value {
        let Self { total, applied, available, progressing, degraded } = self;
        json!({
            "total": total,
            "progressing": progressing,
            "available": available,
            "degraded": degraded,
            "applied": applied,
            "desiredTotal": 0,
            "updated": 0,
        })
    }
}
