//! The stages of an update run: which clusters are in which, and in what order.

use std::collections::BTreeSet;

use convoy_api::Object;
use convoy_api::text::GoDuration;
use serde_json::Value;

use super::Halt;
use crate::dialect::fleet::names::MEMBER_CLUSTER;
use crate::dialect::fleet::read::binding::Binding;
use crate::dialect::fleet::read::run::{Node, Stage};
use crate::dialect::fleet::read::strategy::{StageConfig, TaskConfig, When};
use crate::snapshot::Snapshot;

/// How many clusters without a stage are named.
const NAMED_MAX: usize = 10;

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
    for config in StageConfig::all(strategy) {
        let name = config.name();
        let mut stage = Stage::named(name);
        for cluster in members(snapshot, &config, &wanted)? {
            if !placed.insert(cluster) {
                return Err(Halt::abort(format!("cluster {cluster:?} is in more than one stage")));
            }
            stage.clusters.push(Node::cluster(cluster));
        }
        stage.before = task_records(&config, When::Before, &format!("{run}-before-{name}"))?;
        stage.after = task_records(&config, When::After, &format!("{run}-after-{name}"))?;
        stages.push(stage);
    }
    let missing: Vec<&str> = wanted.difference(&placed).copied().collect();
    if missing.is_empty() {
        return Ok(stages);
    }
    let named = missing.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
    let (count, more) = (missing.len(), if missing.len() > NAMED_MAX { ", ..." } else { "" });
    Err(Halt::abort(format!("{count} clusters are in no stage: {named}{more}")))
}

/// The tasks of a stage, in order. Refused: a wait of no length.
pub(crate) fn tasks(config: &StageConfig, when: When) -> Result<Vec<Task>, Halt> {
    let read = |task: TaskConfig<'_>| match task.kind {
        "Approval" => Ok(Task::Approval),
        "TimedWait" => {
            let wait = task.wait.filter(|wait| *wait > GoDuration::default());
            let stage = config.name();
            let missing = || Halt::abort(format!("stage {stage}: TimedWait needs a waitTime"));
            wait.map(Task::TimedWait).ok_or_else(missing)
        }
        other => Err(Halt::abort(format!("unknown task type {other:?}"))),
    };
    config.tasks(when).map(read).collect()
}

/// The clusters to be updated that the stage selects, in the order in which they go.
fn members<'w>(
    snapshot: &Snapshot<'w>,
    config: &StageConfig,
    wanted: &BTreeSet<&str>,
) -> Result<Vec<&'w str>, Halt> {
    let stage = config.name();
    let Some(selector) = config.selector() else { return Ok(Vec::new()) };
    let selector = selector.map_err(|error| {
        Halt::abort(format!("stage {stage}: labelSelector.{}: {error}", error.field))
    })?;
    let key = config.sorting_label_key();
    let all = snapshot.of(&MEMBER_CLUSTER).iter().copied();
    let mut members = Vec::new();
    for cluster in all.filter(|it| wanted.contains(it.name().as_str()) && selector.matches(it)) {
        let position = key.map_or(Ok(0), |key| position(cluster, key))?;
        members.push((position, cluster.name().as_str()));
    }
    members.sort_unstable();
    Ok(members.into_iter().map(|(_, name)| name).collect())
}

/// Where a label puts the cluster in its stage.
fn position(cluster: &Object, key: &str) -> Result<i64, Halt> {
    let value = cluster.label(key);
    value.and_then(|value| value.parse().ok()).ok_or_else(|| {
        let name = cluster.name();
        let value = value.unwrap_or_default();
        Halt::abort(format!("cluster {name:?}: label {key}={value:?} is not an integer"))
    })
}

fn task_records(config: &StageConfig, when: When, request: &str) -> Result<Vec<Node>, Halt> {
    let record = |task: Task| match task {
        Task::TimedWait(_) if when == When::Before => {
            Err(Halt::abort("a TimedWait is not possible before a stage".to_owned()))
        }
        Task::TimedWait(_) => Ok(Node::timed_wait()),
        Task::Approval => Ok(Node::approval(request)),
    };
    tasks(config, when)?.into_iter().map(record).collect()
}
