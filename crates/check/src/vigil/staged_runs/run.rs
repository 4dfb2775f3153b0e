//! What matters of an update run, read from its JSON.

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::object::member::{field, list, text};
use serde_json::Value;

/// A run as its status records it.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) name: String,
    pub(super) placement: String,
    /// The name of what it brings; empty until it has begun.
    pub(super) snapshot: String,
    /// Whether it failed, succeeded, or goes.
    pub(super) is_over: bool,
    /// Empty until it has begun.
    pub(super) stages: Vec<Stage>,
}

#[derive(Clone, Debug)]
pub(super) struct Stage {
    pub(super) name: String,
    /// How many of its clusters may be in progress.
    pub(super) ceiling: usize,
    /// Whether a person has to approve before it begins, and before the next one does.
    pub(super) asks_before: bool,
    pub(super) asks_after: bool,
    /// Its clusters, and whether they are done.
    pub(super) clusters: BTreeMap<String, bool>,
}

impl Run {
    pub(super) fn read(object: &Object) -> Self {
        let (name, status) = (object.name().to_string(), object.status());
        let placement = object.spec_text("placementName").to_owned();
        let index = text(status, "resourceSnapshotIndexUsed");
        let strategy = field(status, "stagedUpdateStrategySnapshot");
        let planned = list(strategy, "stages");
        let recorded = list(status, "stagesStatus").iter();
        let stages = recorded.map(|stage| Stage::read(stage, planned)).collect();
        let is_failed = object.condition_status("Initialized") == Some("False");
        let is_decided = object.condition_status("Succeeded").is_some();
        Self {
            snapshot: format!("{placement}-{index}-snapshot"),
            is_over: is_failed || is_decided || object.is_deleting(),
            name,
            placement,
            stages,
        }
    }
}

impl Stage {
    fn read(recorded: &Value, planned: &[Value]) -> Self {
        let name = text(recorded, "stageName");
        let plan = planned.iter().find(|stage| text(stage, "name") == name);
        let plan = plan.unwrap_or(&Value::Null);
        let asks =
            |tasks: &str| list(plan, tasks).iter().any(|task| text(task, "type") == "Approval");
        let clusters: BTreeMap<String, bool> = list(recorded, "clusters")
            .iter()
            .map(|cluster| (text(cluster, "clusterName").to_owned(), has_succeeded(cluster)))
            .collect();
        Self {
            name: name.to_owned(),
            ceiling: ceiling(field(plan, "maxConcurrency"), clusters.len()),
            asks_before: asks("beforeStageTasks"),
            asks_after: asks("afterStageTasks"),
            clusters,
        }
    }
}

fn has_succeeded(cluster: &Value) -> bool {
    let mut conditions = list(cluster, "conditions").iter();
    conditions.any(|it| text(it, "type") == "Succeeded" && text(it, "status") == "True")
}

/// A count, or a share of the clusters that rounds down; at least one.
fn ceiling(given: &Value, clusters: usize) -> usize {
    let percent = given.as_str().and_then(|it| it.strip_suffix('%')?.parse::<usize>().ok());
    let count = given.as_u64().and_then(|count| usize::try_from(count).ok());
    let share = percent.map(|percent| clusters.saturating_mul(percent) / 100);
    share.or(count).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn shares_round_down_and_are_at_least_one() {
        let cases = [
            (json!(null), 4, 1),
            (json!(3), 4, 3),
            (json!("70%"), 4, 2),
            (json!("10%"), 4, 1),
            (json!("100%"), 0, 1),
        ];
        for (given, clusters, expected) in cases {
            assert_eq!(ceiling(&given, clusters), expected, "{given} of {clusters}");
        }
    }
}
