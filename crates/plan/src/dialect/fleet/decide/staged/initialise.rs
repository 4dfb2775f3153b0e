//! The first pass of a run: everything it will go by is recorded, so that later changes of
//! the strategy, the overrides or the selection do not reach it.

use serde_json::{Value, json};

use crate::dialect::fleet::decide::selection::group::{self, Decision};
use crate::dialect::fleet::decide::staged::scope::{Scope, strategy_snapshot};
use crate::dialect::fleet::decide::staged::{Halt, Pass, stages};
use crate::dialect::fleet::names::{self, MEMBER_CLUSTER, RESOURCE_INDEX};
use crate::dialect::fleet::read::binding::Binding;
use crate::dialect::fleet::read::overrides::Overrides;
use crate::dialect::fleet::read::placement::text;
use crate::dialect::fleet::read::run::{DELETE_STAGE, INITIALIZED, Node, Stage};
use crate::dialect::fleet::read::snapshot::ResourceGroup;

pub(crate) fn run(pass: &mut Pass<'_, '_>, scope: &Scope<'_>) -> Result<(), Halt> {
    let run = pass.run;
    let family = scope.placement.family;
    let name = text(run.spec(), "stagedRolloutStrategyName");
    let strategy = pass.snapshot.find(&family.strategy(), run.namespace(), name);
    let strategy = strategy
        .ok_or_else(|| Halt::abort(format!("{} {name:?} not found", family.strategy().kind)))?;
    let strategy = strategy_snapshot(strategy);
    let mut stages = stages::computed(pass.snapshot, run.name(), &strategy, &scope.update)?;
    let resources = resources(pass, scope)?;
    record_overrides(pass, scope, &resources, &mut stages)?;
    let index = resources.master.label(RESOURCE_INDEX).unwrap_or_default();
    let node = &mut pass.record.node;
    node.put("policySnapshotIndexUsed", json!(scope.policy_index));
    node.put("policyObservedClusterCount", json!(scope.cluster_count));
    node.put("resourceSnapshotIndexUsed", json!(index));
    node.put("appliedStrategy", scope.placement.apply_strategy.clone());
    node.put("stagedUpdateStrategySnapshot", strategy);
    let why = ("UpdateRunInitializedSuccessfully", "the stages of the run are settled");
    node.set(pass.stamp, INITIALIZED, "True", why);
    pass.record.stages = stages;
    pass.record.deletion = Some(deletion(scope));
    Ok(())
}

/// The resource snapshots that the run rolls out: those of the index it names, or what is
/// selected now.
fn resources<'w>(pass: &mut Pass<'_, 'w>, scope: &Scope<'_>) -> Result<ResourceGroup<'w>, Halt> {
    let asked = text(pass.run.spec(), "resourceSnapshotIndex");
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
fn fresh(pass: &mut Pass<'_, '_>, scope: &Scope<'_>) -> Result<u32, Halt> {
    let placement = &scope.placement;
    let decided = group::decided(pass.snapshot, placement, pass.stamp.now, true);
    let (index, actions) = match decided {
        Ok(Decision::Kept { index, actions } | Decision::Created { index, actions }) => {
            (index, actions)
        }
        Ok(Decision::Collecting { .. }) => {
            return Err(Halt::Retry("changes of the selection to settle".to_owned()));
        }
        Err(error) if error.is_users() => return Err(Halt::abort(error.to_string())),
        // What is selected cannot be told; the newest snapshot is the best there is.
        Err(error) => {
            let latest = ResourceGroup::latest(pass.snapshot, placement);
            let index = latest.and_then(|latest| names::index(latest.master, RESOURCE_INDEX));
            return index.ok_or_else(|| Halt::Retry(format!("resources to select: {error}")));
        }
    };
    if actions.is_empty() {
        return Ok(index);
    }
    pass.actions.extend(actions);
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
        let name = cluster.text("clusterName").to_owned();
        let member = pass.snapshot.find(&MEMBER_CLUSTER, "", &name);
        let applicable = overrides.concerning(&name, member);
        let applicable = applicable.map_err(|unknown| Halt::abort(unknown.to_string()))?;
        cluster.put("resourceOverrideSnapshots", applicable.namespaced_json());
        cluster.put("clusterResourceOverrideSnapshots", applicable.cluster_json());
    }
    Ok(())
}

/// The de-selected clusters, by name.
fn deletion(scope: &Scope<'_>) -> Stage {
    let mut clusters: Vec<&str> = scope.delete.iter().map(Binding::cluster).collect();
    clusters.sort_unstable();
    let clusters = clusters.into_iter().map(|name| Node::named("clusterName", name));
    let mut stage = Stage { node: Node::named("stageName", DELETE_STAGE), ..Stage::default() };
    stage.clusters = clusters.collect();
    stage
}

/// The name of the master snapshot that the run rolls out.
pub(crate) fn snapshot_name(placement: &str, index: &Value) -> String {
    format!("{placement}-{}-snapshot", index.as_str().unwrap_or_default())
}
