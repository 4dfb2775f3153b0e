//! The objects of a trial: managed clusters, cluster sets, placements and a replica set.

use convoy_api::Object;
use convoy_api::object::member::{list, text};
use convoy_api::ocm::names::{CLUSTER_SET_LABEL, PLACEMENT_NAME_LABEL};
use convoy_controllers::request::Request;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::fleets::world::image_of;
use crate::kubelet::stamp;
use crate::simulation::random::Random;

pub(super) const CLUSTERS_MAX: u32 = 4;
pub(super) const NAMESPACE: &str = "apps";
/// The replica set.
pub(super) const SET: &str = "web";
/// The placement that it always refers to, and the one that it sometimes does.
pub(super) const PLACEMENTS: [&str; 2] = ["web", "edge"];

pub(in crate::simulation) const CLUSTER_PATH: &str =
    "/apis/cluster.open-cluster-management.io/v1/managedclusters";
pub(in crate::simulation) const SET_PATH: &str =
    "/apis/work.open-cluster-management.io/v1alpha1/namespaces/apps/manifestworkreplicasets";
pub(in crate::simulation) const PLACEMENT_PATH: &str =
    "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/apps/placements";
pub(super) const DECISION_PATH: &str =
    "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/apps/placementdecisions";
const CLUSTER_SET_PATH: &str =
    "/apis/cluster.open-cluster-management.io/v1beta2/managedclustersets";
const BINDING_PATH: &str =
    "/apis/cluster.open-cluster-management.io/v1beta2/namespaces/apps/managedclustersetbindings";
const DEFINITION_PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(super) fn cluster_name(number: u32) -> String {
    format!("cluster-{number}")
}

/// The definition that built-in sets wait for, and the sets that placements may use.
pub(in crate::simulation) fn hub_requests() -> Vec<Request> {
    let definition = "managedclustersets.cluster.open-cluster-management.io";
    let established = json!({"conditions": [{"type": "Established", "status": "True"}]});
    let exclusive = json!({"selectorType": "ExclusiveClusterSetLabel"});
    let mut requests = vec![
        Request::create(DEFINITION_PATH, json!({"metadata": {"name": definition}})),
        Request::merge(
            &format!("{DEFINITION_PATH}/{definition}/status"),
            json!({"status": established}),
        ),
        Request::create(
            CLUSTER_SET_PATH,
            json!({"metadata": {"name": "team"}, "spec": {"clusterSelector": exclusive}}),
        ),
    ];
    for set in ["team", "global"] {
        let body = json!({"metadata": {"name": set}, "spec": {"clusterSet": set}});
        requests.push(Request::create(BINDING_PATH, body));
    }
    requests
}

/// What a trial begins with.
pub(super) fn requests(clusters: u32, random: &mut Random) -> Vec<Request> {
    let mut requests = hub_requests();
    for number in 1..=clusters {
        requests.push(Request::create(CLUSTER_PATH, cluster(&cluster_name(number), random)));
    }
    for name in PLACEMENTS {
        requests.push(Request::create(PLACEMENT_PATH, placement(name, clusters, random)));
    }
    requests.push(Request::create(SET_PATH, replica_set(template("good-1", random), random)));
    requests
}

pub(super) fn cluster(name: &str, random: &mut Random) -> Value {
    json!({"metadata": {"name": name, "labels": labels(random)},
        "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": 86_400}})
}

pub(super) fn labels(random: &mut Random) -> Value {
    let region = random.pick(&["west", "east"]).unwrap_or(&"west");
    let tier = random.pick(&["canary", "prod", "prod"]).unwrap_or(&"prod");
    let set = random.pick(&["team", "team", "default"]).unwrap_or(&"team");
    json!({"region": region, "tier": tier, (CLUSTER_SET_LABEL): set})
}

pub(super) fn placement(name: &str, clusters: u32, random: &mut Random) -> Value {
    let mut spec = json!({"clusterSets": cluster_sets(random), "predicates": predicates(random),
        "decisionStrategy": {"groupStrategy": group_strategy(random)}});
    if random.happens(300) {
        spec["numberOfClusters"] = number(clusters, random);
    }
    if random.happens(300) {
        spec["tolerations"] =
            json!([{"key": "away", "operator": "Exists", "tolerationSeconds": 15}]);
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

pub(super) fn number(clusters: u32, random: &mut Random) -> Value {
    json!(random.between(0, i64::from(clusters)))
}

pub(super) fn cluster_sets(random: &mut Random) -> Value {
    let sets: [&[&str]; 4] = [&[], &[], &["global"], &["team"]];
    json!(random.pick(&sets).unwrap_or(&sets[0]))
}

/// Clusters of one region, or of any.
pub(super) fn predicates(random: &mut Random) -> Value {
    let region = *random.pick(&["", "", "west", "east"]).unwrap_or(&"");
    if region.is_empty() {
        return json!([]);
    }
    let selector = if random.happens(300) {
        let expression = format!("managedCluster.metadata.labels['region'] == '{region}'");
        json!({"celSelector": {"celExpressions": [expression]}})
    } else {
        json!({"labelSelector": {"matchLabels": {"region": region}}})
    };
    json!([{"requiredClusterSelector": selector}])
}

pub(super) fn group_strategy(random: &mut Random) -> Value {
    let group = |name: &str, label: &str, value: &str| {
        let selector = json!({"labelSelector": {"matchLabels": {label: value}}});
        json!({"groupName": name, "groupClusterSelector": selector})
    };
    let mut groups = Vec::new();
    if random.happens(500) {
        groups.push(group("canary", "tier", "canary"));
    }
    if random.happens(300) {
        groups.push(group("west", "region", "west"));
    }
    let per_group = match random.between(0, 4) {
        0 => json!("100%"),
        1 => json!("50%"),
        2 => json!("25%"),
        more => json!(more - 2),
    };
    json!({"clustersPerDecisionGroup": per_group, "decisionGroups": groups})
}

pub(super) fn replica_set(template: Value, random: &mut Random) -> Value {
    let policy = random.pick(&["Background", "Foreground"]).unwrap_or(&"Background");
    json!({"metadata": {"name": SET}, "spec": {"cascadeDeletionPolicy": policy,
        "placementRefs": references(random), "manifestWorkTemplate": template}})
}

pub(super) fn references(random: &mut Random) -> Value {
    let count = if random.happens(250) { 2 } else { 1 };
    let names = PLACEMENTS.iter().take(count);
    let references: Vec<Value> =
        names.map(|name| json!({"name": name, "rolloutStrategy": strategy(random)})).collect();
    json!(references)
}

pub(super) fn strategy(random: &mut Random) -> Value {
    let mut block = json!({});
    if random.happens(300) {
        block["progressDeadline"] = json!(format!("{}s", random.between(0, 30)));
    } else if random.happens(200) {
        block["timeout"] = json!(format!("{}s", random.between(1, 30)));
    }
    if random.happens(300) {
        block["minSuccessTime"] = json!(format!("{}s", random.between(1, 20)));
    }
    if random.happens(300) {
        block["maxFailures"] =
            random.pick(&[json!(0), json!(1), json!("50%")]).cloned().unwrap_or_default();
    }
    match random.between(0, 9) {
        0 => json!({"type": "All", "all": block}),
        1..=5 => {
            if random.happens(800) {
                let sizes = [json!(0), json!(1), json!(1), json!(2), json!("25%"), json!("50%")];
                block["maxConcurrency"] = random.pick(&sizes).cloned().unwrap_or_default();
            }
            block["mandatoryDecisionGroups"] = mandatory(random);
            json!({"type": "Progressive", "progressive": block})
        }
        _ => {
            block["mandatoryDecisionGroups"] = mandatory(random);
            json!({"type": "ProgressivePerGroup", "progressivePerGroup": block})
        }
    }
}

fn mandatory(random: &mut Random) -> Value {
    let index = json!({"groupIndex": random.between(0, 2)});
    match random.between(0, 5) {
        0..=2 => json!([]),
        3 => json!([{"groupName": "canary"}]),
        4 => json!([index]),
        _ => json!([{"groupName": "west"}, index]),
    }
}

/// A workload that reports how far it is; some say only that it is there.
pub(super) fn template(image: &str, random: &mut Random) -> Value {
    let shop = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    let front = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "front", "namespace": "shop"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "front"}},
            "template": {"metadata": {"labels": {"app": "front"}},
                "spec": {"containers": [{"name": "app", "image": image}]}}}});
    let mut template = json!({"workload": {"manifests": [shop, front]}});
    if random.happens(100) {
        return template;
    }
    let mut rules = vec![json!({"condition": "Progressing", "type": "CEL", "celExpressions": [
        "!has(object.status) || !has(object.status.observedGeneration) || \
         object.status.observedGeneration < object.metadata.generation || \
         object.status.availableReplicas < object.spec.replicas"]})];
    if random.happens(500) {
        rules.push(json!({"condition": "Degraded", "type": "CEL", "celExpressions": [
            "object.spec.template.spec.containers[0].image.startsWith('bad')"]}));
    }
    template["manifestConfigs"] = json!([{"resourceIdentifier": {"group": "apps",
        "resource": "deployments", "namespace": "shop", "name": "front"}, "conditionRules": rules}]);
    template
}

/// What the registration agent of a cluster that was accepted does.
pub(in crate::simulation) fn registered(cluster: &Object, now: Timestamp) -> Option<Request> {
    let is_accepted = cluster.condition_status("HubAcceptedManagedCluster") == Some("True");
    let is_known = cluster.condition("ManagedClusterConditionAvailable").is_some();
    let is_due = is_accepted && !is_known && !cluster.is_deleting();
    is_due.then(|| available(cluster, "True", now))
}

/// A cluster says whether it is available.
pub(super) fn available(cluster: &Object, word: &str, now: Timestamp) -> Request {
    let kind = "ManagedClusterConditionAvailable";
    let mut conditions = list(cluster.status(), "conditions").to_vec();
    conditions.retain(|it| text(it, "type") != kind);
    conditions.push(json!({"type": kind, "status": word, "reason": "ManagedClusterAvailable",
        "message": "", "lastTransitionTime": stamp(now)}));
    let patch = json!({"metadata": {"resourceVersion": cluster.resource_version()},
        "status": {"conditions": conditions}});
    Request::merge(&format!("{CLUSTER_PATH}/{}/status", cluster.name()), patch)
}

/// What matters of an object, for people who look for a fault.
pub(in crate::simulation) fn summary(object: &Object) -> String {
    let spec = object.spec();
    let going = if object.is_deleting() { " going" } else { "" };
    let conditions = list(object.status(), "conditions").iter();
    let told: Vec<String> = conditions
        .map(|it| {
            let word = |field| text(it, field);
            let message = if word("type").ends_with("Refused") { word("message") } else { "" };
            format!("{}={}{message}@{}", word("type"), word("status"), it["observedGeneration"])
        })
        .collect();
    let told = told.join(" ");
    let image = |template: &Value| {
        let manifests = template.pointer("/workload/manifests/1");
        manifests.map_or_else(String::new, |it| image_of(it).to_owned())
    };
    let generation = object.generation();
    match object.kind().kind.as_str() {
        "ManifestWork" => {
            let placement = object.label(PLACEMENT_NAME_LABEL);
            let placement = placement.unwrap_or_default();
            format!(" {} for {placement}{going} g{generation} [{told}]", image(spec))
        }
        "ManifestWorkReplicaSet" => {
            let template = image(&spec["manifestWorkTemplate"]);
            format!(" {template} {}{going} g{generation} [{told}]", spec["placementRefs"])
        }
        "Placement" => format!(" {spec}{going} {}", object.status()["decisionGroups"]),
        "PlacementDecision" => {
            let label = |name: &str| {
                let key = format!("cluster.open-cluster-management.io/decision-group-{name}");
                object.label(&key).unwrap_or_default().to_owned()
            };
            let names = list(object.status(), "decisions").iter();
            let names: Vec<&str> = names.map(|it| text(it, "clusterName")).collect();
            format!(" {}{} {names:?}{going}", label("index"), label("name"))
        }
        "ManagedCluster" => {
            let (labels, taints) = (&object.metadata()["labels"], &spec["taints"]);
            format!(" {labels} {taints}{going} [{told}]")
        }
        _ => format!("{going} [{told}]"),
    }
}
