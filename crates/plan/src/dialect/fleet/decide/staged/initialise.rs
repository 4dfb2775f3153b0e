//! The first pass of a run: everything it will go by is recorded, so that later changes of
//! the strategy, the overrides or the selection do not reach it.

use super::scope::Scope;
use super::{Change, Halt, Pass, stages};
use crate::dialect::fleet::decide::selection::group::{self, Decision};
use crate::dialect::fleet::names::{self, DELETE_STAGE, MEMBER_CLUSTER, RESOURCE_INDEX};
use crate::dialect::fleet::read::binding::Binding;
use crate::dialect::fleet::read::overrides::Overrides;
use crate::dialect::fleet::read::run::{Initial, Node, Stage};
use crate::dialect::fleet::read::snapshot::ResourceGroup;
use crate::dialect::fleet::read::strategy::strategy_snapshot;

pub(super) fn run<'w>(pass: &mut Pass<'_, 'w>, scope: &Scope<'w>) -> Result<(), Halt> {
    let run = pass.run;
    let family = scope.placement.family;
    let name = pass.spec.staged_rollout_strategy_name.as_str();
    let strategy = pass.snapshot.find(&family.strategy(), run.namespace(), name);
    let strategy = strategy
        .ok_or_else(|| Halt::abort(format!("{} {name:?} not found", family.strategy().kind)))?;
    let strategy = strategy_snapshot(strategy);
    let mut stages = stages::computed(pass.snapshot, run.name(), &strategy, &scope.update)?;
    let resources = resources(pass, scope)?;
    record_overrides(pass, scope, &resources, &mut stages)?;
    let index = resources.master.label(RESOURCE_INDEX).unwrap_or_default();
    let initial = Initial {
        policy_index: scope.policy_index,
        cluster_count: scope.cluster_count,
        resource_index: index,
        apply_strategy: &scope.placement.apply_strategy,
        strategy,
    };
    pass.record.initialise(initial, pass.stamp);
    pass.record.stages = stages;
    pass.record.deletion = Some(deletion(scope));
    Ok(())
}

/// The resource snapshots that the run rolls out: those of the index it names, or what is
/// selected now.
fn resources<'w>(pass: &mut Pass<'_, 'w>, scope: &Scope<'w>) -> Result<ResourceGroup<'w>, Halt> {
    let asked = pass.spec.resource_snapshot_index.clone().unwrap_or_default();
    let placement = &scope.placement;
    let index = if asked.is_empty() {
        fresh(pass, scope)?
    } else {
        asked.parse().map_err(|_| {
            Halt::abort(format!("resourceSnapshotIndex {asked:?} is not a non-negative integer"))
        })?
    };
    ResourceGroup::at(pass.snapshot, placement, index).ok_or_else(|| {
        let name = placement.name();
        Halt::abort(format!("placement {name} has no resource snapshot with index {index}"))
    })
}

/// The index of the snapshots that hold what is selected now; they are taken at once if there
/// are none, and the run is initialised in the next pass.
fn fresh<'w>(pass: &mut Pass<'_, 'w>, scope: &Scope<'w>) -> Result<u32, Halt> {
    let placement = &scope.placement;
    let decision = match group::decide(pass.snapshot, placement, pass.stamp.now, &pass.options) {
        Ok(decision) => decision,
        Err(error) if error.is_users() => return Err(Halt::abort(error.to_string())),
        // What is selected cannot be told; the newest snapshot is the best there is.
        Err(error) => {
            let latest = ResourceGroup::latest(pass.snapshot, placement);
            let index = latest.and_then(|latest| names::index(latest.master, RESOURCE_INDEX));
            return index.ok_or_else(|| Halt::Retry(format!("resources to select: {error}")));
        }
    };
    let index = match &decision {
        Decision::Kept { index, .. } => return Ok(*index),
        Decision::Completed { index, missing, .. } if missing.is_empty() => return Ok(*index),
        Decision::Relabelled { index, .. }
        | Decision::Completed { index, .. }
        | Decision::Created { index, .. } => *index,
        Decision::Collecting { .. } => {
            return Err(Halt::Retry("changes of the selection to settle".to_owned()));
        }
    };
    let placement = Box::new(placement.clone());
    pass.changes.push(Change::Snapshots { placement, decision });
    Err(Halt::Retry(format!("the resource snapshot with index {index}, which is taken now")))
}

fn record_overrides(
    pass: &Pass<'_, '_>,
    scope: &Scope<'_>,
    resources: &ResourceGroup<'_>,
    stages: &mut [Stage],
) -> Result<(), Halt> {
    let overrides = Overrides::touching(pass.snapshot, &scope.placement, &resources.parts);
    if overrides.is_empty() {
        return Ok(());
    }
    if !resources.is_complete() {
        let (found, expected) = (resources.parts.len(), resources.expected);
        let name = resources.master.name();
        return Err(Halt::Retry(format!("parts of {name}, of which {found} of {expected} exist")));
    }
    for cluster in stages.iter_mut().flat_map(|stage| &mut stage.clusters) {
        let name = cluster.cluster_name().to_owned();
        let member = pass.snapshot.find(&MEMBER_CLUSTER, "", &name);
        let applicable = overrides.concerning(&name, member);
        let applicable = applicable.map_err(|unknown| Halt::abort(unknown.to_string()))?;
        cluster.set_overrides(&applicable);
    }
    Ok(())
}

/// The de-selected clusters, by name.
fn deletion(scope: &Scope<'_>) -> Stage {
    let mut clusters: Vec<&str> = scope.delete.iter().map(Binding::cluster).collect();
    clusters.sort_unstable();
    let mut stage = Stage::named(DELETE_STAGE);
    stage.clusters = clusters.into_iter().map(Node::cluster).collect();
    stage
}
