//! What budgets are computed from, and which budgets a change concerns.

use std::collections::BTreeSet;

use convoy_api::kinds::{
    CUSTOM_RESOURCE_DEFINITION, DEPLOYMENT, POD, POD_DISRUPTION_BUDGET, REPLICA_SET,
    REPLICATION_CONTROLLER, STATEFUL_SET,
};
use convoy_api::{Object, ObjectKey};
use smol_str::SmolStr;

use crate::dialect::workloads::read::budget as read;
use crate::dialect::{Keep, Need, Watch};
use crate::snapshot::Snapshot;
use crate::world::World;

const SCALE: Keep = Keep::Fields(&["spec.replicas"]);

pub(crate) const WATCHES: &[Watch] = &[
    Watch { kind: POD_DISRUPTION_BUDGET, keep: Keep::Whole },
    Watch { kind: POD, keep: Keep::Fields(&["status.conditions"]) },
    Watch { kind: DEPLOYMENT, keep: SCALE },
    Watch { kind: REPLICA_SET, keep: SCALE },
    Watch { kind: STATEFUL_SET, keep: SCALE },
    Watch { kind: REPLICATION_CONTROLLER, keep: SCALE },
    Watch {
        kind: CUSTOM_RESOURCE_DEFINITION,
        keep: Keep::Fields(&["spec.group", "spec.names", "spec.versions"]),
    },
];

/// The custom kinds with a scale that own pods of a budget.
pub(crate) fn needs(world: &World, budget: &Object) -> Vec<Need> {
    let mut needs = BTreeSet::new();
    // A look at every pod, for nothing where there are no custom kinds.
    if world.of(&CUSTOM_RESOURCE_DEFINITION).next().is_none() {
        return Vec::new();
    }
    for pod in selected(world, budget) {
        let Some(owner) = pod.controller() else { continue };
        let (group, version) =
            (read::group_of(owner.api_version), read::version_of(owner.api_version));
        let mut definitions = world.of(&CUSTOM_RESOURCE_DEFINITION);
        let definition = definitions.find(|it| read::defines(it, group, owner.kind));
        if definition.is_some_and(|it| read::replicas_path(it, version).is_some()) {
            needs.insert(Need::Kind {
                collection: read::custom_kind(group, owner.kind).in_cluster(&budget.key().cluster),
                version: SmolStr::new(version),
            });
        }
    }
    needs.into_iter().collect()
}

fn selected<'w>(world: &'w World, budget: &Object) -> Vec<&'w Object> {
    let Ok(Some(selector)) = read::selector(budget) else { return Vec::new() };
    let pods = world.in_namespace(&POD, budget.namespace());
    pods.filter(|pod| selector.matches(pod)).collect()
}

/// The budgets to compute again: those that select a pod, or all of the namespace that a
/// controller is in.
pub(crate) fn affected(world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
    if changed.kind == POD_DISRUPTION_BUDGET {
        return vec![changed.clone()];
    }
    if changed.kind == CUSTOM_RESOURCE_DEFINITION {
        return world.of(&POD_DISRUPTION_BUDGET).map(|budget| budget.key().clone()).collect();
    }
    let object = world.get(changed);
    let budgets = world.in_namespace(&POD_DISRUPTION_BUDGET, &changed.namespace);
    let concerns = |budget: &&Object| {
        let is_pod = changed.kind == POD;
        !is_pod
            || object.is_none_or(|pod| {
                read::selector(budget).is_ok_and(|it| it.is_some_and(|it| it.matches(pod)))
            })
    };
    budgets.filter(concerns).map(|budget| budget.key().clone()).collect()
}

/// None of them where the change is not about what a budget looks at.
pub(crate) fn affected_by(before: &Object, after: &Object) -> Option<Vec<ObjectKey>> {
    let scaled = [DEPLOYMENT, REPLICA_SET, STATEFUL_SET, REPLICATION_CONTROLLER];
    let is_same = if *after.kind() == POD {
        read::health(before) == read::health(after)
    } else {
        scaled.contains(after.kind()) && read::standing(before) == read::standing(after)
    };
    is_same.then(Vec::new)
}

/// The pods of the namespace and what may control them.
pub(crate) fn snapshot<'w>(world: &'w World, budget: &'w Object) -> Snapshot<'w> {
    let namespace = budget.namespace();
    let kinds = [POD, DEPLOYMENT, REPLICA_SET, STATEFUL_SET, REPLICATION_CONTROLLER];
    let beside = kinds.into_iter().flat_map(|kind| world.in_namespace(&kind, namespace));
    let custom = needs(world, budget).into_iter().flat_map(|need| {
        let Need::Kind { collection, .. } = need else { return Vec::new() };
        world.in_namespace(&collection.kind, namespace).collect::<Vec<_>>()
    });
    let definitions = world.of(&CUSTOM_RESOURCE_DEFINITION);
    Snapshot::new(budget, beside.chain(custom).chain(definitions))
}
