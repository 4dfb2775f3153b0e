//! The delete stage: after the last stage, de-selected clusters lose the resources, all at once.

use std::collections::BTreeMap;

use super::scope::Scope;
use super::{CLUSTERS_SECS, Change, Halt, Pass, waiting};
use crate::dialect::fleet::decide::stage_limits;
use crate::dialect::fleet::names::{PROGRESSING, STARTED};
use crate::dialect::fleet::read::binding::Binding;
use crate::dialect::fleet::read::run::{self as record, End, Stage};
use crate::gate;

/// Deletes what is to go and not yet going; the run is done when nothing is left.
pub(super) fn execute<'w>(pass: &mut Pass<'_, 'w>, scope: &Scope<'w>) -> Result<(), Halt> {
    let mut stage = pass.record.deletion.take().unwrap_or_default();
    stage.begin(pass.stamp);
    let settled = settle(pass, scope, &mut stage);
    if settled.is_ok() {
        delete(pass, scope, &mut stage);
        if scope.delete.is_empty() {
            stage.succeed(pass.stamp);
            pass.record.succeed(pass.stamp);
        } else {
            pass.requeue_secs = Some(CLUSTERS_SECS);
        }
    } else if let Err(Halt::Abort(message)) = &settled {
        stage.fail(pass.stamp, message);
    }
    pass.record.deletion = Some(stage);
    settled
}

/// Nothing more is deleted; what is being deleted finishes.
pub(super) fn stop(pass: &mut Pass<'_, '_>, scope: &Scope<'_>) -> Result<bool, Halt> {
    let mut stage = pass.record.deletion.take().unwrap_or_default();
    let settled = settle(pass, scope, &mut stage);
    let stopped = stage.in_progress() == 0;
    match &settled {
        Ok(()) if stopped => {
            let why = ("StageUpdatingStopped", "what was being deleted is gone");
            stage.node.set(pass.stamp, PROGRESSING, "False", why);
        }
        Ok(()) => {
            let why = ("StageUpdatingStopping", "what is being deleted finishes first");
            stage.node.set(pass.stamp, PROGRESSING, "Unknown", why);
        }
        Err(Halt::Abort(message)) => stage.fail(pass.stamp, message),
        Err(Halt::Retry(_)) => {}
    }
    pass.record.deletion = Some(stage);
    settled.map(|()| stopped)
}

/// Clusters whose binding is gone are done; a record that says otherwise ends the run.
fn settle(pass: &Pass<'_, '_>, scope: &Scope<'_>, stage: &mut Stage) -> Result<(), Halt> {
    let left = left(scope);
    for cluster in &mut stage.clusters {
        let name = cluster.cluster_name().to_owned();
        match left.get(name.as_str()) {
            None => {
                record::cluster_started(cluster, pass.stamp);
                record::cluster_succeeded(cluster, pass.stamp);
            }
            Some(binding) if cluster.end() == Some(End::Succeeded) => {
                let binding = binding.name();
                return Err(Halt::abort(format!(
                    "cluster {name:?} counts as deleted but still has binding {binding}"
                )));
            }
            Some(binding) if cluster.is_true(STARTED) && !binding.is_deleting() => {
                let binding = binding.name();
                return Err(Halt::abort(format!(
                    "cluster {name:?} counts as being deleted but binding {binding} is not"
                )));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// The whole stage starts at once: nothing limits what is no longer wanted.
fn delete<'w>(pass: &mut Pass<'_, 'w>, scope: &Scope<'w>, stage: &mut Stage) {
    let left = left(scope);
    let admission = gate::admit(waiting(stage), &stage_limits(None, None, None));
    let permit = admission.permit();
    let starts: Vec<usize> = admission.starts.iter().map(|member| member.index).collect();
    for at in starts {
        let cluster = &mut stage.clusters[at];
        let Some(binding) = left.get(cluster.cluster_name()) else { continue };
        if let Some(permit) = permit.filter(|_| !binding.is_deleting()) {
            pass.changes.push(Change::Removed { binding: **binding, permit });
        }
        record::cluster_started(cluster, pass.stamp);
    }
}

fn left<'s, 'w>(scope: &'s Scope<'w>) -> BTreeMap<&'w str, &'s Binding<'w>> {
    scope.delete.iter().map(|binding| (binding.cluster(), binding)).collect()
}
