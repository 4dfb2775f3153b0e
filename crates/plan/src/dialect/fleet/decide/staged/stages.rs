//! The stages of an update strategy: who is in which, in what order, and how many at once.

use std::collections::BTreeSet;

use convoy_api::Object;
use convoy_api::text::GoDuration;
use serde_json::{Value, json};

use crate::budget::{IntOrPercent, Rounding};
use crate::dialect::fleet::decide::staged::Halt;
use crate::dialect::fleet::names::MEMBER_CLUSTER;
use crate::dialect::fleet::read::binding::Binding;
use crate::dialect::fleet::read::placement::{field, list, text};
use crate::dialect::fleet::read::run::{Node, Stage};
use crate::selector::Selector;
use crate::snapshot::Snapshot;

/// How many clusters without a stage are named.
const NAMED: usize = 10;

/// Something to be done before or after a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    TimedWait(GoDuration),
    Approval,
}

/// The stages of `strategy` (its recorded form) over the clusters to be updated. Each cluster
/// is in exactly one.
pub(crate) fn computed(
    snapshot: &Snapshot<'_>,
    run: &str,
    strategy: &Value,
    update: &[Binding<'_>],
) -> Result<Vec<Stage>, Halt> {
    let wanted: BTreeSet<&str> = update.iter().map(Binding::cluster).collect();
    let mut placed: BTreeSet<&str> = BTreeSet::new();
    let mut stages = Vec::new();
    for config in list(strategy, "stages") {
        let name = text(config, "name");
        let mut stage = Stage { node: Node::named("stageName", name), ..Stage::default() };
        for cluster in members(snapshot, config, &wanted)? {
            if !placed.insert(cluster) {
                return Err(Halt::abort(format!("cluster {cluster:?} is in more than one stage")));
            }
            stage.clusters.push(Node::named("clusterName", cluster));
        }
        stage.before = task_records(config, "beforeStageTasks", &format!("{run}-before-{name}"))?;
        stage.after = task_records(config, "afterStageTasks", &format!("{run}-after-{name}"))?;
        stages.push(stage);
    }
    let missing: Vec<&str> = wanted.difference(&placed).copied().collect();
    if missing.is_empty() {
        return Ok(stages);
    }
    let named = missing.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    Err(Halt::abort(format!(
        "{} clusters are in no stage, the first {NAMED} of them: {named}",
        missing.len()
    )))
}

/// The most clusters of a stage that may be in progress: shares round down, at least one.
///
/// | clusters | maxConcurrency | limit | because                  |
/// |---------:|----------------|------:|--------------------------|
/// |        4 | 50%            |     2 |                          |
/// |        5 | 70%            |     3 | 3.5 rounds down          |
/// |        2 | 10%            |     1 | 0.2 would never begin    |
/// |        9 | (absent)       |     1 | one at a time by default |
pub(crate) fn limit(config: &Value, clusters: usize) -> usize {
    let share = config.get("maxConcurrency").filter(|share| !share.is_null());
    let share = share.and_then(|share| IntOrPercent::from_value(share).ok());
    let total = u32::try_from(clusters).unwrap_or(u32::MAX);
    let limit = share.map_or(1, |share| share.resolve(total, Rounding::Down { at_least: 1 }));
    usize::try_from(limit.max(1)).unwrap_or(usize::MAX)
}

/// The tasks of a stage, in order. Refused: a wait of no length.
pub(crate) fn tasks(config: &Value, name: &str) -> Result<Vec<Task>, Halt> {
    let read = |task: &Value| match text(task, "type") {
        "Approval" => Ok(Task::Approval),
        "TimedWait" => {
            let wait = text(task, "waitTime").parse::<GoDuration>().ok();
            let wait = wait.filter(|wait| *wait > GoDuration::default());
            let stage = text(config, "name");
            let missing = || Halt::abort(format!("stage {stage}: TimedWait needs a waitTime"));
            wait.map(Task::TimedWait).ok_or_else(missing)
        }
        other => Err(Halt::abort(format!("unknown task type {other:?}"))),
    };
    list(config, name).iter().map(read).collect()
}

/// The clusters to be updated that the stage selects, in the order in which they go.
fn members<'w>(
    snapshot: &Snapshot<'w>,
    config: &Value,
    wanted: &BTreeSet<&str>,
) -> Result<Vec<&'w str>, Halt> {
    let stage = text(config, "name");
    let selector = field(config, "labelSelector");
    if selector.is_null() {
        return Ok(Vec::new());
    }
    let selector = Selector::from_value(selector).map_err(|error| {
        Halt::abort(format!("stage {stage}: labelSelector.{}: {error}", error.field))
    })?;
    let key = Some(text(config, "sortingLabelKey")).filter(|key| !key.is_empty());
    let all = snapshot.of(&MEMBER_CLUSTER).iter().copied();
    let mut members = Vec::new();
    for cluster in all.filter(|it| wanted.contains(it.name().as_str()) && selector.matches(it)) {
        let place = key.map_or(Ok(0), |key| place(cluster, key))?;
        members.push((place, cluster.name().as_str()));
    }
    members.sort_unstable();
    Ok(members.into_iter().map(|(_, name)| name).collect())
}

fn place(cluster: &Object, key: &str) -> Result<i64, Halt> {
    let value = cluster.label(key);
    value.and_then(|value| value.parse().ok()).ok_or_else(|| {
        let name = cluster.name();
        let value = value.unwrap_or_default();
        Halt::abort(format!("cluster {name:?}: label {key}={value:?} is not an integer"))
    })
}

fn task_records(config: &Value, name: &str, request: &str) -> Result<Vec<Node>, Halt> {
    let before = name == "beforeStageTasks";
    let record = |task: Task| match task {
        Task::TimedWait(_) if before => {
            Err(Halt::abort("a TimedWait is not possible before a stage".to_owned()))
        }
        Task::TimedWait(_) => Ok(Node::named("type", "TimedWait")),
        Task::Approval => {
            let mut node = Node::named("type", "Approval");
            node.put("approvalRequestName", json!(request));
            Ok(node)
        }
    };
    tasks(config, name)?.into_iter().map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_stage_rounds_down_to_at_least_one() {
        let cases = [
            (4, json!("50%"), 2),
            (5, json!("70%"), 3),
            (2, json!("10%"), 1),
            (9, json!(null), 1),
            (9, json!(3), 3),
            (9, json!(0), 1),
            (0, json!("50%"), 1),
        ];
        for (clusters, share, want) in cases {
            let config = json!({"maxConcurrency": share});
            assert_eq!(limit(&config, clusters), want, "{share} of {clusters}");
        }
    }
}
