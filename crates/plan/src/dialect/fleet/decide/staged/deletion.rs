//! The delete stage: after the last stage, de-selected clusters lose the resources, all at once.

use std::collections::BTreeMap;

use crate::dialect::fleet::decide::staged::scope::Scope;
use crate::dialect::fleet::decide::staged::{CLUSTERS_SECS, Halt, Pass};
use crate::dialect::fleet::read::binding::Binding;
use crate::dialect::fleet::read::run as record;
use crate::dialect::fleet::read::run::{End, PROGRESSING, STARTED, Stage};
use crate::gate::Permit;
use crate::step::{Action, Propagation, Verb, Why};

/// Deletes what is to go and not yet going; the run is done when nothing is left.
pub(crate) fn execute(pass: &mut Pass<'_, '_>, scope: &Scope<'_>) -> Result<(), Halt> {
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
pub(crate) fn stop(pass: &mut Pass<'_, '_>, scope: &Scope<'_>) -> Result<bool, Halt> {
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
        let name = cluster.text("clusterName").to_owned();
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

fn delete(pass: &mut Pass<'_, '_>, scope: &Scope<'_>, stage: &mut Stage) {
    let left = left(scope);
    for cluster in &mut stage.clusters {
        let Some(binding) = left.get(cluster.text("clusterName")) else { continue };
        if cluster.is_true(STARTED) {
            continue;
        }
        if !binding.is_deleting() {
            let message = format!("cluster {} is no longer picked", binding.cluster());
            let why = Why::new("NoLongerPicked", message);
            let delete = Action::delete(
                Verb::Remove(Permit::unchecked()),
                binding.object,
                Propagation::Background,
                why,
            );
            pass.actions.push(delete);
            pass.remove.push(binding.object.name().clone());
        }
        record::cluster_started(cluster, pass.stamp);
    }
}

fn left<'s, 'w>(scope: &'s Scope<'w>) -> BTreeMap<&'w str, &'s Binding<'w>> {
    scope.delete.iter().map(|binding| (binding.cluster(), binding)).collect()
}
