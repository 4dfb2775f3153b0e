//! A replica set rehearsed: the hub of a fleet of any size registers its clusters, cuts them into
//! decision groups and rolls a template through them, in virtual time and with nothing in its way.
//! The agents of the clusters are played: they register, apply and report at once.

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::ocm::names::{
    CLUSTER_SET_LABEL, MANAGED_CLUSTER, MANIFEST_WORK, MANIFEST_WORK_REPLICA_SET, PLACEMENT,
};
use convoy_check::ReplicaSets;
use convoy_controllers::request::Request;
use convoy_plan::Dialect;
use convoy_plan::dialect::ocm::{Hub, HubControllers};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::cluster::{Author, Cluster, WriteRecord};
use super::ocm::world::{CLUSTER_PATH, PLACEMENT_PATH, SET_PATH, hub_requests, registered};
use super::placements::fulfilled;
use super::random::Random;
use super::{LoopBehaviour, RunSettings, Trial};

static HUB: Hub = Hub { parts: HubControllers::ALL };

/// A hub with so many clusters.
#[derive(Debug)]
pub struct ReplicaSetRehearsal {
    clusters: u32,
    vigil: ReplicaSets,
    /// Clusters whose work is applied, by the generation of the work.
    applied: BTreeMap<String, i64>,
    /// Clusters that are selected, as the placement says.
    selected: u64,
    is_rolled_out: bool,
}

impl ReplicaSetRehearsal {
    pub fn new(clusters: u32) -> (Self, RunSettings) {
        let trial = Self {
            clusters,
            vigil: ReplicaSets::default(),
            applied: BTreeMap::new(),
            selected: 0,
            is_rolled_out: false,
        };
        let behaviour =
            LoopBehaviour { reaction_delay: SignedDuration::from_secs(1), batches_events: true };
        let settings = RunSettings { behaviour, ..RunSettings::undisturbed() };
        (trial, settings)
    }
}

impl Trial for ReplicaSetRehearsal {
    fn loops(&self) -> Vec<Vec<&'static dyn Dialect>> {
        vec![vec![&HUB]]
    }

    fn begin(&mut self) -> Vec<Request> {
        let mut requests = hub_requests();
        for number in 0..self.clusters {
            let tier = if number.is_multiple_of(50) { "canary" } else { "prod" };
            let labels = json!({"tier": tier,
                (CLUSTER_SET_LABEL): "default"});
            let body = json!({"metadata": {"name": format!("cluster-{number:05}"), "labels": labels},
                "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": 86_400}});
            requests.push(Request::create(CLUSTER_PATH, body));
        }
        let canary = json!({"groupName": "canary", "groupClusterSelector":
            {"labelSelector": {"matchLabels": {"tier": "canary"}}}});
        let groups = json!({"clustersPerDecisionGroup": 150, "decisionGroups": [canary]});
        let body = json!({"metadata": {"name": "web"},
            "spec": {"decisionStrategy": {"groupStrategy": groups}}});
        requests.push(Request::create(PLACEMENT_PATH, body));
        let strategy = json!({"type": "Progressive", "progressive": {"maxConcurrency": "10%",
            "mandatoryDecisionGroups": [{"groupName": "canary"}]}});
        let settings = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": "default"}, "data": {"version": "1"}});
        let body = json!({"metadata": {"name": "web"}, "spec": {
            "placementRefs": [{"name": "web", "rolloutStrategy": strategy}],
            "manifestWorkTemplate": {"workload": {"manifests": [settings]}}}});
        requests.push(Request::create(SET_PATH, body));
        requests
    }

    fn act(&mut self, _random: &mut Random, _cluster: &mut Cluster) -> Vec<Request> {
        Vec::new()
    }

    fn end(&mut self, _cluster: &mut Cluster) -> Vec<Request> {
        Vec::new()
    }

    fn see(&mut self, record: &WriteRecord) -> Result<(), String> {
        let object = &record.object;
        match object.kind() {
            kind if *kind == MANIFEST_WORK => {
                let cluster = object.namespace().to_string();
                let told =
                    object.condition("Applied").and_then(|it| it["observedGeneration"].as_i64());
                if told == Some(object.generation()) {
                    self.applied.insert(cluster, object.generation());
                }
            }
            kind if *kind == PLACEMENT => {
                let selected = object.status_member("numberOfSelectedClusters");
                self.selected = selected.and_then(serde_json::Value::as_u64).unwrap_or(0);
            }
            kind if *kind == MANIFEST_WORK_REPLICA_SET => {
                let word = object.condition_status("PlacementRolledOut");
                self.is_rolled_out = word == Some("True");
            }
            _ => {}
        }
        self.vigil.see(object, record.is_deletion(), record.hand(), record.at)
    }

    /// The agents of the clusters.
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
            kind if *kind == MANIFEST_WORK => Some(applied(object, record.at)),
            kind if *kind == MANAGED_CLUSTER => registered(object, record.at),
            _ => None,
        };
        request.map(|it| (random.millis(10, 500), it)).into_iter().collect()
    }

    fn rest(&mut self, _now: Timestamp) {}

    fn is_complete(&self) -> Result<(), String> {
        let wanted = u64::from(self.clusters);
        if self.is_rolled_out && self.selected == wanted && self.applied.len() as u64 == wanted {
            return Ok(());
        }
        let (applied, selected) = (self.applied.len(), self.selected);
        Err(format!(
            "{applied} of {selected} selected clusters have the template, {wanted} are there"
        ))
    }
}

/// An agent has applied a work, and it works.
fn applied(work: &Object, now: Timestamp) -> Request {
    let path = format!(
        "/apis/work.open-cluster-management.io/v1/namespaces/{}/manifestworks/{}/status",
        work.namespace(),
        work.name()
    );
    let conditions = json!(["Applied", "Available"].map(|kind| fulfilled(work, kind, kind, now)));
    Request::merge(&path, json!({"status": {"conditions": conditions}}))
}
