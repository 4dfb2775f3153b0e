//! The numbers that upstream's hub agent publishes, under its names and labels. All of them are
//! read from the status as it stands after the decision, so that a restart changes none.

use convoy_api::Object;
use jiff::Timestamp;
use serde_json::Value;

use crate::condition::dated::Entry;
use crate::dialect::fleet::names::{
    APPLIED, AVAILABLE, DIFF_REPORTED, EXECUTED, INITIALIZED, OVERRIDDEN, PROGRESSING,
    ROLLOUT_STARTED, RolloutKind, SUCCEEDED, VALID, WORK_SYNCHRONIZED,
};
use crate::dialect::fleet::read::placement::only_reports;
use crate::dialect::fleet::read::strategy::When;
use crate::dialect::fleet::read::{run as run_object, run_times};
use crate::series::{Metric, Series};

const PLACEMENT: Metric = Metric::new(
    "fleet_workload_placement_status_last_timestamp_seconds",
    "When the placement came to the status in its labels",
);
const EVICTION: Metric = Metric::new(
    "fleet_workload_eviction_complete",
    "When the eviction was decided; its creation while it is not",
);
const RUN: Metric = Metric::new(
    "fleet_workload_update_run_status_last_timestamp_seconds",
    "When the update run came to the status in its labels",
);
const APPROVAL: Metric = Metric::histogram(
    "fleet_workload_update_run_approval_request_latency_seconds",
    "Time from an approval request to its approval",
    &[60, 300, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400],
);
const STAGE: Metric = Metric::histogram(
    "fleet_workload_update_run_stage_cluster_updating_duration_seconds",
    "Time in which the clusters of a stage were updated, without its tasks",
    &[15, 30, 60, 120, 300, 600, 1800, 3600],
);

/// All of them for one rollout, whose status is as in `decided`, or else as it was.
pub(crate) fn series(rollout: &Object, decided: Option<&Value>) -> Vec<Series> {
    if rollout.is_deleting() {
        return Vec::new();
    }
    let status = decided.unwrap_or(rollout.status());
    match RolloutKind::of(rollout.kind()) {
        Some(RolloutKind::Placement(_)) => vec![placement(rollout, status)],
        Some(RolloutKind::Eviction) => vec![eviction(rollout, status)],
        Some(RolloutKind::Run(_)) => run(rollout, status),
        _ => Vec::new(),
    }
}

/// The first condition, in the order of the pipeline, that is not true for this generation, or
/// `Completed`.
fn placement(placement: &Object, status: &Value) -> Series {
    let generation = placement.generation();
    let last: &[&str] =
        if only_reports(placement) { &[DIFF_REPORTED] } else { &[APPLIED, AVAILABLE] };
    let first = ["Scheduled", ROLLOUT_STARTED, OVERRIDDEN, WORK_SYNCHRONIZED];
    let expected = first.iter().chain(last).map(|kind| format!("{}{kind}", placement.kind().kind));
    let mut since = placement.created_at();
    let mut told = ("Completed".to_owned(), "True", "Completed");
    for kind in expected {
        let found = Entry::within(status, &kind);
        let found = found.filter(|found| found.observed_generation() >= generation);
        since = since.max(found.and_then(Entry::changed_at));
        if found.is_none_or(|found| !found.is_true()) {
            let words = found.map(|found| (found.status(), found.reason()));
            let (word, reason) = words.unwrap_or(("nil", "nil"));
            told = (kind, word, reason);
            break;
        }
    }
    let generation = generation.to_string();
    let labels = [
        ("namespace", placement.namespace().as_str()),
        ("name", placement.name().as_str()),
        ("generation", &generation),
        ("conditionType", &told.0),
        ("status", told.1),
        ("reason", told.2),
    ];
    Series::new(&PLACEMENT, &labels, seconds(since))
}

fn eviction(eviction: &Object, status: &Value) -> Series {
    let [valid, executed] = [VALID, EXECUTED].map(|kind| Entry::within(status, kind));
    let is_valid = valid.map(Entry::is_true);
    let (is_completed, is_valid, since) = match (is_valid, executed) {
        (Some(true), Some(executed)) => ("true", "true", executed.changed_at()),
        (Some(false), _) => ("true", "false", valid.and_then(Entry::changed_at)),
        _ => ("false", "unknown", eviction.created_at()),
    };
    let labels =
        [("name", eviction.name().as_str()), ("isCompleted", is_completed), ("isValid", is_valid)];
    Series::new(&EVICTION, &labels, seconds(since))
}

fn run(run: &Object, status: &Value) -> Vec<Series> {
    let (namespace, name) =
        (("namespace", run.namespace().as_str()), ("name", run.name().as_str()));
    let known = [SUCCEEDED, PROGRESSING, INITIALIZED];
    let mut known = known.iter().filter_map(|kind| Some((kind, Entry::within(status, kind)?)));
    let mut all = Vec::new();
    if let Some((kind, found)) = known.next() {
        let labels = [
            namespace,
            name,
            ("state", run_object::state(run)),
            ("condition", kind),
            ("status", found.status()),
            ("reason", found.reason()),
            ("failureType", failure_type(found)),
        ];
        all.push(Series::new(&RUN, &labels, seconds(found.changed_at())));
    }
    let updated = run_times::updating(status);
    if !updated.is_empty() {
        all.push(Series::observed(&STAGE, &[namespace, name], updated));
    }
    for when in [When::Before, When::After] {
        let waited = run_times::approving(status, when);
        if !waited.is_empty() {
            let task = ("taskType", when.task_type());
            all.push(Series::observed(&APPROVAL, &[namespace, name, task], waited));
        }
    }
    all
}

/// A run fails only by what is found in objects; one that is stuck needs a look at its clusters.
fn failure_type(condition: Entry<'_>) -> &'static str {
    match (condition.status(), condition.reason()) {
        ("False", "UpdateRunStuck") => "internal_error",
        ("False", "UpdateRunFailed" | "UpdateRunInitializedFailed") => "user_error",
        _ => "none",
    }
}

fn seconds(at: Option<Timestamp>) -> i64 {
    at.map_or(0, Timestamp::as_second)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::dialect::fleet::names::{REQUEST_APPROVED, REQUEST_CREATED};

    const API: &str = "placement.kubernetes-fleet.io/v1beta1";

    fn object(kind: &str, spec: &Value, conditions: &Value, more: &Value) -> Object {
        let mut status = json!({"conditions": conditions});
        status.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Object::from_value(json!({"apiVersion": API, "kind": kind, "spec": spec, "status": status,
            "metadata": {"name": "x", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z"}}))
        .unwrap()
    }

    /// A condition of a generation, so many seconds after the beginning of the year.
    fn entry(kind: &str, status: &str, reason: &str, generation: i64, secs: i64) -> Value {
        let at = Timestamp::from_second(1_767_225_600 + secs).unwrap().to_string();
        json!({"type": kind, "status": status, "reason": reason, "observedGeneration": generation,
            "lastTransitionTime": at})
    }

    fn told(object: &Object) -> Vec<String> {
        let line = |one: &Series| {
            let labels: Vec<&str> = one.labels.iter().map(|(_, value)| value.as_str()).collect();
            let name = one.metric.name.trim_start_matches("fleet_workload_");
            let value = if one.value == 0 { 0 } else { one.value - 1_767_225_600 };
            format!("{name} {} {value} {:?}", labels.join("|"), one.observed)
        };
        series(object, None).iter().map(line).collect()
    }

    #[test]
    fn a_placement_tells_of_the_first_condition_that_is_not_true() {
        let prefixed = |kind: &str| format!("ClusterResourcePlacement{kind}");
        let all = |last: Value| {
            let kinds =
                ["Scheduled", "RolloutStarted", "Overridden", "WorkSynchronized", "Applied"];
            let first = kinds.iter().map(|kind| entry(&prefixed(kind), "True", "Fine", 2, 5));
            first.chain([last]).collect::<Value>()
        };
        let available = |word, generation, secs| {
            all(entry("ClusterResourcePlacementAvailable", word, "Why", generation, secs))
        };
        let name = "placement_status_last_timestamp_seconds |x|2|";
        let cases = [
            (json!({}), json!([]), "ClusterResourcePlacementScheduled|nil|nil 0"),
            (json!({}), available("True", 2, 9), "Completed|True|Completed 9"),
            (json!({}), available("False", 2, 9), "ClusterResourcePlacementAvailable|False|Why 9"),
            // Of an older generation: not reported yet.
            (json!({}), available("True", 1, 9), "ClusterResourcePlacementAvailable|nil|nil 5"),
            (
                json!({"strategy": {"applyStrategy": {"type": "ReportDiff"}}}),
                available("True", 2, 9),
                "ClusterResourcePlacementDiffReported|nil|nil 5",
            ),
        ];
        for (spec, conditions, want) in cases {
            let placement = object("ClusterResourcePlacement", &spec, &conditions, &json!({}));
            assert_eq!(told(&placement), [format!("{name}{want} []")]);
        }
    }

    #[test]
    fn an_eviction_is_complete_once_it_is_decided() {
        let valid = |word| entry(VALID, word, "Why", 2, 3);
        let cases = [
            (json!([]), "false|unknown 0"),
            (json!([valid("False")]), "true|false 3"),
            (json!([valid("True")]), "false|unknown 0"),
            (json!([valid("True"), entry(EXECUTED, "False", "Why", 2, 4)]), "true|true 4"),
        ];
        for (conditions, want) in cases {
            let kind = "ClusterResourcePlacementEviction";
            let eviction = object(kind, &json!({}), &conditions, &json!({}));
            assert_eq!(told(&eviction), [format!("eviction_complete x|{want} []")]);
        }
    }

    #[test]
    fn a_run_tells_of_its_last_condition_and_how_long_its_stages_took() {
        let conditions = json!([
            entry(INITIALIZED, "True", "UpdateRunInitializedSuccessfully", 2, 1),
            entry(PROGRESSING, "False", "UpdateRunStuck", 2, 7)
        ]);
        let task = json!({"type": "Approval", "conditions": [
            entry(REQUEST_CREATED, "True", "Why", 2, 20), entry(REQUEST_APPROVED, "True", "Why", 2, 90)]});
        let stage = |reason: &str, tasks: Value| {
            json!({"stageName": "a", "startTime": "2026-01-01T00:00:05Z", "afterStageTaskStatus": tasks,
                "conditions": [entry(PROGRESSING, "False", reason, 2, 20)]})
        };
        let stages = json!({"stagesStatus": [stage("StageUpdatingWaiting", json!([task])),
            stage("StageUpdatingSkippedNoClusters", json!([])), {"stageName": "later"}]});
        let run = object("ClusterStagedUpdateRun", &json!({"state": "Run"}), &conditions, &stages);
        assert_eq!(
            told(&run),
            [
                "update_run_status_last_timestamp_seconds \
                 |x|Run|Progressing|False|UpdateRunStuck|internal_error 7 []",
                "update_run_stage_cluster_updating_duration_seconds |x 0 [15]",
                "update_run_approval_request_latency_seconds |x|afterStage 0 [70]",
            ]
        );
    }
}
