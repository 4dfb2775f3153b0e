//! What a replica set's status says: counts per placement and in all, and three conditions.

use convoy_api::Object;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::condition::{self, Condition};
use crate::dialect::ocm::decide::reference::{Outcome, Rolled};
use crate::dialect::ocm::list;

/// Works by what they report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    total: u64,
    applied: u64,
    available: u64,
    progressing: u64,
    degraded: u64,
}

/// The status after a pass over all references.
pub(crate) fn status(
    replica_set: &Object,
    outcomes: &[Outcome<'_>],
    now: Timestamp,
) -> Option<Value> {
    let rolled = || outcomes.iter().filter_map(rolled);
    let mut sum = Counts::default();
    let mut placements = Vec::new();
    for rolled in rolled() {
        let counts = Counts::of(rolled);
        sum.add(counts);
        let (groups, selected) = (rolled.rings.len(), rolled.selected);
        placements.push(json!({
            "name": rolled.placement,
            "availableDecisionGroups":
                format!("{groups} ({} / {selected} clusters applied)", counts.total),
            "summary": counts.json(),
        }));
    }
    let broken = outcomes.iter().any(|outcome| !matches!(outcome, Outcome::Rolled(_)));
    let verified = match (broken, sum.total) {
        (true, _) => "NotAsExpected",
        (false, 0) => "PlacementDecisionEmpty",
        (false, _) => "AsExpected",
    };
    let succeeded: u64 = rolled().map(|rolled| rolled.succeeded).sum();
    let selected: u64 = rolled().map(|rolled| rolled.selected).sum();
    let complete = !broken && succeeded == selected;
    let (applied, applied_reason) = sum.verdict(verified);
    let mut status = replica_set.status().as_object().cloned().unwrap_or_default();
    status.insert("summary".into(), sum.json());
    status.insert("placementSummary".into(), Value::Array(placements));
    let rolled_out = if complete { "Complete" } else { "Progressing" };
    let conditions = [
        ("PlacementVerified", verified == "AsExpected", verified),
        ("PlacementRolledOut", complete, rolled_out),
        ("ManifestworkApplied", applied, applied_reason),
    ];
    with_conditions(replica_set, status, &conditions, "", now)
}

/// The status with one condition changed and everything else as it was.
pub(crate) fn with_condition(
    replica_set: &Object,
    kind: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> Option<Value> {
    let status = replica_set.status().as_object().cloned().unwrap_or_default();
    with_conditions(replica_set, status, &[(kind, false, reason)], message, now)
}

fn with_conditions(
    replica_set: &Object,
    mut status: Map<String, Value>,
    wanted: &[(&str, bool, &str)],
    message: &str,
    now: Timestamp,
) -> Option<Value> {
    let mut conditions = list(status.get("conditions")).to_vec();
    for (kind, holds, reason) in wanted {
        let wanted = Condition {
            kind: (*kind).into(),
            status: if *holds { "True" } else { "False" },
            reason: (*reason).into(),
            message: message.into(),
            observed_generation: None,
        };
        condition::set(&mut conditions, &wanted, now);
    }
    status.insert("conditions".into(), Value::Array(conditions));
    let status = Value::Object(status);
    (status != *replica_set.status()).then_some(status)
}

fn rolled<'o, 'w>(outcome: &'o Outcome<'w>) -> Option<&'o Rolled<'w>> {
    match outcome {
        Outcome::Rolled(rolled) => Some(rolled),
        _ => None,
    }
}

impl Counts {
    /// Counts works that hold the current template; `total` adds those that get it now.
    fn of(rolled: &Rolled<'_>) -> Self {
        let with = |kind: &str| {
            let works = rolled.current.iter();
            works.filter(|work| work.condition_status(kind) == Some("True")).count() as u64
        };
        Self {
            total: (rolled.current.len() + rolled.round.take.len()) as u64,
            applied: with("Applied"),
            available: with("Available"),
            progressing: with("Progressing"),
            degraded: with("Degraded"),
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
            (0, "PlacementDecisionEmpty") => (false, "PlacementDecisionEmpty"),
            (0, _) => (false, "NotAsExpected"),
            _ if available == total && progressing == 0 && degraded == 0 => (true, "AsExpected"),
            _ if progressing > 0 && degraded == 0 => (false, "Processing"),
            _ => (false, "NotAsExpected"),
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
