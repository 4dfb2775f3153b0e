//! The kinds that are read, what a decision about a rollout looks at, and which rollouts a change
//! concerns.

pub(crate) mod member_change;
pub(crate) mod needs;

use convoy_api::kinds::{DEPLOYMENT, NAMESPACE};
use convoy_api::{GroupKind, Object, ObjectKey};
use smol_str::SmolStr;

use crate::dialect::fleet::decide::selection::select::{candidates, may_select};
use crate::dialect::fleet::names::kind::is_selectable;
use crate::dialect::fleet::names::{self, Family, MEMBER_CLUSTER, RolloutKind};
use crate::dialect::fleet::read::binding::target;
use crate::dialect::fleet::read::member::is_new;
use crate::dialect::fleet::read::overrides::Applicable;
use crate::dialect::fleet::read::placement::{Pick, Placement};
use crate::dialect::fleet::read::work::{binding_of, is_generated};
use crate::dialect::fleet::read::{eviction, run};
use crate::dialect::{Keep, NamedKind, Watch};
use crate::world::World;

/// The objects beside `rollout` that its step looks at.
pub(crate) fn surroundings<'w>(world: &'w World, rollout: &Object) -> Vec<&'w Object> {
    match RolloutKind::of(rollout.kind()) {
        Some(RolloutKind::Placement(_)) => around_placement(world, rollout),
        Some(RolloutKind::Run(family)) => around_run(world, rollout, family),
        Some(RolloutKind::Binding(family)) => around_binding(world, rollout, family),
        Some(RolloutKind::Eviction) => {
            let name = &eviction::spec(rollout).placement_name;
            let mut found = around_named_placement(world, Family::Cluster, "", name);
            found.extend(world.find(&names::DISRUPTION_BUDGET, "", name));
            // Evictions of one placement share its budget.
            let evictions = world.of(&names::EVICTION);
            found.extend(evictions.filter(|it| eviction::spec(it).placement_name == *name));
            found
        }
        Some(RolloutKind::Override) => {
            let kind = names::override_snapshot_kind(rollout.kind());
            world.in_namespace(&kind, rollout.namespace()).collect()
        }
        Some(RolloutKind::Member) => around_member(world, rollout),
        None => Vec::new(),
    }
}

fn around_member<'w>(world: &'w World, member: &Object) -> Vec<&'w Object> {
    let home = names::member_namespace(member.name());
    let namespaces = [home.as_str(), names::SYSTEM_NAMESPACE];
    let namespaces = namespaces.into_iter().filter_map(|name| world.find(&NAMESPACE, "", name));
    let mut found: Vec<&Object> = namespaces.collect();
    found.extend(world.find(&names::CLUSTER_PROFILE, names::SYSTEM_NAMESPACE, member.name()));
    for kind in &names::IN_MEMBER_NAMESPACE {
        found.extend(world.in_namespace(kind, &home));
    }
    if member.is_deleting() {
        let bindings = Family::ALL.into_iter().flat_map(|family| world.of(&family.binding()));
        found.extend(bindings.filter(|binding| target(binding) == member.name().as_str()));
    }
    found
}

/// The member cluster whose namespace an object is, or lies in, or whose profile it is.
fn resident(world: &World, changed: &ObjectKey) -> Option<ObjectKey> {
    if changed.kind == names::CLUSTER_PROFILE {
        let member = world.find(&MEMBER_CLUSTER, "", &changed.name)?;
        return is_concerned(world, member).then(|| member.key().clone());
    }
    let home = if changed.kind == NAMESPACE { &changed.name } else { &changed.namespace };
    let known = changed.kind == NAMESPACE || names::IN_MEMBER_NAMESPACE.contains(&changed.kind);
    let member = home.strip_prefix(names::MEMBER_NAMESPACE_PREFIX).filter(|_| known)?;
    let member = world.find(&MEMBER_CLUSTER, "", member)?;
    is_concerned(world, member).then(|| member.key().clone())
}

/// What the Works of a binding are made from, and the Works themselves.
fn around_binding<'w>(world: &'w World, binding: &Object, family: Family) -> Vec<&'w Object> {
    let (namespace, cluster) = (binding.namespace(), target(binding));
    let mut found: Vec<&Object> = world.find(&MEMBER_CLUSTER, "", cluster).into_iter().collect();
    let parent = binding.label(names::PARENT).unwrap_or_default();
    found.extend(world.find(&family.placement(), namespace, parent));
    found.extend(world.labelled(&family.resource_snapshot(), namespace, parent));
    let overrides = Applicable::of_binding(binding);
    let cluster_scoped = overrides.cluster.iter();
    found.extend(
        cluster_scoped.filter_map(|name| world.find(&names::CLUSTER_OVERRIDE_SNAPSHOT, "", name)),
    );
    let namespaced = overrides.namespaced.iter();
    found.extend(
        namespaced.filter_map(|(space, name)| world.find(&names::OVERRIDE_SNAPSHOT, space, name)),
    );
    found.extend(world.in_namespace(&names::WORK, &names::member_namespace(cluster)));
    found
}

fn around_run<'w>(world: &'w World, run: &Object, family: Family) -> Vec<&'w Object> {
    let namespace = run.namespace();
    let spec = run::spec(run);
    let mut found = around_named_placement(world, family, namespace, &spec.placement_name);
    let strategy = &spec.staged_rollout_strategy_name;
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
    kinds.iter().flat_map(|kind| world.labelled(kind, namespace, name)).collect()
}

/// Whether a rollout has to stand still because an object that it looks at was refused.
pub(crate) fn hangs_on(world: &World, rollout: &Object, refused: &Object) -> bool {
    let kind = refused.kind();
    let is_member = *kind == MEMBER_CLUSTER;
    match RolloutKind::of(rollout.kind()) {
        Some(RolloutKind::Placement(_)) if is_member => may_be_on(world, rollout, refused.name()),
        Some(RolloutKind::Placement(_)) => {
            is_selectable(kind) && may_select(rollout, refused.key())
        }
        Some(RolloutKind::Run(family)) => {
            let asked = *kind == family.approval_request()
                && refused.label(names::TARGET_RUN).is_none_or(|run| run == rollout.name());
            is_member || asked || [family.placement(), family.strategy()].contains(kind)
        }
        Some(RolloutKind::Binding(_)) => is_member && target(rollout) == refused.name().as_str(),
        Some(RolloutKind::Eviction) if is_member => {
            eviction::spec(rollout).cluster_name == refused.name().as_str()
        }
        Some(RolloutKind::Eviction) => {
            [Family::Cluster.placement(), names::DISRUPTION_BUDGET].contains(kind)
        }
        Some(RolloutKind::Override | RolloutKind::Member) | None => false,
    }
}

/// Whether a placement is, or could be, on a cluster. Only one that names its clusters leaves
/// no doubt.
fn may_be_on(world: &World, placement: &Object, cluster: &str) -> bool {
    let family = Family::of(placement);
    let mut own = world.labelled(&family.binding(), placement.namespace(), placement.name());
    own.any(|binding| target(binding) == cluster)
        || Placement::read(placement).is_ok_and(|placement| match placement.policy.pick {
            Pick::Fixed(names) => names.iter().any(|name| name == cluster),
            Pick::All | Pick::Number(_) => true,
        })
}

/// The rollouts to look at again after `changed` changed, appeared or vanished.
pub(crate) fn affected(world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
    let mut found: Vec<ObjectKey> = Vec::new();
    let itself = world.get(changed);
    found.extend(
        itself.filter(|object| is_own_rollout(world, object)).map(|object| object.key().clone()),
    );
    found.extend(bindings_of(world, changed, itself));
    for family in Family::ALL {
        found.extend(affected_of(world, family, changed, itself));
    }
    if changed.kind == names::DISRUPTION_BUDGET {
        found.extend(evictions_of(world, &changed.name));
    }
    if changed.kind == names::PLACEMENT_STATUS {
        // It is made again if somebody deletes it.
        let placement = changed.sibling(&Family::Cluster.placement(), "", &changed.name);
        found.extend(world.get(&placement).map(|object| object.key().clone()));
    }
    if changed.kind == names::CLUSTER_OVERRIDE_SNAPSHOT || changed.kind == names::OVERRIDE_SNAPSHOT
    {
        found.extend(overrides(world));
    }
    found.extend(resident(world, changed));
    if changed.kind == NAMESPACE && changed.name == names::SYSTEM_NAMESPACE {
        // There profiles of members can be from now on.
        let members = world.of(&MEMBER_CLUSTER).filter(|member| is_concerned(world, member));
        found.extend(members.map(|member| member.key().clone()));
    }
    if is_judged(&changed.kind) {
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
        // One that is gone was asked about while it was there, and said whose it was.
        let Some(parent) = itself.and_then(|object| object.label(names::PARENT)) else {
            return Vec::new();
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

/// The bindings whose Works are made from an object, or are it.
fn bindings_of(world: &World, changed: &ObjectKey, itself: Option<&Object>) -> Vec<ObjectKey> {
    let concerned = |binding: &&Object| generates(world, binding);
    let keys = |found: Vec<&Object>| found.iter().map(|it| it.key().clone()).collect();
    if changed.kind == names::WORK {
        let binding = itself.and_then(binding_of).and_then(|key| world.get(&key));
        return keys(binding.filter(concerned).into_iter().collect());
    }
    let mut found: Vec<&Object> = Vec::new();
    for family in Family::ALL {
        if changed.kind == family.resource_snapshot() {
            let parent = itself.and_then(|object| object.label(names::PARENT));
            let bindings =
                parent.map(|parent| world.labelled(&family.binding(), &changed.namespace, parent));
            found.extend(bindings.into_iter().flatten().filter(concerned));
        }
    }
    let touches = |binding: &&Object| match &changed.kind {
        kind if *kind == MEMBER_CLUSTER => target(binding) == changed.name.as_str(),
        kind if *kind == names::CLUSTER_OVERRIDE_SNAPSHOT => {
            Applicable::of_binding(binding).cluster.contains(&changed.name)
        }
        _ => {
            let name = (changed.namespace.clone(), changed.name.clone());
            Applicable::of_binding(binding).namespaced.contains(&name)
        }
    };
    let sources = [MEMBER_CLUSTER, names::CLUSTER_OVERRIDE_SNAPSHOT, names::OVERRIDE_SNAPSHOT];
    if sources.contains(&changed.kind) {
        let all = Family::ALL.into_iter().flat_map(|family| world.of(&family.binding()));
        found.extend(all.filter(touches).filter(concerned));
    }
    keys(found)
}

/// The runs and evictions that refer to a placement.
fn dependants(world: &World, family: Family, placement: &ObjectKey) -> Vec<ObjectKey> {
    let runs = family.run();
    let runs = world
        .in_namespace(&runs, &placement.namespace)
        .filter(|run| run::spec(run).placement_name == placement.name.as_str());
    let mut found: Vec<ObjectKey> = runs.map(|run| run.key().clone()).collect();
    if family == Family::Cluster {
        found.extend(evictions_of(world, &placement.name));
    }
    found
}

fn evictions_of(world: &World, placement: &str) -> Vec<ObjectKey> {
    let evictions = world.of(&names::EVICTION);
    let named = evictions.filter(|object| eviction::spec(object).placement_name == placement);
    named.map(|object| object.key().clone()).collect()
}

fn overrides(world: &World) -> Vec<ObjectKey> {
    [names::CLUSTER_OVERRIDE, names::OVERRIDE].iter().flat_map(|kind| keys(world, kind)).collect()
}

fn keys(world: &World, kind: &GroupKind) -> Vec<ObjectKey> {
    world.of(kind).map(|object| object.key().clone()).collect()
}

/// The rollout objects in `world`, in key order.
pub(crate) fn rollouts(world: &World) -> Vec<&Object> {
    let mut found = own_rollouts(world);
    found.extend(judged(world));
    found.sort_by(|a, b| a.key().cmp(b.key()));
    found
}

/// Whether an object, which is in `world`, is one of the rollouts.
pub(crate) fn is_rollout(world: &World, object: &Object) -> bool {
    let is_home = object.key().cluster.is_empty();
    let is_judged = || is_judged(object.kind()) && !is_about_rollouts(world);
    is_own_rollout(world, object) || is_home && is_judged()
}

/// Whether an object, which is in `world`, is a rollout of the fleet's own kinds.
pub(crate) fn is_own_rollout(world: &World, object: &Object) -> bool {
    match RolloutKind::of(object.kind()) {
        Some(RolloutKind::Member) => is_concerned(world, object),
        Some(RolloutKind::Binding(_)) => generates(world, object),
        role => role.is_some(),
    }
}

/// The rollout objects of the fleet's own kinds, in any order.
pub(crate) fn own_rollouts(world: &World) -> Vec<&Object> {
    let mut found: Vec<&Object> = Vec::new();
    for family in Family::ALL {
        found.extend(world.of(&family.placement()));
        found.extend(world.of(&family.run()));
        found.extend(world.of(&family.binding()).filter(|binding| generates(world, binding)));
    }
    for kind in [names::EVICTION, names::CLUSTER_OVERRIDE, names::OVERRIDE] {
        found.extend(world.of(&kind));
    }
    let members = world.of(&names::MEMBER_CLUSTER);
    found.extend(members.filter(|member| is_concerned(world, member)));
    found
}

/// Whether the Works of a binding are made here. One that is being deleted, and whose cluster was
/// forced out of the fleet with its namespace, is let go here too: nobody else would.
fn generates(world: &World, binding: &Object) -> bool {
    let cluster = target(binding);
    let home = names::member_namespace(cluster);
    let has_agent = world.find(&names::INTERNAL_MEMBER_CLUSTER, &home, cluster).is_some();
    let is_orphan = || binding.is_deleting() && world.find(&MEMBER_CLUSTER, "", cluster).is_none();
    (has_agent || is_orphan()) && is_generated(binding)
}

/// Whether the hub has something to do with this cluster: it is new, it leaves, or its agent's
/// side is known here. A cluster that merely lies in a bag as a target is left alone.
fn is_concerned(world: &World, member: &Object) -> bool {
    let home = names::member_namespace(member.name());
    is_new(member)
        || member.is_deleting()
        || world.find(&names::INTERNAL_MEMBER_CLUSTER, &home, member.name()).is_some()
}

/// The objects that are judged, in key order: those of no dialect's API group, where they are all
/// that somebody asks about.
fn judged(world: &World) -> impl Iterator<Item = &Object> {
    let asks_about_rollouts = is_about_rollouts(world);
    let kinds = world.kinds().filter(move |kind| !asks_about_rollouts && is_judged(kind));
    kinds.flat_map(|kind| world.of(kind))
}

/// Whether there are rollouts, and other objects beside them: then the rollouts are what is asked
/// about. A Deployment by itself is asked about as a rollout and as an object that was placed.
fn is_about_rollouts(world: &World) -> bool {
    let has = |kind: &GroupKind| world.of(kind).next().is_some();
    let has_others = || world.kinds().any(|kind| *kind != DEPLOYMENT && has(kind));
    has(&DEPLOYMENT) && has_others() || world.kinds().any(|kind| is_spoken(kind) && has(kind))
}

/// Whether objects of a kind are judged where nothing else is asked about.
fn is_judged(kind: &GroupKind) -> bool {
    let is_part =
        matches!((kind.group.as_str(), kind.kind.as_str()), ("", "Pod") | ("apps", "ReplicaSet"));
    !is_spoken(kind) && !is_part
}

/// Whether a kind is of the API groups of a dialect.
fn is_spoken(kind: &GroupKind) -> bool {
    let group = kind.group.as_str();
    let ours = [names::PLACEMENT_GROUP, names::CLUSTER_GROUP, names::SKYHOOK_GROUP];
    ours.contains(&group)
        || *kind == names::CLUSTER_PROFILE
        || group.starts_with("karpenter.")
        || group.ends_with("open-cluster-management.io")
}

/// The members that a cluster is to placements: its bindings, and itself in update runs.
pub(crate) fn member_names(world: &World, cluster: &str) -> Vec<SmolStr> {
    let bindings = Family::ALL.into_iter().flat_map(|family| world.of(&family.binding()));
    let own = bindings.filter(|binding| target(binding) == cluster);
    [SmolStr::new(cluster)].into_iter().chain(own.map(|binding| binding.name().clone())).collect()
}

/// Whether a placement is on a cluster.
pub(crate) fn has_member(world: &World, rollout: &Object, cluster: &str) -> bool {
    let Some(RolloutKind::Placement(family)) = RolloutKind::of(rollout.kind()) else {
        return false;
    };
    let mut own = world.labelled(&family.binding(), rollout.namespace(), rollout.name());
    own.any(|binding| target(binding) == cluster)
}

/// What people call rollouts. Bindings, members and overrides are parts of these.
pub(crate) static ROLLOUT_KINDS: [NamedKind; 5] = [
    NamedKind { kind: Family::Cluster.placement(), short: &["crp"] },
    NamedKind { kind: Family::Namespaced.placement(), short: &["rp"] },
    NamedKind { kind: Family::Cluster.run(), short: &["csur"] },
    NamedKind { kind: Family::Namespaced.run(), short: &["sur"] },
    NamedKind { kind: names::EVICTION, short: &["crpe"] },
];

const fn whole(kind: GroupKind) -> Watch {
    Watch { kind, keep: Keep::Whole }
}

/// The fleet's own kinds. Kinds that placements select come on top, as they are selected.
pub(crate) static WATCHES: [Watch; 24] = [
    whole(Family::Cluster.placement()),
    whole(Family::Cluster.binding()),
    whole(Family::Cluster.resource_snapshot()),
    whole(Family::Cluster.policy_snapshot()),
    whole(Family::Cluster.run()),
    whole(Family::Cluster.strategy()),
    whole(Family::Cluster.approval_request()),
    whole(Family::Namespaced.placement()),
    whole(Family::Namespaced.binding()),
    whole(Family::Namespaced.resource_snapshot()),
    whole(Family::Namespaced.policy_snapshot()),
    whole(Family::Namespaced.run()),
    whole(Family::Namespaced.strategy()),
    whole(Family::Namespaced.approval_request()),
    whole(names::EVICTION),
    whole(names::DISRUPTION_BUDGET),
    whole(names::CLUSTER_OVERRIDE),
    whole(names::CLUSTER_OVERRIDE_SNAPSHOT),
    whole(names::OVERRIDE),
    whole(names::OVERRIDE_SNAPSHOT),
    whole(names::MEMBER_CLUSTER),
    whole(names::INTERNAL_MEMBER_CLUSTER),
    whole(names::PLACEMENT_STATUS),
    whole(names::WORK),
];
