//! The member clusters of a forecast, and what runs for each: its agents beside the hub, and the
//! machines and the controllers of workloads in the cluster itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use convoy_api::kinds::CUSTOM_RESOURCE_DEFINITION;
use convoy_api::object::member::text;
use convoy_api::ocm::names::{MANAGED_CLUSTER, MANAGED_CLUSTER_SET};
use convoy_api::schema::crds;
use convoy_api::{GroupKind, Object};
use convoy_plan::dialect::fleet::names::MEMBER_CLUSTER;
use convoy_plan::dialect::fleet_agent::FleetAgent;
use convoy_plan::dialect::ocm_agent::{self, OcmAgent};
use convoy_plan::dialect::ocm_registration::{self, OcmRegistration};
use convoy_plan::{Dialect, World};
use serde_json::{Value, json};
use smol_str::SmolStr;

use super::controllers::{is_of_fleet, is_of_ocm};
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

/// The registrations of member clusters for hubs that have rollouts and no member cluster.
pub(super) fn invented(given: &World, applied: &World, scenario: &Scenario) -> Vec<Object> {
    let has = |is_it: fn(&GroupKind) -> bool| {
        given.iter().chain(applied.iter()).any(|object| is_it(object.kind()))
    };
    let lacks_fleet = has(is_of_fleet) && !has(|kind| *kind == MEMBER_CLUSTER);
    let lacks_ocm = has(is_of_ocm) && !has(|kind| *kind == MANAGED_CLUSTER);
    let mut registrations: Vec<Value> = Vec::new();
    for name in (1..=MEMBERS).map(|number| format!("member-{number}")) {
        let labels = scenario.labels_of_member(&name);
        if lacks_fleet {
            registrations.push(member_cluster(&name, &labels, HEARTBEAT_SECS));
        }
        if lacks_ocm {
            registrations.push(managed_cluster(&name, labels));
        }
    }
    registrations.into_iter().filter_map(|raw| Object::from_value(raw).ok()).collect()
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
