//! Placements rehearsed: the hub of a fleet of any size places resources on its members, in virtual
//! time and with nothing in its way. The agents of the members are played: they join, apply and
//! report at once.

use std::collections::BTreeMap;

use convoy_api::object::member::text;
use convoy_api::{GroupKind, Object};
use convoy_check::Placements;
use convoy_controllers::request::Request;
use convoy_plan::Dialect;
use convoy_plan::dialect::fleet::{Hub, Options};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::cluster::{Author, Cluster, WriteRecord};
use super::random::Random;
use super::{RunSettings, Trial};
use crate::kubelet::stamp;

/// Without the intervals by which changes are collected: what is at rest then stays at rest.
static HUB: Hub = Hub { options: Options::AT_ONCE };

const PLACEMENT_API: &str = "/apis/placement.kubernetes-fleet.io/v1beta1";
const CLUSTER_API: &str = "/apis/cluster.kubernetes-fleet.io/v1beta1";
const PLACEMENT: GroupKind =
    GroupKind::new("placement.kubernetes-fleet.io", "ClusterResourcePlacement");
const BINDING: GroupKind =
    GroupKind::new("placement.kubernetes-fleet.io", "ClusterResourceBinding");
const WORK: GroupKind = GroupKind::new("placement.kubernetes-fleet.io", "Work");
const INTERNAL: GroupKind = GroupKind::new("cluster.kubernetes-fleet.io", "InternalMemberCluster");

/// A hub with so many members and placements.
#[derive(Debug)]
pub struct PlacementRehearsal {
    members: u32,
    placements: u32,
    /// Clusters of each placement.
    clusters: u32,
    vigil: Placements,
    /// Placements that are available, and bindings that are.
    available: BTreeMap<GroupKind, std::collections::BTreeSet<String>>,
}

impl PlacementRehearsal {
    pub fn new(members: u32, placements: u32, clusters: u32) -> (Self, RunSettings) {
        let vigil = Placements::default();
        let trial = Self { members, placements, clusters, vigil, available: BTreeMap::new() };
        (trial, RunSettings::undisturbed())
    }

    fn placement(&self, number: u32) -> Value {
        let name = format!("shop-{number:04}");
        let namespace = json!({"group": "", "version": "v1", "kind": "Namespace", "name": name,
            "selectionScope": "NamespaceOnly"});
        // Spread over the fleet: each takes the clusters that follow its number.
        let first = u64::from(number) * u64::from(self.members) / u64::from(self.placements);
        let names = (0..u64::from(self.clusters.min(self.members))).map(|at| {
            member_name(u32::try_from((first + at) % u64::from(self.members)).unwrap_or(0))
        });
        json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
            "kind": "ClusterResourcePlacement", "metadata": {"name": name},
            "spec": {"resourceSelectors": [namespace],
                "policy": {"placementType": "PickFixed", "clusterNames": names.collect::<Vec<_>>()},
                "strategy": {"type": "RollingUpdate",
                    "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}}})
    }
}

fn member_name(number: u32) -> String {
    format!("member-{number:04}")
}

impl Trial for PlacementRehearsal {
    fn loops(&self) -> Vec<Vec<&'static dyn Dialect>> {
        vec![vec![&HUB]]
    }

    fn begin(&mut self) -> Vec<Request> {
        let member = |number| {
            let name = member_name(number);
            let identity = json!({"kind": "User", "name": format!("agent-{name}")});
            let body = json!({"metadata": {"name": name, "labels": {"env": "prod"}},
                "spec": {"identity": identity, "heartbeatPeriodSeconds": 60}});
            Request::create(&format!("{CLUSTER_API}/memberclusters"), body)
        };
        let namespace = |number| {
            let body = json!({"metadata": {"name": format!("shop-{number:04}")}});
            Request::create("/api/v1/namespaces", body)
        };
        let path = format!("{PLACEMENT_API}/clusterresourceplacements");
        let members = (0..self.members).map(member);
        let namespaces = (0..self.placements).map(namespace);
        let placements =
            (0..self.placements).map(|number| Request::create(&path, self.placement(number)));
        members.chain(namespaces).chain(placements).collect()
    }

    fn act(&mut self, _random: &mut Random, _cluster: &mut Cluster) -> Vec<Request> {
        Vec::new()
    }

    fn end(&mut self, _cluster: &mut Cluster) -> Vec<Request> {
        Vec::new()
    }

    fn see(&mut self, record: &WriteRecord) -> Result<(), String> {
        let object = &record.object;
        let kind = object.kind();
        let condition = match kind {
            kind if *kind == PLACEMENT => "ClusterResourcePlacementAvailable",
            kind if *kind == BINDING => "Available",
            _ => "",
        };
        if !condition.is_empty() {
            let names = self.available.entry(kind.clone()).or_default();
            let is_current = |it: &&Value| it["observedGeneration"] == object.generation();
            let word = object.condition(condition).filter(is_current).map(|it| text(it, "status"));
            if !record.is_deletion() && word == Some("True") {
                names.insert(object.name().to_string());
            } else {
                names.remove(object.name().as_str());
            }
        }
        self.vigil.see(object, record.is_deletion(), record.hand(), record.at)
    }

    /// The agents of the members.
    fn react(
        &mut self,
        record: &WriteRecord,
        random: &mut Random,
    ) -> Vec<(SignedDuration, Request)> {
        let object = &record.object;
        if record.is_deletion() || record.by != Author::Controller {
            return Vec::new();
        }
        let request = match object.kind() {
            kind if *kind == WORK => applied(object, record.at),
            kind if *kind == INTERNAL => joined(object, record.at),
            _ => return Vec::new(),
        };
        vec![(random.millis(10, 500), request)]
    }

    fn rest(&mut self, _now: Timestamp) {
        self.vigil.rest();
    }

    fn is_complete(&self) -> Result<(), String> {
        let count = |kind: &GroupKind| {
            self.available.get(kind).map_or(0, std::collections::BTreeSet::len) as u64
        };
        let wanted = u64::from(self.placements) * u64::from(self.clusters.min(self.members));
        let (placements, bindings) = (count(&PLACEMENT), count(&BINDING));
        if placements == u64::from(self.placements) && bindings == wanted {
            return Ok(());
        }
        Err(format!("{placements} placements and {bindings} of {wanted} bindings are available"))
    }
}

/// A condition that a played agent writes about the newest spec of an object.
pub(super) fn fulfilled(object: &Object, kind: &str, reason: &str, now: Timestamp) -> Value {
    json!({"type": kind, "status": "True", "reason": reason, "message": "",
        "observedGeneration": object.generation(), "lastTransitionTime": stamp(now)})
}

/// An agent has applied a Work, and it works.
fn applied(work: &Object, now: Timestamp) -> Request {
    let conditions = json!([
        fulfilled(work, "Applied", "AllManifestsApplied", now),
        fulfilled(work, "Available", "AllManifestsAvailable", now)
    ]);
    let path =
        format!("{PLACEMENT_API}/namespaces/{}/works/{}/status", work.namespace(), work.name());
    Request::merge(&path, json!({"status": {"conditions": conditions}}))
}

/// An agent joins.
fn joined(internal: &Object, now: Timestamp) -> Request {
    let condition = |kind| fulfilled(internal, kind, kind, now);
    let agent = json!({"type": "MemberAgent", "lastReceivedHeartbeat": stamp(now),
        "conditions": [condition("Joined"), condition("Healthy")]});
    let (namespace, name) = (internal.namespace(), internal.name());
    let path = format!("{CLUSTER_API}/namespaces/{namespace}/internalmemberclusters/{name}/status");
    Request::merge(&path, json!({"status": {"agentStatus": [agent]}}))
}
