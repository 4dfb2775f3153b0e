//! The objects of a trial: members, a workload, a placement, and how workloads come to run.

use convoy_api::Object;
use convoy_api::kinds::DEPLOYMENT;
use convoy_api::object::member::text;
use convoy_controllers::request::Request;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::path_in;
use crate::simulation::cluster::WriteRecord;
use crate::simulation::random::Random;

pub(super) const MEMBERS_MAX: u32 = 4;
pub(super) const NAME: &str = "web";
pub(super) const PLACEMENTS: &str =
    "/apis/placement.kubernetes-fleet.io/v1beta1/clusterresourceplacements";
pub(super) const EVICTIONS: &str =
    "/apis/placement.kubernetes-fleet.io/v1beta1/clusterresourceplacementevictions";
pub(super) const BUDGETS: &str =
    "/apis/placement.kubernetes-fleet.io/v1beta1/clusterresourceplacementdisruptionbudgets";
pub(super) const MEMBERS: &str = "/apis/cluster.kubernetes-fleet.io/v1beta1/memberclusters";
pub(super) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/shop/deployments";
pub(super) const HUB_DEPLOYMENT: &str = "/apis/apps/v1/namespaces/shop/deployments/front";

pub(super) fn member_name(number: u32) -> String {
    format!("member-{number}")
}

pub(super) fn member(name: &str, region: &str) -> Value {
    let identity = json!({"kind": "User", "name": format!("agent-{name}")});
    json!({"apiVersion": "cluster.kubernetes-fleet.io/v1beta1", "kind": "MemberCluster",
        "metadata": {"name": name, "labels": {"region": region}},
        "spec": {"identity": identity, "heartbeatPeriodSeconds": 200}})
}

/// What a trial begins with, with the collection of each object.
pub(super) fn objects(members: u32, random: &mut Random) -> Vec<(&'static str, Value)> {
    let mut objects: Vec<(&str, Value)> = (1..=members)
        .map(|number| {
            let region = random.pick(&["west", "east"]).unwrap_or(&"west");
            (MEMBERS, member(&member_name(number), region))
        })
        .collect();
    let shop = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    let container = json!({"name": "app", "image": "good-1"});
    let front = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "front", "namespace": "shop"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "front"}},
            "template": {"metadata": {"labels": {"app": "front"}},
                "spec": {"containers": [container]}}}});
    objects.push(("/api/v1/namespaces", shop));
    objects.push((DEPLOYMENTS, front));
    if random.happens(200) {
        // Nobody can tell whether it works.
        let service = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "mail", "namespace": "shop"},
            "spec": {"type": "ExternalName", "externalName": "mail.example"}});
        objects.push(("/api/v1/namespaces/shop/services", service));
    }
    objects.push((PLACEMENTS, placement(members, random)));
    objects
}

pub(super) fn placement(members: u32, random: &mut Random) -> Value {
    let namespace = json!({"group": "", "version": "v1", "kind": "Namespace", "name": "shop"});
    let policy = match random.between(0, 9) {
        0..=2 => json!({"placementType": "PickAll", "affinity": affinity(random)}),
        3..=4 => json!({"placementType": "PickFixed", "clusterNames": names(members, random)}),
        _ => json!({"placementType": "PickN", "numberOfClusters": number(members, random),
            "affinity": affinity(random)}),
    };
    json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
        "kind": "ClusterResourcePlacement", "metadata": {"name": NAME},
        "spec": {"resourceSelectors": [namespace], "policy": policy,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": limits(random)}}})
}

pub(super) fn limits(random: &mut Random) -> Value {
    let mut share = || match random.between(0, 2) {
        0 => json!(format!("{}%", random.between(0, 4) * 25)),
        _ => json!(random.between(0, 2)),
    };
    let (unavailable, surge) = (share(), share());
    json!({"maxUnavailable": unavailable, "maxSurge": surge,
        "unavailablePeriodSeconds": random.between(0, 20)})
}

/// Clusters of one region, or of any.
pub(super) fn affinity(random: &mut Random) -> Value {
    let Some(region) = random.pick(&["west", "east", ""]).filter(|region| !region.is_empty())
    else {
        return json!({});
    };
    let terms = json!([{"labelSelector": {"matchLabels": {"region": region}}}]);
    json!({"clusterAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"clusterSelectorTerms": terms}}})
}

pub(super) fn names(members: u32, random: &mut Random) -> Vec<String> {
    let all: Vec<String> = (1..=members).map(member_name).collect();
    let mut picked: Vec<String> = all.iter().filter(|_| random.happens(500)).cloned().collect();
    if picked.is_empty() {
        picked.extend(random.pick(&all).cloned());
    }
    picked
}

pub(super) fn number(members: u32, random: &mut Random) -> i64 {
    let least = i64::from(random.happens(900));
    random.between(least, i64::from(members))
}

pub(in crate::simulation) fn image_of(deployment: &Value) -> &str {
    let container = deployment.pointer("/spec/template/spec/containers/0");
    container.map_or("", |container| text(container, "image"))
}

/// What the controllers of a member make of a write of a Deployment: a new one runs after a while,
/// unless its image is bad.
pub(in crate::simulation) fn workload(
    record: &WriteRecord,
    random: &mut Random,
) -> Vec<(SignedDuration, Request)> {
    let deployment = &record.object;
    let key = deployment.key();
    let is_new = key.kind == DEPLOYMENT
        && !key.cluster.is_empty()
        && !record.is_deletion()
        && deployment.status().get("observedGeneration") != Some(&json!(deployment.generation()));
    if !is_new {
        return Vec::new();
    }
    let path =
        format!("/apis/apps/v1/namespaces/{}/deployments/{}/status", key.namespace, key.name);
    let path = path_in(&key.cluster, &path);
    let replicas = deployment.spec().get("replicas").and_then(Value::as_i64).unwrap_or(1);
    let status = |available: i64| {
        let status = json!({"observedGeneration": deployment.generation(),
            "availableReplicas": available, "updatedReplicas": replicas,
            "unavailableReplicas": replicas - available});
        Request::merge(&path, json!({"metadata": {"uid": deployment.uid()}, "status": status}))
    };
    let seen = random.millis(0, 500);
    let mut requests = vec![(seen, status(0))];
    let image = image_of(deployment.raw());
    let runs = |delay| (seen.saturating_add(delay), status(replicas));
    if image.starts_with("slow") {
        requests.push(runs(random.millis(5_000, 40_000)));
    } else if image.starts_with("good") {
        requests.push(runs(random.millis(0, 4_000)));
    }
    requests
}

/// What matters of an object, for people who look for a fault.
pub(in crate::simulation) fn summary(object: &Object) -> String {
    let spec = object.spec();
    let going = if object.is_deleting() { " going" } else { "" };
    let conditions = object.status().get("conditions").and_then(Value::as_array);
    let told: Vec<String> = conditions
        .into_iter()
        .flatten()
        .map(|it| {
            let word = |field| text(it, field);
            let kind = word("type").trim_start_matches("ClusterResourcePlacement");
            format!("{kind}={}/{}@{}", word("status"), word("reason"), it["observedGeneration"])
        })
        .collect();
    let told = told.join(" ");
    let generation = object.generation();
    match object.kind().kind.as_str() {
        "ClusterResourceBinding" => {
            let word = |field| text(spec, field);
            let (state, snapshot) = (word("state"), word("resourceSnapshotName"));
            format!(" {state} {snapshot}{going} g{generation} [{told}]")
        }
        "ClusterResourcePlacement" => {
            let (policy, rolling) = (&spec["policy"], &spec["strategy"]);
            format!(" {policy} {rolling}{going} g{generation} [{told}]")
        }
        "ClusterStagedUpdateRun" => {
            let index = text(object.status(), "resourceSnapshotIndexUsed");
            let failed = ["Initialized", "Succeeded"]
                .into_iter()
                .find_map(|kind| object.condition(kind).filter(|it| text(it, "status") == "False"));
            let why = failed.map_or("", |it| text(it, "message"));
            format!(" {} index {index}{going} g{generation} [{told}] {why}", text(spec, "state"))
        }
        "ClusterResourcePlacementEviction" => format!(" {spec} [{told}]"),
        "Work" => format!("{going} g{generation} [{told}]"),
        "Deployment" if !object.key().cluster.is_empty() => {
            format!(" {}{going}", image_of(object.raw()))
        }
        _ => going.to_owned(),
    }
}
