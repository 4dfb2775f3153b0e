//! A hub of KubeFleet and its members.

use convoy_api::{GroupKind, Object};
use convoy_plan::dialect::fleet::Fleet;
use convoy_plan::dialect::fleet_agent::{AgentTimings, FleetAgent};
use convoy_testkit::object;
use serde_json::{Value, json};

use crate::site;

pub(crate) const PLACEMENT_API: &str = "placement.kubernetes-fleet.io/v1beta1";
const CLUSTER_API: &str = "cluster.kubernetes-fleet.io/v1beta1";
pub(crate) const WORK: GroupKind = GroupKind::new("placement.kubernetes-fleet.io", "Work");
pub(crate) const APPLIED_WORK: GroupKind =
    GroupKind::new("placement.kubernetes-fleet.io", "AppliedWork");

pub(crate) type Site = site::Site<FleetAgent>;

impl Site {
    pub(crate) fn new(objects: Vec<Object>, members: &[&str]) -> Self {
        let agents = members.iter().map(|member| FleetAgent::new(*member)).collect();
        Self::with(objects, Some(Box::new(Fleet)), agents)
    }

    /// One member whose hub only holds Works.
    pub(crate) fn of_agent(objects: Vec<Object>, member: &str) -> Self {
        let internal = object(CLUSTER_API, "InternalMemberCluster", member)
            .namespace(&format!("fleet-member-{member}"))
            .spec(json!({"state": "Join", "heartbeatPeriodSeconds": 60}))
            .build();
        let objects = objects.into_iter().chain([internal]).collect();
        Self { hub: None, ..Self::new(objects, &[member]) }
    }

    /// The same with other waits of the agents.
    pub(crate) fn waiting(mut self, timings: AgentTimings) -> Self {
        self.agents = self.agents.into_iter().map(|agent| agent.with(timings)).collect();
        self
    }

    /// Rounds and time, until something holds.
    pub(crate) fn run_until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..40 {
            self.settle();
            if holds(self) {
                return;
            }
            let wakes = self.steps().into_iter().filter_map(|step| step.wake_at);
            let next = wakes.filter(|at| *at > self.applier.now()).min();
            self.applier.advance_to(next.expect("something is awaited"));
        }
        panic!("never {what}");
    }
}

pub(crate) fn member(name: &str) -> Object {
    let identity = json!({"kind": "User", "name": format!("agent-{name}")});
    object(CLUSTER_API, "MemberCluster", name).spec(json!({"identity": identity})).build()
}

/// A Work with these manifests, whose apply strategy has these fields.
pub(crate) fn work(name: &str, manifests: &[Value], strategy: &Value) -> Object {
    object(PLACEMENT_API, "Work", name)
        .namespace("fleet-member-eu")
        .with("/metadata/generation", json!(1))
        .spec(json!({"workload": {"manifests": manifests}, "applyStrategy": strategy}))
        .build()
}
