//! Stopping a run: nothing new starts, and what is in progress finishes.

use super::execute::{is_stuck, stuck_message, watch};
use super::scope::Scope;
use super::{CLUSTERS_SECS, Halt, Pass, Wait, deletion};
use crate::dialect::fleet::names::PROGRESSING;
use crate::dialect::fleet::read::run::is_under_way;
use crate::hold::HoldReason;

pub(super) fn stage(
    pass: &mut Pass<'_, '_>,
    scope: &Scope<'_>,
    current: usize,
) -> Result<(), Halt> {
    if current >= pass.record.stages.len() {
        let stopped = deletion::stop(pass, scope)?;
        rest(pass, stopped, &[], "");
        return Ok(());
    }
    let by_cluster = scope.by_cluster();
    let mut stuck = Vec::new();
    for at in 0..pass.record.stages[current].clusters.len() {
        let cluster = &pass.record.stages[current].clusters[at];
        if !is_under_way(cluster) || cluster.end().is_some() {
            continue;
        }
        let name = cluster.cluster_name().to_owned();
        let Some(binding) = by_cluster.get(name.as_str()) else {
            let message = format!("cluster {name:?} in progress has no binding any more");
            pass.record.stages[current].fail(pass.stamp, &message);
            return Err(Halt::abort(message));
        };
        if !watch(pass, binding, (current, at)) && is_stuck(pass, (current, at)) {
            stuck.push(name);
        }
    }
    let stage = &mut pass.record.stages[current];
    let stopped = stage.in_progress() == 0;
    let (status, why) = if stopped {
        ("False", ("StageUpdatingStopped", "what was in progress is finished"))
    } else {
        ("Unknown", ("StageUpdatingStopping", "what is in progress finishes first"))
    };
    stage.node.set(pass.stamp, PROGRESSING, status, why);
    let name = stage.name().to_owned();
    rest(pass, stopped, &stuck, &name);
    Ok(())
}

/// The run's own condition.
fn rest(pass: &mut Pass<'_, '_>, stopped: bool, stuck: &[String], stage: &str) {
    if stopped {
        pass.record.stand(pass.stamp, "UpdateRunStopped", "the run is stopped");
        pass.wait = Some(Wait::indefinite(HoldReason::Paused));
        return;
    }
    pass.stopping = true;
    if stuck.is_empty() {
        let why = ("UpdateRunStopping", "what is in progress finishes first");
        pass.record.node.set(pass.stamp, PROGRESSING, "Unknown", why);
    } else {
        pass.record.stand(pass.stamp, "UpdateRunStuck", &stuck_message(stuck, stage));
    }
    if pass.failing.is_empty() {
        pass.requeue_secs = Some(CLUSTERS_SECS);
    }
}
