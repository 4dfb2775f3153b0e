//! What a managed cluster gets on the hub and loses again: its namespace, the rights of its
//! agents, its Lease, its taints; and the built-in cluster sets.

use convoy_api::kinds::{CLUSTER_ROLE, CLUSTER_ROLE_BINDING, LEASE, NAMESPACE, ROLE_BINDING};
use convoy_api::ocm::names::{DEFAULT_CLUSTER_SET, MANAGED_CLUSTER_SET};
use convoy_api::{GroupKind, Object};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::rights;
use crate::dialect::ocm::decide::registration::{Heartbeat, Leftovers, Phase, Registration};
use crate::dialect::ocm::names::{
    CLEANUP_FINALIZER, CLUSTER_FINALIZER, CLUSTER_LEASE, CLUSTER_NAME_LABEL, GLOBAL_CLUSTER_SET,
    WORK_FINALIZER,
};
use crate::dialect::ocm::read::registration::{is_left_alone, written_selector};
use crate::finalizer;
use crate::gate::Permit;
use crate::merge_patch::nested;
use crate::snapshot::Snapshot;
use crate::step::{Action, Propagation, Verb, Why};

/// What registration writes about one cluster.
pub(crate) fn actions(
    snapshot: &Snapshot<'_>,
    registration: &Registration<'_>,
    now: Timestamp,
) -> Vec<Action> {
    let cluster = snapshot.rollout();
    let mut actions = match &registration.phase {
        Phase::Ignored => Vec::new(),
        Phase::Unaccepted => guarded(cluster, &[CLEANUP_FINALIZER]).into_iter().collect(),
        Phase::Denied { works } => denied(snapshot, *works),
        Phase::Accepted { has_namespace } => accepted(snapshot, *has_namespace),
        Phase::Leaving(leftovers) => leaving(snapshot, leftovers),
    };
    if registration.heartbeat == Heartbeat::Missing {
        actions.push(lease(cluster, now));
    }
    // One write to the cluster in a step: the next one would find it changed.
    let writes_cluster = actions.iter().any(|action| action.target == *cluster.key());
    if let Some(taints) = registration.taints.as_ref().filter(|_| !writes_cluster) {
        let patch = nested(&["spec", "taints"], taints.clone().into());
        let why = Why::new("AvailabilityChanged", "taints follow whether the cluster is available");
        actions.push(Action::patch(Verb::Taint, cluster, patch, why));
    }
    actions
}

fn accepted(snapshot: &Snapshot<'_>, has_namespace: bool) -> Vec<Action> {
    let cluster = snapshot.rollout();
    let mut actions: Vec<Action> =
        guarded(cluster, &[CLUSTER_FINALIZER, CLEANUP_FINALIZER]).into_iter().collect();
    if !has_namespace {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": cluster.name(), "labels": {CLUSTER_NAME_LABEL: cluster.name()}}});
        let target = cluster.key().sibling(&NAMESPACE, "", cluster.name());
        let why = Why::new("ClusterAccepted", "an accepted cluster has a namespace on the hub");
        actions.push(Action::create(Verb::Create, target, object, why));
    }
    actions.extend(rights::common().iter().filter_map(|wanted| kept(snapshot, wanted)));
    let own = rights::of_cluster(cluster.name(), true);
    actions.extend(own.iter().filter_map(|wanted| kept(snapshot, wanted)));
    let agents = rights::of_agents(cluster.name());
    actions.extend(agents.iter().filter_map(|wanted| kept(snapshot, wanted)));
    actions
}

/// A cluster that is denied keeps the right to see itself, and its agent to delete its works.
fn denied(snapshot: &Snapshot<'_>, works: usize) -> Vec<Action> {
    let name = snapshot.rollout().name();
    let own = rights::of_cluster(name, false);
    let mut actions: Vec<Action> = own.iter().filter_map(|wanted| kept(snapshot, wanted)).collect();
    actions.extend(withdrawn(snapshot, &rights::of_agents(name), works));
    actions
}

fn leaving(snapshot: &Snapshot<'_>, leftovers: &Leftovers<'_>) -> Vec<Action> {
    let cluster = snapshot.rollout();
    let why = || Why::new("ClusterDeleted", format!("cluster {} leaves the hub", cluster.name()));
    let works = leftovers.now.iter().zip(leftovers.permit.into_iter().cycle());
    let deleted = |(work, permit): (&&Object, Permit)| {
        Action::delete(Verb::DeleteMember(permit), work, Propagation::Background, why())
    };
    let mut actions: Vec<Action> = works.map(deleted).collect();
    actions.extend(withdrawn(snapshot, &rights::of_agents(cluster.name()), leftovers.works));
    if leftovers.works == 0 {
        actions.extend(withdrawn(snapshot, &rights::of_cluster(cluster.name(), true), 0));
    }
    if actions.is_empty() && leftovers.works == 0 {
        actions.extend(finalizer::removed(cluster, &[CLUSTER_FINALIZER, CLEANUP_FINALIZER], why()));
    }
    actions
}

fn guarded(cluster: &Object, finalizers: &[&str]) -> Option<Action> {
    let why = Why::new("ClusterGuarded", "what it has on the hub is to be deleted with it");
    finalizer::added(cluster, finalizers, why)
}

fn lease(cluster: &Object, now: Timestamp) -> Action {
    let object = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": CLUSTER_LEASE, "namespace": cluster.name(),
            "labels": {CLUSTER_NAME_LABEL: cluster.name()}},
        "spec": {"holderIdentity": CLUSTER_LEASE, "renewTime": format!("{now:.6}")},
    });
    let target = cluster.key().sibling(&LEASE, cluster.name(), CLUSTER_LEASE);
    let why = Why::new("LeaseMissing", "the agent is to renew it from now on");
    Action::create(Verb::Create, target, object, why)
}

/// Creates an object that grants rights, or makes what it grants as wanted.
fn kept(snapshot: &Snapshot<'_>, wanted: &rights::Right) -> Option<Action> {
    let why = || Why::new("RightsWanted", "the agents of a cluster may do what they have to");
    let cluster = snapshot.rollout();
    let target = cluster.key().sibling(&wanted.kind, &wanted.namespace, &wanted.name);
    let Some(found) = snapshot.get(&target) else {
        return Some(Action::create(Verb::Create, target, wanted.object.clone(), why()));
    };
    let part = wanted.part();
    let (is, should) = (found.raw().get(part), wanted.object.get(part));
    (is != should && !found.is_deleting()).then(|| {
        let patch = nested(&[part], should.cloned().unwrap_or(Value::Null));
        Action::patch(Verb::Record, found, patch, why())
    })
}

/// Deletes what grants rights. What lets an agent delete its works stays until they are gone: a
/// finalizer holds it.
fn withdrawn<'a>(
    snapshot: &'a Snapshot<'_>,
    rights: &'a [rights::Right],
    works: usize,
) -> impl Iterator<Item = Action> + 'a {
    let why = || Why::new("RightsWithdrawn", "the cluster is no longer accepted");
    let cluster = snapshot.rollout();
    let found = rights.iter().filter_map(move |right| {
        snapshot.get(&cluster.key().sibling(&right.kind, &right.namespace, &right.name))
    });
    found.filter_map(move |object| {
        if !object.is_deleting() {
            return Some(Action::delete(Verb::Delete, object, Propagation::Background, why()));
        }
        let is_over = works == 0;
        is_over.then(|| finalizer::removed(object, &[WORK_FINALIZER], why())).flatten()
    })
}

/// The kinds by which rights are granted.
pub(crate) const RIGHTS: [GroupKind; 3] = [CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE_BINDING];

/// The sets that always exist, with the clusters they select.
pub(crate) fn built_in_sets() -> [(&'static str, Value); 2] {
    [
        (DEFAULT_CLUSTER_SET, json!({"selectorType": "ExclusiveClusterSetLabel"})),
        (GLOBAL_CLUSTER_SET, json!({"selectorType": "LabelSelector", "labelSelector": {}})),
    ]
}

/// Creates the built-in sets that are missing, once their definition is served.
pub(crate) fn sets_created(snapshot: &Snapshot<'_>) -> Vec<Action> {
    let definition = snapshot.rollout();
    if definition.condition_status("Established") != Some("True") || definition.is_deleting() {
        return Vec::new();
    }
    let missing = built_in_sets().into_iter().filter_map(|(name, selector)| {
        let target = definition.key().sibling(&MANAGED_CLUSTER_SET, "", name);
        let why = Why::new("SetMissing", format!("cluster set {name} always exists"));
        let object = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta2",
            "kind": MANAGED_CLUSTER_SET.kind,
            "metadata": {"name": name},
            "spec": {"clusterSelector": selector},
        });
        let is_missing = snapshot.get(&target).is_none();
        is_missing.then(|| Action::create(Verb::Create, target, object, why))
    });
    missing.collect()
}

/// Makes a built-in set select what it should.
pub(crate) fn set_restored(set: &Object) -> Option<Action> {
    let (_, selector) = built_in_sets().into_iter().find(|(name, _)| set.name() == name)?;
    let before = written_selector(set);
    if is_left_alone(set) || set.is_deleting() || *before == selector {
        return None;
    }
    // A merge patch would keep members that the right selector does not have.
    let mut wanted = selector;
    if let (Some(before), Some(fields)) = (before.as_object(), wanted.as_object_mut()) {
        for name in before.keys() {
            fields.entry(name).or_insert(Value::Null);
        }
        if fields.get("labelSelector").is_some_and(Value::is_object) {
            let given = before.get("labelSelector").and_then(Value::as_object);
            let names = given.into_iter().flat_map(serde_json::Map::keys);
            let emptied = names.map(|name| (name.clone(), Value::Null)).collect();
            fields.insert("labelSelector".into(), Value::Object(emptied));
        }
    }
    let why = Why::new("SetRestored", "what a built-in cluster set selects cannot be changed");
    Some(Action::patch(Verb::Record, set, nested(&["spec", "clusterSelector"], wanted), why))
}
