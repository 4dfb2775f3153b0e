//! What the controllers of a hub look at beside placements and replica sets: managed clusters
//! with what belongs to them, and cluster sets.

use convoy_api::kinds::{
    CLUSTER_ROLE, CLUSTER_ROLE_BINDING, CUSTOM_RESOURCE_DEFINITION, LEASE, NAMESPACE, ROLE_BINDING,
};
use convoy_api::ocm::names::{
    ADD_ON_PLACEMENT_SCORE, DEFAULT_CLUSTER_SET, MANAGED_CLUSTER, MANAGED_CLUSTER_SET,
    MANAGED_CLUSTER_SET_BINDING, MANIFEST_WORK, MANIFEST_WORK_REPLICA_SET, PLACEMENT,
    PLACEMENT_DECISION, REPLICA_SET_LABEL,
};
use convoy_api::{GroupKind, Object, ObjectKey};

use crate::dialect::ocm::HubControllers;
use crate::dialect::ocm::names::{CLUSTER_LEASE, CLUSTER_NAME_LABEL, GLOBAL_CLUSTER_SET};
use crate::dialect::ocm::read::registration::bound_set;
use crate::dialect::ocm::read::replica_set::{owner_value, referenced};
use crate::dialect::ocm::read::work::ttl_secs;
use crate::dialect::ocm::write::registration::RIGHTS;
use crate::dialect::{Keep, Watch};
use crate::snapshot::Snapshot;
use crate::world::World;

/// The definition of cluster sets. The built-in sets belong to no object; they are looked after
/// as if they belonged to this one, and so are made as soon as the server takes them.
const SETS: &str = "managedclustersets.cluster.open-cluster-management.io";

/// The kinds of [`super::WATCHES`], and those of registration.
pub(crate) const WATCHES: &[Watch] = &[
    Watch { kind: MANAGED_CLUSTER, keep: Keep::Whole },
    Watch { kind: MANAGED_CLUSTER_SET, keep: Keep::Whole },
    Watch { kind: MANAGED_CLUSTER_SET_BINDING, keep: Keep::Fields(&["spec", "status"]) },
    Watch { kind: PLACEMENT, keep: Keep::Whole },
    Watch { kind: PLACEMENT_DECISION, keep: Keep::Fields(&["status.decisions"]) },
    Watch { kind: ADD_ON_PLACEMENT_SCORE, keep: Keep::Fields(&["status"]) },
    Watch { kind: MANIFEST_WORK_REPLICA_SET, keep: Keep::Whole },
    Watch { kind: MANIFEST_WORK, keep: Keep::Whole },
    Watch { kind: NAMESPACE, keep: Keep::Fields(&[]) },
    Watch { kind: CUSTOM_RESOURCE_DEFINITION, keep: Keep::Fields(&["status.conditions"]) },
    Watch { kind: LEASE, keep: Keep::Fields(&["spec.renewTime"]) },
    Watch { kind: CLUSTER_ROLE, keep: Keep::Fields(&["rules"]) },
    Watch { kind: CLUSTER_ROLE_BINDING, keep: Keep::Fields(&["subjects"]) },
    Watch { kind: ROLE_BINDING, keep: Keep::Fields(&["subjects"]) },
];

/// Whether the controllers of these parts look after an object.
pub(crate) fn is_rollout(parts: HubControllers, object: &Object) -> bool {
    let key = object.key();
    let kind = &key.kind;
    key.cluster.is_empty()
        && ((parts.placement && *kind == PLACEMENT)
            || (parts.work && *kind == MANIFEST_WORK_REPLICA_SET)
            || (parts.work && *kind == MANIFEST_WORK && ttl_secs(object).is_some())
            || ((parts.registration || parts.taints) && *kind == MANAGED_CLUSTER)
            || (parts.cluster_sets
                && [MANAGED_CLUSTER_SET, MANAGED_CLUSTER_SET_BINDING].contains(kind))
            || (parts.built_in_sets && *kind == CUSTOM_RESOURCE_DEFINITION && key.name == SETS))
}

/// Every object that these controllers look after, in key order.
pub(crate) fn rollouts(parts: HubControllers, world: &World) -> Vec<&Object> {
    const KINDS: [GroupKind; 6] = [
        PLACEMENT,
        MANIFEST_WORK,
        MANIFEST_WORK_REPLICA_SET,
        MANAGED_CLUSTER,
        MANAGED_CLUSTER_SET,
        MANAGED_CLUSTER_SET_BINDING,
    ];
    let mut found: Vec<&Object> = KINDS.iter().flat_map(|kind| world.of(kind)).collect();
    found.extend(world.find(&CUSTOM_RESOURCE_DEFINITION, "", SETS));
    found.retain(|object| is_rollout(parts, object));
    found.sort_by(|one, other| one.key().cmp(other.key()));
    found
}

/// What a decision about `rollout` looks at. A replica set goes by the decisions that are
/// written, whoever wrote them.
pub(crate) fn snapshot<'w>(world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
    let kind = rollout.kind();
    if *kind == MANAGED_CLUSTER {
        return Snapshot::new(rollout, around_cluster(world, rollout));
    }
    if *kind == MANIFEST_WORK {
        return Snapshot::new(rollout, []);
    }
    if *kind == MANAGED_CLUSTER_SET {
        return Snapshot::new(rollout, world.of(&MANAGED_CLUSTER));
    }
    if *kind == MANAGED_CLUSTER_SET_BINDING || *kind == CUSTOM_RESOURCE_DEFINITION {
        return Snapshot::new(rollout, world.of(&MANAGED_CLUSTER_SET));
    }
    if *kind == MANIFEST_WORK_REPLICA_SET {
        let owner = owner_value(rollout);
        let works = world.of(&MANIFEST_WORK);
        let works = works.filter(|work| work.label(REPLICA_SET_LABEL) == Some(&owner));
        let placements = referenced(rollout)
            .filter_map(|name| world.find(&PLACEMENT, rollout.namespace(), name));
        let placements: Vec<&Object> = placements.collect();
        let decisions =
            placements.iter().flat_map(|placement| super::decisions_of(world, placement));
        let decisions: Vec<&Object> = decisions.collect();
        return Snapshot::new(rollout, works.chain(placements).chain(decisions));
    }
    super::snapshot(world, rollout)
}

/// The namespace of a cluster, its Lease and works, and what grants rights to its agents.
fn around_cluster<'w>(world: &'w World, cluster: &'w Object) -> Vec<&'w Object> {
    let name = cluster.name();
    let mut found: Vec<&Object> = world.find(&NAMESPACE, "", name).into_iter().collect();
    found.extend(world.find(&LEASE, name, CLUSTER_LEASE));
    found.extend(world.in_namespace(&MANIFEST_WORK, name));
    found.extend(world.in_namespace(&ROLE_BINDING, name));
    for kind in [CLUSTER_ROLE, CLUSTER_ROLE_BINDING] {
        let own = format!("open-cluster-management:managedcluster:{name}");
        let shared = ["registration", "work"]
            .map(|agent| format!("open-cluster-management:managedcluster:{agent}"));
        let names = shared.into_iter().chain([own]);
        found.extend(names.filter_map(|name| world.find(&kind, "", &name)));
    }
    found
}

/// Which clusters, sets and bindings to look at again.
pub(crate) fn affected(
    parts: HubControllers,
    world: &World,
    changed: &ObjectKey,
) -> Vec<ObjectKey> {
    let mut found = super::affected(world, changed);
    let kind = &changed.kind;
    if *kind == MANAGED_CLUSTER {
        found.push(changed.clone());
        // Which sets it was in before is not known any more.
        found.extend(world.of(&MANAGED_CLUSTER_SET).map(|set| set.key().clone()));
    } else if *kind == MANAGED_CLUSTER_SET {
        found.push(changed.clone());
        let bindings = world.of(&MANAGED_CLUSTER_SET_BINDING);
        let bound = bindings.filter(|binding| bound_set(binding) == changed.name);
        found.extend(bound.map(|binding| binding.key().clone()));
        if [DEFAULT_CLUSTER_SET, GLOBAL_CLUSTER_SET].contains(&changed.name.as_str()) {
            found.push(changed.sibling(&CUSTOM_RESOURCE_DEFINITION, "", SETS));
        }
    } else if *kind == MANAGED_CLUSTER_SET_BINDING {
        found.push(changed.clone());
    } else if let Some(cluster) = owner_of(world, changed) {
        found.push(changed.sibling(&MANAGED_CLUSTER, "", &cluster));
    }
    let is_sets = *kind == CUSTOM_RESOURCE_DEFINITION && changed.name == SETS;
    if is_sets || *kind == MANIFEST_WORK {
        found.push(changed.clone());
    }
    found.sort();
    found.dedup();
    found.retain(|key| world.get(key).is_some_and(|object| is_rollout(parts, object)));
    found
}

/// The cluster that a namespace, a Lease, a work or a right belongs to.
fn owner_of(world: &World, changed: &ObjectKey) -> Option<String> {
    let kind = &changed.kind;
    if *kind == NAMESPACE {
        return Some(changed.name.to_string());
    }
    if [MANIFEST_WORK, ROLE_BINDING].contains(kind)
        || (*kind == LEASE && changed.name == CLUSTER_LEASE)
    {
        return Some(changed.namespace.to_string());
    }
    if !RIGHTS.contains(kind) {
        return None;
    }
    let label = world.get(changed).and_then(|object| object.label(CLUSTER_NAME_LABEL));
    label.filter(|cluster| !cluster.is_empty()).map(str::to_owned)
}
