//! One stage a little further: clusters started while there is room, then the tasks after it.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::scope::Scope;
use super::stages::{self, Task};
use super::{
    APPROVAL_SECS, CLUSTERS_SECS, Change, Concurrency, Halt, Pass, Wait, approval, deletion,
};
use crate::dialect::fleet::names::{
    self, AVAILABLE, DIFF_REPORTED, PROGRESSING, ROLLOUT_STARTED, STARTED, WAIT_TIME_ELAPSED,
};
use crate::dialect::fleet::read::binding::{Binding, DesiredBinding};
use crate::dialect::fleet::read::overrides::Applicable;
use crate::dialect::fleet::read::run::{self as record, End};
use crate::dialect::fleet::read::strategy::When;
use crate::gate::Permit;
use crate::hold::{HoldReason, NAMED};

/// A cluster that takes longer makes the run report itself stuck; it goes on all the same.
const STUCK_AFTER: SignedDuration = SignedDuration::from_mins(5);

/// How the update of one cluster goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Works,
    Failing(String),
    UnderWay,
}

/// Works on stage `current`; one past the last is the delete stage.
pub(super) fn stage<'w>(
    pass: &mut Pass<'_, 'w>,
    scope: &Scope<'w>,
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
        pass.wait = Some(Wait::indefinite(HoldReason::Approval { request }));
        pass.requeue_secs = Some(APPROVAL_SECS);
        return Ok(());
    }
    let walked = clusters(pass, scope, current);
    if let Err(Halt::Abort(message)) = &walked {
        pass.record.stages[current].fail(pass.stamp, message);
    }
    walked
}

/// Looks at the clusters in progress, then starts as many as the gate lets.
fn clusters<'w>(pass: &mut Pass<'_, 'w>, scope: &Scope<'w>, current: usize) -> Result<(), Halt> {
    let by_cluster = scope.by_cluster();
    let goal = Goal::of(pass, scope);
    sound(pass, &by_cluster, current, &goal)?;
    let stuck = watch_all(pass, &by_cluster, current);
    if pass.record.stages[current].unfinished() == 0 {
        return completed(pass, current);
    }
    start_some(pass, &by_cluster, current, &goal);
    report_progress(pass, current, &stuck);
    if pass.failing.is_empty() {
        pass.requeue_secs = Some(CLUSTERS_SECS);
    }
    Ok(())
}

/// What a run brings to each of its clusters.
struct Goal {
    resources: String,
    strategy: Value,
}

impl Goal {
    fn of(pass: &Pass<'_, '_>, scope: &Scope<'_>) -> Self {
        let index = pass.record.resource_index();
        let resources = names::resource_snapshot_name(scope.placement.name(), index, 0);
        Self { resources: resources.into(), strategy: pass.record.apply_strategy() }
    }

    fn desired<'a>(&'a self, overrides: &'a Applicable) -> DesiredBinding<'a> {
        let (resource_snapshot, strategy) = (&self.resources, &self.strategy);
        DesiredBinding { resource_snapshot, overrides, apply_strategy: Some(strategy) }
    }
}

/// Looks at every cluster in progress; gives back those that take too long.
fn watch_all(
    pass: &mut Pass<'_, '_>,
    by_cluster: &BTreeMap<&str, &Binding<'_>>,
    current: usize,
) -> Vec<String> {
    let mut stuck = Vec::new();
    for at in 0..pass.record.stages[current].clusters.len() {
        let cluster = &pass.record.stages[current].clusters[at];
        if !record::is_under_way(cluster) {
            continue;
        }
        let name = cluster.cluster_name().to_owned();
        let Some(binding) = by_cluster.get(name.as_str()) else { continue };
        if !watch(pass, binding, (current, at)) && is_stuck(pass, (current, at)) {
            stuck.push(name);
        }
    }
    stuck
}

/// Starts the first clusters that wait, as far as maxConcurrency has room.
fn start_some<'w>(
    pass: &mut Pass<'_, 'w>,
    by_cluster: &BTreeMap<&str, &Binding<'w>>,
    current: usize,
    goal: &Goal,
) {
    let clusters = &pass.record.stages[current].clusters;
    let busy = clusters.iter().filter(|cluster| record::is_under_way(cluster));
    let concurrency = Concurrency {
        in_flight: crate::count(busy.clone().count()),
        ceiling: pass.record.max_concurrency(current),
        by: busy.take(NAMED).map(|cluster| cluster.cluster_name().into()).collect(),
    };
    let started = pass.admit(current, None, Some(concurrency));
    for at in started.clusters {
        let cluster = &pass.record.stages[current].clusters[at];
        let binding = by_cluster.get(cluster.cluster_name());
        if let (Some(binding), Some(permit)) = (binding, started.permit) {
            start(pass, binding, (current, at), goal, permit);
        }
    }
}

/// Before anything is started: no cluster has failed for good, and those in progress are
/// still as this run made them.
fn sound(
    pass: &mut Pass<'_, '_>,
    by_cluster: &BTreeMap<&str, &Binding<'_>>,
    current: usize,
    goal: &Goal,
) -> Result<(), Halt> {
    let stage = &mut pass.record.stages[current];
    let stage_name = stage.name().to_owned();
    for cluster in &mut stage.clusters {
        let name = cluster.cluster_name().to_owned();
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
        let overrides = cluster.overrides();
        if !goal.desired(&overrides).is_met_by(binding) || !binding.is_true(ROLLOUT_STARTED) {
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

/// Has the binding written as wanted, as far as it is not, and marks the cluster.
fn start<'w>(
    pass: &mut Pass<'_, 'w>,
    binding: &Binding<'w>,
    (stage, at): (usize, usize),
    goal: &Goal,
    permit: Permit,
) {
    let (binding, resources) = (*binding, goal.resources.clone());
    let overrides = pass.record.stages[stage].clusters[at].overrides();
    if !goal.desired(&overrides).is_met_by(&binding) {
        pass.changes.push(Change::Updated { binding, resources, overrides, permit });
    } else if !binding.is_true(ROLLOUT_STARTED) {
        pass.changes.push(Change::RolloutStarted { binding, resources });
    } else if judge(&binding) == Progress::Works {
        // It was as wanted before the run came to it.
        record::cluster_succeeded(&mut pass.record.stages[stage].clusters[at], pass.stamp);
    }
    record::cluster_started(&mut pass.record.stages[stage].clusters[at], pass.stamp);
    pass.record.stages[stage].begin(pass.stamp);
}

/// Looks at a cluster in progress; says whether it is done.
pub(super) fn watch(
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
pub(super) fn judge(binding: &Binding<'_>) -> Progress {
    if binding.is_true(AVAILABLE) || binding.is_true(DIFF_REPORTED) {
        Progress::Works
    } else if binding.has_failed() || binding.status(DIFF_REPORTED) == Some("False") {
        Progress::Failing(binding.explanation())
    } else {
        Progress::UnderWay
    }
}

/// Whether a cluster in progress takes too long; if not yet, when it will.
pub(super) fn is_stuck(pass: &mut Pass<'_, '_>, (stage, at): (usize, usize)) -> bool {
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

pub(super) fn stuck_message(stuck: &[String], stage: &str) -> String {
    let named = stuck.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    let more = if stuck.len() > NAMED { "..." } else { "" };
    format!("waiting for {named}{more} in stage {stage} for more than 5 minutes")
}

/// All clusters are done: the tasks after the stage, then the stage itself.
fn completed(pass: &mut Pass<'_, '_>, current: usize) -> Result<(), Halt> {
    let waiting = "all clusters are updated, waiting for the tasks after the stage";
    pass.record.stages[current].wait(pass.stamp, waiting);
    if let Some(wait) = after(pass, current)? {
        let name = pass.record.stages[current].name();
        let message = format!("waiting for the tasks after stage {name}");
        pass.record.stand(pass.stamp, "UpdateRunWaiting", &message);
        pass.wait = Some(wait);
        return Ok(());
    }
    pass.record.progress(pass.stamp);
    pass.record.stages[current].succeed(pass.stamp);
    pass.requeue_secs = Some(0);
    Ok(())
}

/// What is still missing after the stage; None: nothing. A person's part is named first.
fn after(pass: &mut Pass<'_, '_>, current: usize) -> Result<Option<Wait>, Halt> {
    let tasks = stages::tasks(&pass.record.config(current), When::After)?;
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
                    task.set(pass.stamp, WAIT_TIME_ELAPSED, "True", why);
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
        (Some(request), _) => Some(Wait::indefinite(HoldReason::Approval { request })),
        (None, Some((reason, end))) => Some(Wait { reason, until: Some(end) }),
        (None, None) => None,
    })
}

/// Whole seconds, rounded up.
fn secs_until(end: Timestamp, now: Timestamp) -> i64 {
    let left = end.duration_since(now);
    left.as_secs().saturating_add(i64::from(left.subsec_nanos() > 0))
}
