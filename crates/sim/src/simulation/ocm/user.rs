//! What people do to placements, to the replica set and to the clusters.

use convoy_api::ocm::names::{MANIFEST_WORK, PLACEMENT_DECISION};
use convoy_controllers::request::Request;
use http::Method;
use serde_json::{Value, json};

use super::OcmFleet;
use super::world::{
    CLUSTER_PATH, DECISION_PATH, PLACEMENT_PATH, PLACEMENTS, SET, SET_PATH, available, cluster,
    cluster_name, cluster_sets, group_strategy, labels, number, placement, predicates, references,
    replica_set, strategy,
};
use crate::kubelet::stamp;
use crate::simulation::cluster::path_in;
use crate::simulation::light::DENIAL;
use crate::simulation::random::Random;

impl OcmFleet {
    pub(super) fn user_action(&mut self, random: &mut Random) -> Option<Request> {
        if let Some(lost) = PLACEMENTS.iter().find(|name| self.placement(name).is_none()) {
            let body = placement(lost, self.clusters, random);
            return Some(Request::create(PLACEMENT_PATH, body));
        }
        if self.set().is_none() {
            let template = self.release("good", random);
            return Some(Request::create(SET_PATH, replica_set(template, random)));
        }
        match random.between(0, 22) {
            0..=4 => {
                let kind = random.pick(&["good", "good", "good", "bad", "bad", "slow"])?;
                let template = self.release(kind, random);
                Some(released(&template))
            }
            5..=7 => self.change_strategy(random),
            8..=12 => self.change_placement(random),
            13..=14 => Some(self.relabel(random)),
            15 => self.taint(random),
            16 => self.change_availability(random),
            17 => Some(self.deny(random)),
            22 => Some(self.leave(random)),
            18 if random.happens(250) => Some(Request::delete(format!("{SET_PATH}/{SET}"))),
            18 if random.happens(300) => {
                let name = random.pick(&PLACEMENTS)?;
                Some(Request::delete(format!("{PLACEMENT_PATH}/{name}")))
            }
            _ => self.meddle(random),
        }
    }

    /// Another strategy, or other placements.
    fn change_strategy(&self, random: &mut Random) -> Option<Request> {
        let mut refs = self.set()?.spec().get("placementRefs")?.clone();
        if random.happens(300) {
            refs = references(random);
        } else {
            refs[0]["rolloutStrategy"] = strategy(random);
        }
        Some(of_set(json!({"placementRefs": refs})))
    }

    fn change_placement(&self, random: &mut Random) -> Option<Request> {
        let name = random.pick(&["web", "web", "web", "edge"])?;
        let spec = match random.between(0, 5) {
            0 => json!({"numberOfClusters": number(self.clusters, random)}),
            1 => json!({"numberOfClusters": null}),
            2 => json!({"predicates": predicates(random)}),
            3 => json!({"clusterSets": cluster_sets(random)}),
            _ => json!({"decisionStrategy": {"groupStrategy": group_strategy(random)}}),
        };
        let path = format!("{PLACEMENT_PATH}/{name}");
        Some(Request::merge(&path, json!({"spec": spec})))
    }

    fn any_cluster(&self, random: &mut Random) -> String {
        let number = random.between(1, i64::from(self.clusters));
        cluster_name(u32::try_from(number).unwrap_or(1))
    }

    fn relabel(&self, random: &mut Random) -> Request {
        let path = format!("{CLUSTER_PATH}/{}", self.any_cluster(random));
        Request::merge(&path, json!({"metadata": {"labels": labels(random)}}))
    }

    /// Taints of people come and go; those of the hub stay.
    fn taint(&self, random: &mut Random) -> Option<Request> {
        let name = self.any_cluster(random);
        let cluster = self.cluster(&name)?;
        let mut taints = without_taint(cluster.spec().get("taints").unwrap_or(&Value::Null));
        if random.happens(600) {
            let effect = random.pick(&["NoSelect", "NoSelectIfNew", "PreferNoSelect"])?;
            taints.push(json!({"key": "away", "effect": effect, "timeAdded": stamp(self.now)}));
        }
        let version = cluster.resource_version();
        let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": taints}});
        Some(Request::merge(&format!("{CLUSTER_PATH}/{name}"), patch))
    }

    fn change_availability(&self, random: &mut Random) -> Option<Request> {
        let cluster = self.cluster(&self.any_cluster(random))?;
        cluster.condition("ManagedClusterConditionAvailable")?;
        let word = random.pick(&["True", "True", "False", "Unknown"])?;
        Some(available(cluster, word, self.now))
    }

    /// A cluster leaves, joins again, or is accepted no longer.
    fn leave(&self, random: &mut Random) -> Request {
        let name = self.any_cluster(random);
        let path = format!("{CLUSTER_PATH}/{name}");
        if self.cluster(&name).is_none() {
            return Request::create(CLUSTER_PATH, cluster(&name, random));
        }
        if random.happens(400) {
            return Request::delete(path);
        }
        let is_accepted = random.happens(500);
        Request::merge(&path, json!({"spec": {"hubAcceptsClient": is_accepted}}))
    }

    /// A cluster denies writes, or does so no longer.
    fn deny(&self, random: &mut Random) -> Request {
        let path = path_in(&self.any_cluster(random), "/api/v1/namespaces");
        if random.happens(500) {
            return Request::delete(format!("{path}/{DENIAL}"));
        }
        Request::create(&path, json!({"metadata": {"name": DENIAL}}))
    }

    /// Somebody edits or deletes what was placed, a work or a decision.
    fn meddle(&self, random: &mut Random) -> Option<Request> {
        let front = "/apis/apps/v1/namespaces/shop/deployments/front";
        let front = path_in(&self.any_cluster(random), front);
        match random.between(0, 3) {
            0 => Some(Request::merge(&front, json!({"spec": {"replicas": random.between(1, 5)}}))),
            1 => Some(Request::delete(front)),
            2 => {
                let works: Vec<_> = self.of(MANIFEST_WORK).collect();
                let work = random.pick(&works)?;
                let (cluster, name) = (work.namespace(), work.name());
                let path = "/apis/work.open-cluster-management.io/v1/namespaces";
                Some(Request::delete(format!("{path}/{cluster}/manifestworks/{name}")))
            }
            _ => {
                let decisions: Vec<_> = self.of(PLACEMENT_DECISION).collect();
                let name = random.pick(&decisions)?.name();
                Some(Request::delete(format!("{DECISION_PATH}/{name}")))
            }
        }
    }
}

/// The taints that people have not put there.
pub(super) fn without_taint(taints: &Value) -> Vec<Value> {
    let taints = taints.as_array().into_iter().flatten();
    taints.filter(|taint| taint["key"] != "away").cloned().collect()
}

/// Another template. A merge would keep what the former one had beside it.
pub(super) fn released(template: &Value) -> Request {
    let body = json!([{"op": "add", "path": "/spec/manifestWorkTemplate", "value": template}]);
    let path = format!("{SET_PATH}/{SET}");
    Request { method: Method::PATCH, path, content_type: "application/json-patch+json", body }
}

pub(super) fn of_set(spec: Value) -> Request {
    Request::merge(&format!("{SET_PATH}/{SET}"), json!({"spec": spec}))
}
