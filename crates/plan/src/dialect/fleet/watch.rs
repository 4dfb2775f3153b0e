//! What a decision about a rollout looks at, and which rollouts a change concerns.

use convoy_api::{GroupKind, Object, ObjectKey};

use crate::dialect::fleet::decide::selection::select::{candidates, may_select};
use crate::dialect::fleet::decide::{available, membership};
use crate::dialect::fleet::names::kind::{NAMESPACE, is_selectable};
use crate::dialect::fleet::names::{self, Family, MEMBER_CLUSTER, Role};
use crate::dialect::fleet::read::placement::{Pick, Placement, text};
use crate::world::World;

/// The objects beside `rollout` that its step looks at.
pub(crate) fn surroundings<'w>(world: &'w World, rollout: &Object) -> Vec<&'w Object> {
    match Role::of(rollout.kind()) {
        Some(Role::Placement(_)) => around_placement(world, rollout),
        Some(Role::Run(family)) => around_run(world, rollout, family),
        Some(Role::Eviction) => {
            let name = text(rollout.spec(), "placementName");
            let mut found = around_named_placement(world, Family::Cluster, "", name);
            found.extend(world.find(&names::DISRUPTION_BUDGET, "", name));
            // Evictions of one placement share its budget.
            let evictions = world.of(&names::EVICTION);
            found.extend(evictions.filter(|it| text(it.spec(), "placementName") == name));
            found
        }
        Some(Role::Override) => {
            let kind = crate::dialect::fleet::decide::override_history::snapshot_kind(rollout);
            world.in_namespace(&kind, rollout.namespace()).collect()
        }
        Some(Role::Member) => around_member(world, rollout),
        None => Vec::new(),
    }
}

fn around_member<'w>(world: &'w World, member: &Object) -> Vec<&'w Object> {
    let home = membership::home(member.name());
    let mut found: Vec<&Object> = world.find(&NAMESPACE, "", &home).into_iter().collect();
    for kind in &membership::AT_HOME {
        found.extend(world.in_namespace(kind, &home));
    }
    found
}

/// The member cluster whose place an object belongs to.
fn resident(world: &World, changed: &ObjectKey) -> Option<ObjectKey> {
    let place = if changed.kind == NAMESPACE { &changed.name } else { &changed.namespace };
    let known = changed.kind == NAMESPACE || membership::AT_HOME.contains(&changed.kind);
    let member = place.strip_prefix("fleet-member-").filter(|_| known)?;
    let member = world.find(&MEMBER_CLUSTER, "", member)?;
    membership::is_concerned(world, member).then(|| member.key().clone())
}

fn around_run<'w>(world: &'w World, run: &Object, family: Family) -> Vec<&'w Object> {
    let namespace = run.namespace();
    let name = text(run.spec(), "placementName");
    let mut found = around_named_placement(world, family, namespace, name);
    let strategy = text(run.spec(), "stagedRolloutStrategyName");
    found.extend(world.find(&family.strategy(), namespace, strategy));
    found.extend(world.in_namespace(&family.approval_request(), namespace));
    found
}

fn around_named_placement<'w>(
    world: &'w World,
    family: Family,
    namespace: &str,
    name: &str,
) -> Vec<&'w Object> {
    let Some(placement) = world.find(&family.placement(), namespace, name) else {
        // Bindings may outlive their placement.
        return owned(world, family, namespace, name);
    };
    let mut found = around_placement(world, placement);
    found.push(placement);
    found
}

fn around_placement<'w>(world: &'w World, rollout: &Object) -> Vec<&'w Object> {
    let family = Family::of(rollout);
    let namespace = rollout.namespace();
    let mut found = owned(world, family, namespace, rollout.name());
    found.extend(world.of(&MEMBER_CLUSTER));
    found.extend(world.of(&names::CLUSTER_OVERRIDE_SNAPSHOT));
    match family {
        Family::Cluster => found.extend(world.of(&names::OVERRIDE_SNAPSHOT)),
        Family::Namespaced => {
            found.extend(world.in_namespace(&names::OVERRIDE_SNAPSHOT, namespace));
        }
    }
    let mirrors = world.of(&names::PLACEMENT_STATUS);
    found.extend(mirrors.filter(|mirror| mirror.name() == rollout.name()));
    if let Ok(placement) = Placement::read(rollout) {
        found.extend(candidates(world, &placement));
    }
    found
}

/// The bindings and snapshots of a placement.
fn owned<'w>(world: &'w World, family: Family, namespace: &str, name: &str) -> Vec<&'w Object> {
    let kinds = [family.binding(), family.resource_snapshot(), family.policy_snapshot()];
    let mut found = Vec::new();
    for kind in &kinds {
        let all = world.in_namespace(kind, namespace);
        found.extend(all.filter(|object| object.label(names::PARENT) == Some(name)));
    }
    found
}

/// Whether a rollout has to stand still because an object that it looks at was refused.
pub(crate) fn hangs_on(world: &World, rollout: &Object, refused: &Object) -> bool {
    let kind = refused.kind();
    let is_member = *kind == MEMBER_CLUSTER;
    match Role::of(rollout.kind()) {
        Some(Role::Placement(_)) if is_member => may_be_on(world, rollout, refused.name()),
        Some(Role::Placement(_)) => is_selectable(kind) && may_select(rollout, refused.key()),
        Some(Role::Run(family)) => {
            let asked = *kind == family.approval_request()
                && refused.label(names::TARGET_RUN).is_none_or(|run| run == rollout.name());
            is_member || asked || [family.placement(), family.strategy()].contains(kind)
        }
        Some(Role::Eviction) if is_member => {
            text(rollout.spec(), "clusterName") == refused.name().as_str()
        }
        Some(Role::Eviction) => {
            [Family::Cluster.placement(), names::DISRUPTION_BUDGET].contains(kind)
        }
        Some(Role::Override | Role::Member) | None => false,
    }
}

/// Whether a placement is, or could be, on a cluster. Only one that names its clusters leaves
/// no doubt.
fn may_be_on(world: &World, placement: &Object, cluster: &str) -> bool {
    let family = Family::of(placement);
    let bindings = world.in_namespace(&family.binding(), placement.namespace());
    let mut own = bindings.filter(|it| it.label(names::PARENT) == Some(placement.name()));
    own.any(|binding| text(binding.spec(), "targetCluster") == cluster)
        || Placement::read(placement).is_ok_and(|placement| match placement.policy.pick {
            Pick::Fixed(names) => names.iter().any(|name| name == cluster),
            Pick::All | Pick::Number(_) => true,
        })
}

/// The rollouts to look at again after `changed` changed, appeared or vanished.
pub(crate) fn affected(world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
    let mut found: Vec<ObjectKey> = Vec::new();
    let itself = world.get(changed);
    let is_rollout = |object: &&Object| match Role::of(object.kind()) {
        Some(Role::Member) => membership::is_concerned(world, object),
        role => role.is_some(),
    };
    found.extend(itself.filter(is_rollout).map(|object| object.key().clone()));
    for family in Family::ALL {
        found.extend(affected_of(world, family, changed, itself));
    }
    if changed.kind == names::DISRUPTION_BUDGET {
        found.extend(evictions_of(world, &changed.name));
    }
    if changed.kind == names::CLUSTER_OVERRIDE_SNAPSHOT || changed.kind == names::OVERRIDE_SNAPSHOT
    {
        found.extend(overrides(world));
    }
    found.extend(resident(world, changed));
    if available::may_be_judged(&changed.kind) {
        found.extend(itself.map(|object| object.key().clone()));
    }
    found.sort();
    found.dedup();
    found
}

fn affected_of(
    world: &World,
    family: Family,
    changed: &ObjectKey,
    itself: Option<&Object>,
) -> Vec<ObjectKey> {
    let kind = &changed.kind;
    let placements = || keys(world, &family.placement());
    let runs = || keys(world, &family.run());
    if *kind == family.placement() {
        return dependants(world, family, changed);
    }
    let parts = [family.binding(), family.resource_snapshot(), family.policy_snapshot()];
    if parts.contains(kind) {
        // What vanished no longer says whose it was.
        let parent = itself.and_then(|object| object.label(names::PARENT));
        let Some(parent) = parent else {
            return placements().into_iter().chain(runs()).collect();
        };
        let placement = changed.sibling(&family.placement(), &changed.namespace, parent);
        let mut found = dependants(world, family, &placement);
        found.extend(world.get(&placement).map(|object| object.key().clone()));
        return found;
    }
    if *kind == family.strategy() || *kind == family.approval_request() {
        return runs();
    }
    let all_concerned = *kind == MEMBER_CLUSTER
        || *kind == names::CLUSTER_OVERRIDE_SNAPSHOT
        || *kind == names::OVERRIDE_SNAPSHOT;
    if all_concerned {
        return placements().into_iter().chain(runs()).collect();
    }
    if is_selectable(kind) {
        let selecting = world.of(&family.placement()).filter(|object| may_select(object, changed));
        return selecting.map(|object| object.key().clone()).collect();
    }
    Vec::new()
}

/// The runs and evictions that refer to a placement.
fn dependants(world: &World, family: Family, placement: &ObjectKey) -> Vec<ObjectKey> {
    let runs = family.run();
    let runs = world
        .in_namespace(&runs, &placement.namespace)
        .filter(|run| text(run.spec(), "placementName") == placement.name);
    let mut found: Vec<ObjectKey> = runs.map(|run| run.key().clone()).collect();
    if family == Family::Cluster {
        found.extend(evictions_of(world, &placement.name));
    }
    found
}

fn evictions_of(world: &World, placement: &str) -> Vec<ObjectKey> {
    let evictions = world.of(&names::EVICTION);
    let named = evictions.filter(|object| text(object.spec(), "placementName") == placement);
    named.map(|object| object.key().clone()).collect()
}

fn overrides(world: &World) -> Vec<ObjectKey> {
    [names::CLUSTER_OVERRIDE, names::OVERRIDE].iter().flat_map(|kind| keys(world, kind)).collect()
}

fn keys(world: &World, kind: &GroupKind) -> Vec<ObjectKey> {
    world.of(kind).map(|object| object.key().clone()).collect()
}
