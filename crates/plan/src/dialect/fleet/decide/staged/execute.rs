//! One stage a little further: clusters started while there is room, then the tasks after it.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::dialect::fleet::decide::staged::scope::Scope;
use crate::dialect::fleet::decide::staged::stages::{self, Task};
use crate::dialect::fleet::decide::staged::{
    APPROVAL_SECS, CLUSTERS_SECS, Halt, Pass, approval, deletion, initialise,
};
use crate::dialect::fleet::read::binding::{AVAILABLE, Binding, DIFF_REPORTED, ROLLOUT_STARTED};
use crate::dialect::fleet::read::overrides::Applicable;
use crate::dialect::fleet::read::placement::apply_strategy;
use crate::dialect::fleet::read::run as record;
use crate::dialect::fleet::read::run::{End, PROGRESSING, STARTED};
use crate::dialect::fleet::write::binding as write;
use crate::gate::Permit;
use crate::hold::HoldReason;
use crate::step::{Verb, Why};

/// A cluster that takes longer makes the run report itself stuck; it goes on all the same.
const STUCK_AFTER: SignedDuration = SignedDuration::from_mins(5);
/// How many stuck clusters are named.
const NAMED: usize = 3;

/// How the update of one cluster goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Works,
    Failing(String),
    UnderWay,
}

/// Works on stage `current`; one past the last is the delete stage.
pub(crate) fn stage(
    pass: &mut Pass<'_, '_>,
    scope: &Scope<'_>,
    current: usize,
) -> Result<(), Halt> {
    if current >= pass.record.stages.len() {
        pass.record.progress(pass.stamp);
        return deletion::execute(pass, scope);
    }
    if pass.record.stages[current].clusters.is_empty() {
        pass.record.progress(pass.stamp);
        pass.record.stages[current].skip(pass.stamp);
        pass.requeue_secs = Some(0);
        return Ok(());
    }
    if let Some(request) = approval::before(pass, current)? {
        let stage = &mut pass.record.stages[current];
        stage.wait(pass.stamp, "waiting for the approval before the stage");
        let message = format!("waiting for the tasks before stage {}", stage.name());
        pass.record.stand(pass.stamp, "UpdateRunWaiting", &message);
        pass.waits = Some((HoldReason::Approval { request }, None));
        pass.requeue_secs = Some(APPROVAL_SECS);
        return Ok(());
    }
    let walked = clusters(pass, scope, current);
    if let Err(Halt::Abort(message)) = &walked {
        pass.record.stages[current].fail(pass.stamp, message);
    }
    walked
}

/// Walks the clusters in order while fewer than the limit are in progress.
fn clusters(pass: &mut Pass<'_, '_>, scope: &Scope<'_>, current: usize) -> Result<(), Halt> {
    let by_cluster = scope.by_cluster();
    let resources = initialise::snapshot_name(
        scope.placement.name(),
        pass.record.node.get("resourceSnapshotIndexUsed"),
    );
    let strategy = apply_strategy(pass.record.node.get("appliedStrategy"));
    sound(pass, &by_cluster, current, &resources, &strategy)?;
    let limit = stages::limit(&pass.config(current), pass.record.stages[current].clusters.len());
    let mut stuck = Vec::new();
    let (mut in_progress, mut finished) = (0, 0);
    for at in 0..pass.record.stages[current].clusters.len() {
        if in_progress >= limit {
            break;
        }
        let cluster = &pass.record.stages[current].clusters[at];
        if cluster.end() == Some(End::Succeeded) {
            finished += 1;
            continue;
        }
        let name = cluster.text("clusterName").to_owned();
        let Some(binding) = by_cluster.get(name.as_str()) else { continue };
        in_progress += 1;
        if !cluster.is_true(STARTED) {
            start(pass, binding, (current, at), &resources, &strategy);
            continue;
        }
        if watch(pass, binding, (current, at)) {
            in_progress -= 1;
            finished += 1;
        } else if is_stuck(pass, (current, at)) {
            stuck.push(name);
        }
    }
    if finished == pass.record.stages[current].clusters.len() {
        return completed(pass, current);
    }
    report_progress(pass, current, &stuck);
    if pass.failing.is_empty() {
        pass.requeue_secs = Some(CLUSTERS_SECS);
    }
    Ok(())
}

/// Before anything is started: no cluster has failed for good, and those in progress are
/// still as this run made them.
fn sound(
    pass: &mut Pass<'_, '_>,
    by_cluster: &BTreeMap<&str, &Binding<'_>>,
    current: usize,
    resources: &str,
    strategy: &Value,
) -> Result<(), Halt> {
    let stage = &mut pass.record.stages[current];
    let stage_name = stage.name().to_owned();
    for cluster in &mut stage.clusters {
        let name = cluster.text("clusterName").to_owned();
        if cluster.end() == Some(End::Failed) {
            return Err(Halt::abort(format!("cluster {name:?} of stage {stage_name} has failed")));
        }
        let Some(binding) = by_cluster.get(name.as_str()) else {
            return Err(Halt::abort(format!(
                "cluster {name:?} of stage {stage_name} has no binding"
            )));
        };
        if !record::is_under_way(cluster) {
            continue;
        }
        let overrides = Applicable::read(&cluster.fields());
        let wish = wish(resources, &overrides, strategy);
        if !wish.is_granted(binding) || !binding.is_true(ROLLOUT_STARTED) {
            let message = format!(
                "binding {} of cluster {name:?} in stage {stage_name} was changed by someone else; \
                 another update run of the placement may be under way",
                binding.name()
            );
            record::cluster_failed(cluster, pass.stamp, &message);
            return Err(Halt::abort(message));
        }
    }
    Ok(())
}

fn wish<'a>(
    resource_snapshot: &'a str,
    overrides: &'a Applicable,
    strategy: &'a Value,
) -> write::Wish<'a> {
    write::Wish { resource_snapshot, overrides, apply_strategy: Some(strategy) }
}

/// Writes the binding as wanted, as far as it is not, and marks the cluster.
fn start(
    pass: &mut Pass<'_, '_>,
    binding: &Binding<'_>,
    (stage, at): (usize, usize),
    resources: &str,
    strategy: &Value,
) {
    let run = pass.run.name();
    let message = format!("update run {run} brings {resources} to the cluster");
    let overrides = Applicable::read(&pass.record.stages[stage].clusters[at].fields());
    let wish = wish(resources, &overrides, strategy);
    let generation = binding.object.generation();
    if !wish.is_granted(binding) {
        let text = format!("cluster {} gets {resources}", binding.cluster());
        let why = Why::new("StageReached", text);
        pass.actions.push(wish.grant(binding, Verb::Update(Permit::unchecked()), why));
        let next = generation.saturating_add(1);
        pass.actions.extend(write::rollout_started(binding, true, next, &message, pass.stamp.now));
        pass.roll.push(binding.object.name().clone());
    } else if !binding.is_true(ROLLOUT_STARTED) {
        let started = write::rollout_started(binding, true, generation, &message, pass.stamp.now);
        pass.actions.extend(started);
    } else if judge(binding) == Progress::Works {
        // It was as wanted before the run came to it.
        record::cluster_succeeded(&mut pass.record.stages[stage].clusters[at], pass.stamp);
    }
    record::cluster_started(&mut pass.record.stages[stage].clusters[at], pass.stamp);
    pass.record.stages[stage].begin(pass.stamp);
}

/// Looks at a cluster in progress; says whether it is done.
pub(crate) fn watch(
    pass: &mut Pass<'_, '_>,
    binding: &Binding<'_>,
    (stage, at): (usize, usize),
) -> bool {
    match judge(binding) {
        Progress::Works => {
            record::cluster_succeeded(&mut pass.record.stages[stage].clusters[at], pass.stamp);
            true
        }
        Progress::Failing(detail) => {
            pass.failing.push((binding.cluster().into(), detail));
            false
        }
        Progress::UnderWay => false,
    }
}

/// What a binding's conditions say. Here resources that cannot be tracked count at once.
pub(crate) fn judge(binding: &Binding<'_>) -> Progress {
    if binding.is_true(AVAILABLE) || binding.is_true(DIFF_REPORTED) {
        Progress::Works
    } else if binding.has_failed() || binding.status(DIFF_REPORTED) == Some("False") {
        Progress::Failing(binding.explanation())
    } else {
        Progress::UnderWay
    }
}

/// Whether a cluster in progress takes too long; if not yet, when it will.
pub(crate) fn is_stuck(pass: &mut Pass<'_, '_>, (stage, at): (usize, usize)) -> bool {
    let started = pass.record.stages[stage].clusters[at].since(STARTED);
    let nano = SignedDuration::from_nanos(1);
    let end = started.and_then(|since| since.checked_add(STUCK_AFTER + nano).ok());
    match end {
        Some(end) if end <= pass.stamp.now => true,
        Some(end) => {
            pass.wake(end);
            false
        }
        None => false,
    }
}

/// The run's own condition after a walk.
fn report_progress(pass: &mut Pass<'_, '_>, current: usize, stuck: &[String]) {
    if stuck.is_empty() {
        pass.record.progress(pass.stamp);
    } else {
        let message = stuck_message(stuck, pass.record.stages[current].name());
        pass.record.stand(pass.stamp, "UpdateRunStuck", &message);
    }
}

pub(crate) fn stuck_message(stuck: &[String], stage: &str) -> String {
    let named = stuck.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    let more = if stuck.len() > NAMED { "..." } else { "" };
    format!("waiting for {named}{more} in stage {stage} for more than 5 minutes")
}

/// All clusters are done: the tasks after the stage, then the stage itself.
fn completed(pass: &mut Pass<'_, '_>, current: usize) -> Result<(), Halt> {
    let waiting = "all clusters are updated, waiting for the tasks after the stage";
    pass.record.stages[current].wait(pass.stamp, waiting);
    if let Some((reason, until)) = after(pass, current)? {
        let name = pass.record.stages[current].name();
        let message = format!("waiting for the tasks after stage {name}");
        pass.record.stand(pass.stamp, "UpdateRunWaiting", &message);
        pass.waits = Some((reason, until));
        return Ok(());
    }
    pass.record.progress(pass.stamp);
    pass.record.stages[current].succeed(pass.stamp);
    pass.requeue_secs = Some(0);
    Ok(())
}

/// What is still missing after the stage; None: nothing. A person's part is named first.
fn after(
    pass: &mut Pass<'_, '_>,
    current: usize,
) -> Result<Option<(HoldReason, Option<Timestamp>)>, Halt> {
    let tasks = stages::tasks(&pass.config(current), "afterStageTasks")?;
    let since = pass.record.stages[current].node.since(PROGRESSING).unwrap_or(pass.stamp.now);
    let (mut wait, mut request) = (None, None);
    for (at, task) in tasks.into_iter().enumerate() {
        match task {
            Task::TimedWait(length) => {
                let end = since.checked_add(length.signed()).unwrap_or(Timestamp::MAX);
                if end > pass.stamp.now {
                    wait = Some((HoldReason::Settling { for_secs: length.as_secs() }, end));
                } else if let Some(task) = pass.record.stages[current].after.get_mut(at) {
                    let why = ("AfterStageTaskWaitTimeElapsed", "the wait time is over");
                    task.set(pass.stamp, "WaitTimeElapsed", "True", why);
                }
            }
            Task::Approval => request = approval::after(pass, current, at)?,
        }
    }
    if let Some((_, end)) = &wait {
        pass.wake(*end);
        pass.requeue_secs = Some(secs_until(*end, pass.stamp.now));
    } else if request.is_some() {
        pass.requeue_secs = Some(APPROVAL_SECS);
    }
    Ok(match (request, wait) {
        (Some(request), _) => Some((HoldReason::Approval { request }, None)),
        (None, Some((reason, end))) => Some((reason, Some(end))),
        (None, None) => None,
    })
}

/// Whole seconds, rounded up.
fn secs_until(end: Timestamp, now: Timestamp) -> i64 {
    let left = end.duration_since(now);
    left.as_secs().saturating_add(i64::from(left.subsec_nanos() > 0))
}
