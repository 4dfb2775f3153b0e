//! The status of one manifest: its conditions, and what differs on the member.

use convoy_api::object::member::{field, list, text};
use convoy_api::object::meta::timestamp;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::availability::Availability;
use crate::condition::{self, Condition, instant};
use crate::dialect::fleet_agent::decide::manifest::{ApplyOrReportResult, Processed};
use crate::dialect::fleet_agent::names::{APPLIED, AVAILABLE, DIFF_REPORTED, PREPARING};
use crate::json_diff::Difference;

/// The entry of a manifest. `before` is the one that it takes the place of, `mirror` says whether
/// the object's status is reported back, and what was observed before `due` is observed again.
pub(crate) fn entry(
    processed: &Processed<'_>,
    before: &Value,
    mirror: bool,
    (due, now): (Option<Timestamp>, Timestamp),
) -> Value {
    let mut conditions = list(before, "conditions").to_vec();
    let generation = processed.live.map_or(0, convoy_api::Object::generation);
    let told = [
        (APPLIED, applied(processed)),
        (AVAILABLE, available(processed)),
        (DIFF_REPORTED, diff_reported(processed)),
    ];
    for (kind, condition) in told {
        match condition {
            Some(condition) => {
                condition::set(&mut conditions, &condition.of_generation(generation), now);
            }
            None => condition::remove(&mut conditions, kind),
        }
    }
    let mut entry = Map::new();
    entry.insert("identifier".into(), processed.manifest.identifier.to_value());
    entry.insert("conditions".into(), Value::Array(conditions));
    let live = processed.live.map(|_| generation);
    let drift =
        Details { name: "driftDetails", first: "firstDriftedObservedTime", list: "observedDrifts" };
    let diff =
        Details { name: "diffDetails", first: "firstDiffedObservedTime", list: "observedDiffs" };
    for (details, found) in [(drift, &processed.drifts), (diff, &processed.diffs)] {
        if let Some(value) = details.told(found, live, before, (due, now)) {
            entry.insert(details.name.into(), value);
        }
    }
    if let Some(status) = back_reported(processed, before, mirror, now) {
        entry.insert("backReportedStatus".into(), status);
    }
    Value::Object(entry)
}

fn applied<'p>(processed: &'p Processed<'_>) -> Option<Condition<'p>> {
    let condition = match &processed.result {
        ApplyOrReportResult::Applied { .. } => {
            Condition::new(APPLIED, "True", "Applied", "the object is as the manifest says")
        }
        ApplyOrReportResult::Pending { .. } => {
            Condition::new(APPLIED, "False", PREPARING, "the object is about to be written")
        }
        ApplyOrReportResult::Failed { .. } if processed.only_report => return None,
        ApplyOrReportResult::Retried { reason, message, .. }
        | ApplyOrReportResult::Failed { reason, message } => {
            Condition::new(APPLIED, "False", *reason, message.as_str())
        }
        ApplyOrReportResult::Reported => return None,
    };
    Some(condition)
}

fn available<'p>(processed: &'p Processed<'_>) -> Option<Condition<'p>> {
    let ApplyOrReportResult::Applied { availability, .. } = &processed.result else { return None };
    let (status, reason) = match availability {
        Availability::Available => ("True", "Available"),
        Availability::NotYetAvailable { .. } => ("False", "ManifestNotAvailableYet"),
        Availability::NotTrackable { .. } => ("True", "NotTrackable"),
        Availability::Failed { .. } => ("False", "Failed"),
    };
    Some(Condition::new(AVAILABLE, status, reason, availability.to_string()))
}

fn diff_reported<'p>(processed: &'p Processed<'_>) -> Option<Condition<'p>> {
    match &processed.result {
        ApplyOrReportResult::Reported if processed.diffs.is_empty() => {
            Some(Condition::new(DIFF_REPORTED, "True", "NoDiffFound", "nothing differs"))
        }
        ApplyOrReportResult::Reported => {
            let message = format!("{} fields differ", processed.diffs.len());
            let reason =
                if processed.is_degraded { "FoundDiffInDegradedMode" } else { "FoundDiff" };
            Some(Condition::new(DIFF_REPORTED, "True", reason, message))
        }
        ApplyOrReportResult::Failed { message, .. } if processed.only_report => {
            let reason = "FailedToReportDiff";
            Some(Condition::new(DIFF_REPORTED, "False", reason, message.as_str()))
        }
        _ => None,
    }
}

/// Where differences of one sort stand in an entry.
#[derive(Clone, Copy)]
struct Details {
    name: &'static str,
    first: &'static str,
    list: &'static str,
}

impl Details {
    /// None where nothing differs. When it was first seen stays; when it was last seen is renewed
    /// as it is due.
    fn told(
        self,
        found: &[Difference],
        generation: Option<i64>,
        before: &Value,
        (due, now): (Option<Timestamp>, Timestamp),
    ) -> Option<Value> {
        if found.is_empty() {
            return None;
        }
        let before = field(before, self.name);
        let entries: Vec<Value> = found.iter().map(Difference::to_value).collect();
        let seen = timestamp(before.get("observationTime"));
        let is_recent = seen.is_some_and(|seen| due.is_none_or(|due| seen >= due));
        let same = list(before, self.list) == entries
            && field(before, "observedInMemberClusterGeneration").as_i64() == generation;
        let mut details = Map::new();
        let at = |name: &str| field(before, name).as_str().map(|text| json!(text));
        let observed = at("observationTime").filter(|_| same && is_recent);
        details.insert("observationTime".into(), observed.unwrap_or_else(|| instant(now)));
        if let Some(generation) = generation {
            details.insert("observedInMemberClusterGeneration".into(), json!(generation));
        }
        details.insert(self.first.into(), at(self.first).unwrap_or_else(|| instant(now)));
        details.insert(self.list.into(), Value::Array(entries));
        Some(Value::Object(details))
    }
}

/// The status of the object on the member, as the hub asked for it.
fn back_reported(
    processed: &Processed<'_>,
    before: &Value,
    mirror: bool,
    now: Timestamp,
) -> Option<Value> {
    let applied = mirror && matches!(processed.result, ApplyOrReportResult::Applied { .. });
    let live = processed.live.filter(|live| applied && live.status().is_object())?;
    let before = field(before, "backReportedStatus");
    let mut observed = json!({
        "apiVersion": live.api_version(),
        "kind": live.kind().kind,
        "metadata": {"name": live.name()},
        "status": live.status(),
    });
    if !live.namespace().is_empty() {
        observed["metadata"]["namespace"] = json!(live.namespace());
    }
    let same = *field(before, "observedStatus") == observed;
    let at = text(before, "observationTime");
    let at = if same && !at.is_empty() { json!(at) } else { instant(now) };
    Some(json!({"observedStatus": observed, "observationTime": at}))
}
