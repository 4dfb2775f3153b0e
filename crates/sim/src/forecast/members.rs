//! The member clusters of a forecast, and what runs for each: its agents beside the hub, and the
//! machines and the controllers of workloads in the cluster itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use convoy_api::kinds::CUSTOM_RESOURCE_DEFINITION;
use convoy_api::object::member::{list, text};
use convoy_api::ocm::names::{
    MANAGED_CLUSTER, MANAGED_CLUSTER_SET, MANIFEST_WORK, PLACEMENT_DECISION,
};
use convoy_api::schema::crds;
use convoy_api::{GroupKind, Object};
use convoy_plan::dialect::fleet::names::{Family, MEMBER_CLUSTER};
use convoy_plan::dialect::fleet_agent::FleetAgent;
use convoy_plan::dialect::ocm_agent::{self, OcmAgent};
use convoy_plan::dialect::ocm_registration::{self, OcmRegistration};
use convoy_plan::{Dialect, World};
use jiff::Timestamp;
use serde_json::{Value, json};
use smol_str::SmolStr;

use super::controllers::{is_of_fleet, is_of_ocm};
use crate::kubelet::stamp;
use crate::node::uuid;
use crate::registration::{managed_cluster, member_cluster};
use crate::scenario::Scenario;
use crate::seed::Seed;

/// Member clusters that are simulated where none are given.
const MEMBERS: u32 = 4;
/// How often invented members of KubeFleet report: its default.
const HEARTBEAT_SECS: u32 = 60;
/// The nodes of a member cluster, unless the scenario says more.
const NODES: u32 = 3;

/// A member cluster.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) name: SmolStr,
    pub(super) nodes: u32,
    /// The agents of the hubs that it is registered with.
    pub(super) agents: Vec<&'static dyn Dialect>,
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Member {
    /// What its machines do under a seed; the machines of every cluster by themselves.
    pub(super) fn scenario(&self, scenario: &Scenario) -> Scenario {
        let mut own = scenario.clone().with_nodes(self.nodes);
        own.seed = Seed::new(scenario.seed).child("machines", &self.name).number();
        own
    }
}

/// The agents that one cluster may have.
struct Agents {
    fleet: FleetAgent,
    ocm: OcmAgent,
    registration: OcmRegistration,
}

/// The agents of a cluster. Dialects live as long as their process, so there is one set for each
/// name, however often it is simulated.
fn agents(name: &SmolStr) -> &'static Agents {
    static ALL: Mutex<BTreeMap<SmolStr, &'static Agents>> = Mutex::new(BTreeMap::new());
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.entry(name.clone()).or_insert_with(|| {
        Box::leak(Box::new(Agents {
            fleet: FleetAgent::new(name.clone()),
            ocm: OcmAgent::new(ocm_agent::Options::new(name.clone(), "https://hub")),
            registration: OcmRegistration::new(ocm_registration::Options::new(name.clone())),
        }))
    })
}

/// The members among the objects of a hub.
pub(super) fn of(objects: &[Object], scenario: &Scenario) -> Vec<Member> {
    let registered = |kind: GroupKind| {
        let found = objects.iter().filter(move |object| *object.kind() == kind);
        found.map(|object| object.name().clone()).collect::<BTreeSet<SmolStr>>()
    };
    let (fleet, ocm) = (registered(MEMBER_CLUSTER), registered(MANAGED_CLUSTER));
    let member = |name: &SmolStr| {
        let all = agents(name);
        let mut agents: Vec<&'static dyn Dialect> = Vec::new();
        if fleet.contains(name) {
            agents.push(&all.fleet);
        }
        if ocm.contains(name) {
            agents.push(&all.ocm);
            agents.push(&all.registration);
        }
        let nodes = scenario.nodes_of_member(name).unwrap_or(NODES);
        Member { name: name.clone(), nodes, agents }
    };
    fleet.union(&ocm).map(member).collect()
}

/// The registrations of member clusters for hubs that have rollouts and no member cluster. Clusters
/// that something was placed on already are in their hubs; without any there are new ones.
pub(super) fn invented(
    given: &World,
    applied: &World,
    scenario: &Scenario,
    start: Timestamp,
) -> Vec<Object> {
    let all = || given.iter().chain(applied.iter());
    let has = |is_it: fn(&GroupKind) -> bool| all().any(|object| is_it(object.kind()));
    let mut registrations: Vec<Value> = Vec::new();
    if has(is_of_fleet) && !has(|kind| *kind == MEMBER_CLUSTER) {
        let known: BTreeSet<SmolStr> = all().filter_map(bound_cluster).collect();
        for name in named_or_numbered(&known) {
            let labels = scenario.labels_of_member(&name);
            let mut registration = member_cluster(&name, &labels, HEARTBEAT_SECS);
            if known.contains(&name) {
                registration["status"] = status_in_fleet(start);
            }
            registrations.push(registration);
        }
    }
    if has(is_of_ocm) && !has(|kind| *kind == MANAGED_CLUSTER) {
        let known: BTreeSet<SmolStr> = all().flat_map(clusters_with_works).collect();
        for name in named_or_numbered(&known) {
            let mut registration = managed_cluster(&name, scenario.labels_of_member(&name));
            if known.contains(&name) {
                registration["status"] = status_in_ocm(start);
            }
            registrations.push(registration);
        }
    }
    registrations.into_iter().filter_map(|raw| Object::from_value(raw).ok()).collect()
}

fn named_or_numbered(known: &BTreeSet<SmolStr>) -> Vec<SmolStr> {
    if known.is_empty() {
        (1..=MEMBERS).map(|number| SmolStr::from(format!("member-{number}"))).collect()
    } else {
        known.iter().cloned().collect()
    }
}

/// The cluster that a binding of KubeFleet is for.
fn bound_cluster(object: &Object) -> Option<SmolStr> {
    let families = [Family::Cluster, Family::Namespaced];
    let is_binding = families.into_iter().any(|family| family.binding() == *object.kind());
    let cluster = if is_binding { object.spec_text("targetCluster") } else { "" };
    (!cluster.is_empty()).then(|| SmolStr::new(cluster))
}

/// The clusters of Open Cluster Management that were decided on, and those that have a work.
fn clusters_with_works(object: &Object) -> Vec<SmolStr> {
    if *object.kind() == MANIFEST_WORK {
        return vec![object.namespace().clone()];
    }
    if *object.kind() != PLACEMENT_DECISION {
        return Vec::new();
    }
    let decisions = list(object.status(), "decisions").iter();
    let names = decisions.map(|decision| text(decision, "clusterName"));
    names.filter(|name| !name.is_empty()).map(SmolStr::new).collect()
}

/// A member that has joined and reports.
fn status_in_fleet(start: Timestamp) -> Value {
    let condition = |kind: &str, reason: &str| {
        json!({"type": kind, "status": "True", "reason": reason, "message": "",
            "observedGeneration": 1, "lastTransitionTime": stamp(start)})
    };
    json!({
        "conditions": [condition("Joined", "MemberClusterJoined")],
        "agentStatus": [{"type": "MemberAgent", "lastReceivedHeartbeat": stamp(start),
            "conditions": [condition("Joined", "InternalMemberClusterJoined"),
                condition("Healthy", "InternalMemberClusterHealthy")]}],
    })
}

/// A cluster that has joined and is available.
fn status_in_ocm(start: Timestamp) -> Value {
    let condition = |kind: &str, reason: &str| {
        json!({"type": kind, "status": "True", "reason": reason, "message": "",
            "lastTransitionTime": stamp(start)})
    };
    json!({"conditions": [
        condition("HubAcceptedManagedCluster", "HubClusterAdminAccepted"),
        condition("ManagedClusterJoined", "ManagedClusterJoined"),
        condition("ManagedClusterConditionAvailable", "ManagedClusterAvailable"),
    ]})
}

/// The definition of cluster sets: a hub waits for it before it makes those that always exist.
pub(super) fn set_definition(given: &World, applied: &World) -> Option<Object> {
    let all = || given.iter().chain(applied.iter());
    if !all().any(|object| is_of_ocm(object.kind())) {
        return None;
    }
    let definition = crds("ocm")?.into_iter().find(|definition| {
        let spec = &definition.spec;
        spec.group == MANAGED_CLUSTER_SET.group && spec.names.kind == MANAGED_CLUSTER_SET.kind
    })?;
    let mut raw = json!(definition);
    let name = text(&raw["metadata"], "name").to_owned();
    let is_it = |object: &Object| {
        *object.kind() == CUSTOM_RESOURCE_DEFINITION && object.name().as_str() == name
    };
    if all().any(is_it) {
        return None;
    }
    raw["metadata"]["uid"] = json!(uuid(Seed::new(0).child("definition", &name)));
    raw["status"] = json!({"conditions": [{"type": "Established", "status": "True"}]});
    Object::from_value(raw).ok()
}
