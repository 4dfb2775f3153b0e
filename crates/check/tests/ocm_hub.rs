//! The controllers of an Open Cluster Management hub: clusters that register, fall silent and
//! leave, cluster sets, and a replica set on its way through a placement's decisions.

#[path = "common/site.rs"]
mod site;

use convoy_api::kinds::{CLUSTER_ROLE, LEASE, NAMESPACE, ROLE_BINDING};
use convoy_api::ocm::names::{
    MANAGED_CLUSTER, MANAGED_CLUSTER_SET, MANAGED_CLUSTER_SET_BINDING, MANIFEST_WORK,
    MANIFEST_WORK_REPLICA_SET, PLACEMENT, PLACEMENT_DECISION,
};
use convoy_api::{Object, ObjectKey};
use convoy_plan::Dialect;
use convoy_plan::dialect::ocm::{Hub, HubControllers};
use convoy_plan::dialect::ocm_agent::OcmAgent;
use convoy_testkit::{NOW, object};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

const CLUSTER_API: &str = "cluster.open-cluster-management.io/v1";
const PLACEMENT_API: &str = "cluster.open-cluster-management.io/v1beta1";
const SET_API: &str = "cluster.open-cluster-management.io/v1beta2";
const WORK_API: &str = "work.open-cluster-management.io/v1";

type Site = site::Site<OcmAgent>;

impl Site {
    fn new(parts: HubControllers, objects: Vec<Object>) -> Self {
        let established = json!({"conditions": [{"type": "Established", "status": "True"}]});
        let name = "managedclustersets.cluster.open-cluster-management.io";
        let definition = object("apiextensions.k8s.io/v1", "CustomResourceDefinition", name);
        let definition = definition.with("/status", established).build();
        Self::with(objects.into_iter().chain([definition]).collect(), Some(hub(parts)), Vec::new())
    }

    fn cluster(&self) -> &Object {
        self.get(&MANAGED_CLUSTER.key("", "eu"))
    }

    fn taints(&self) -> Vec<String> {
        let taints = self.cluster().spec()["taints"].as_array().cloned().unwrap_or_default();
        taints.iter().map(|taint| taint["key"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// What the registration agent of a cluster does.
    fn report(&mut self, available: &str) {
        let now = self.applier.now();
        self.edit(&LEASE.key("eu", "managed-cluster-lease"), |raw| {
            raw["spec"]["renewTime"] = json!(now.to_string());
        });
        self.edit(&MANAGED_CLUSTER.key("", "eu"), |raw| {
            let conditions = raw["status"]["conditions"].as_array_mut().expect("it was accepted");
            conditions.retain(|it| it["type"] != "ManagedClusterConditionAvailable");
            conditions.push(json!({"type": "ManagedClusterConditionAvailable",
                "status": available, "reason": "ManagedClusterAvailable", "message": "",
                "lastTransitionTime": NOW}));
        });
    }
}

fn hub(parts: HubControllers) -> Box<dyn Dialect> {
    Box::new(Hub { parts })
}

fn cluster(accepted: bool) -> Object {
    let spec = json!({"hubAcceptsClient": accepted, "leaseDurationSeconds": 60});
    object(CLUSTER_API, "ManagedCluster", "eu").spec(spec).build()
}

fn after(site: &Site, secs: i64) -> Timestamp {
    site.applier.now() + SignedDuration::from_secs(secs)
}

#[test]
fn an_accepted_cluster_gets_its_place_on_the_hub() {
    let mut site = Site::new(HubControllers::ALL, vec![cluster(false)]);
    site.settle();
    assert!(site.applier.world().find(&NAMESPACE, "", "eu").is_none(), "nobody accepted it");
    assert_eq!(site.cluster().condition_status("HubAcceptedManagedCluster"), None);
    site.edit(&MANAGED_CLUSTER.key("", "eu"), |raw| raw["spec"]["hubAcceptsClient"] = json!(true));
    site.settle();
    assert_eq!(site.cluster().condition_status("HubAcceptedManagedCluster"), Some("True"));
    let namespace = site.get(&NAMESPACE.key("", "eu"));
    assert_eq!(namespace.label("open-cluster-management.io/cluster-name"), Some("eu"));
    site.get(&LEASE.key("eu", "managed-cluster-lease"));
    let name = "open-cluster-management:managedcluster:eu";
    assert_eq!(site.get(&CLUSTER_ROLE.key("", name)).raw()["rules"].as_array().unwrap().len(), 4);
    site.get(&ROLE_BINDING.key("eu", &format!("{name}:work")));
    // Denied again: it may see itself, and no longer write.
    site.edit(&MANAGED_CLUSTER.key("", "eu"), |raw| raw["spec"]["hubAcceptsClient"] = json!(false));
    site.settle();
    assert_eq!(site.cluster().condition_status("HubAcceptedManagedCluster"), Some("False"));
    assert_eq!(site.get(&CLUSTER_ROLE.key("", name)).raw()["rules"].as_array().unwrap().len(), 1);
    assert_eq!(site.applier.world().in_namespace(&ROLE_BINDING, "eu").count(), 0);
}

#[test]
fn a_silent_cluster_is_unknown_and_tainted_at_the_exact_instant() {
    let mut site = Site::new(HubControllers::ALL, vec![cluster(true)]);
    site.settle();
    assert_eq!(site.taints(), ["cluster.open-cluster-management.io/unreachable"]);
    site.report("True");
    site.settle();
    assert_eq!(site.taints(), [] as [&str; 0]);
    let clock = "ManagedClusterConditionClockSynced";
    assert_eq!(site.cluster().condition_status(clock), Some("True"));
    let wake = site.steps().iter().filter_map(|step| step.wake_at).min();
    assert_eq!(wake, Some(after(&site, 300)), "five times its lease duration");
    let before = site.applier.now() + SignedDuration::from_millis(299_999);
    site.applier.advance_to(before);
    site.settle();
    let available = "ManagedClusterConditionAvailable";
    assert_eq!(site.cluster().condition_status(available), Some("True"));
    site.applier.advance_to(wake.unwrap());
    site.settle();
    assert_eq!(site.cluster().condition_status(available), Some("Unknown"));
    assert_eq!(site.taints(), ["cluster.open-cluster-management.io/unreachable"]);
    site.report("False");
    site.settle();
    assert_eq!(site.taints(), ["cluster.open-cluster-management.io/unavailable"]);
}

#[test]
fn taints_of_others_stay() {
    let mut site = Site::new(HubControllers::ALL, vec![cluster(true)]);
    site.edit(&MANAGED_CLUSTER.key("", "eu"), |raw| {
        raw["spec"]["taints"] = json!([{"key": "gpu", "effect": "NoSelect", "timeAdded": NOW}]);
    });
    site.settle();
    site.report("True");
    site.settle();
    assert_eq!(site.taints(), ["gpu"]);
}

#[test]
fn a_leaving_cluster_is_cleaned_up_by_priority() {
    let work = |name: &str, priority: &str| {
        object(WORK_API, "ManifestWork", name)
            .namespace("eu")
            .with(
                "/metadata/annotations",
                json!({"open-cluster-management.io/cleanup-priority": priority}),
            )
            .with("/metadata/finalizers", json!(["example.com/held"]))
            .build()
    };
    let mut site =
        Site::new(HubControllers::ALL, vec![cluster(true), work("last", "9"), work("first", "x")]);
    site.settle();
    site.edit(&MANAGED_CLUSTER.key("", "eu"), |raw| {
        raw["metadata"]["deletionTimestamp"] = json!(NOW);
    });
    site.settle();
    assert_eq!(site.cluster().condition_status("Deleting"), Some("False"));
    let first = MANIFEST_WORK.key("eu", "first");
    let last = MANIFEST_WORK.key("eu", "last");
    assert!(site.get(&first).is_deleting() && !site.get(&last).is_deleting());
    // What lets the agent clean up stays until there is nothing left to clean up.
    let binding = ROLE_BINDING.key("eu", "open-cluster-management:managedcluster:eu:work");
    assert!(site.get(&binding).is_deleting());
    site.applier.remove(&first);
    site.settle();
    assert!(site.get(&last).is_deleting());
    site.applier.remove(&last);
    site.settle();
    assert!(site.applier.world().get(&binding).is_none());
    assert!(site.applier.world().find(&MANAGED_CLUSTER, "", "eu").is_none());
}

#[test]
fn built_in_sets_are_there_and_stay_as_they_are() {
    let mut site = Site::new(HubControllers::ALL, vec![cluster(true)]);
    site.settle();
    let (default, global) =
        (MANAGED_CLUSTER_SET.key("", "default"), MANAGED_CLUSTER_SET.key("", "global"));
    let message = |site: &Site, key: &ObjectKey| {
        site.get(key).status()["conditions"][0]["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(message(&site, &default), "1 ManagedClusters selected");
    assert_eq!(message(&site, &global), "1 ManagedClusters selected");
    let selector = site.get(&global).spec()["clusterSelector"].clone();
    site.edit(&global, |raw| {
        raw["spec"]["clusterSelector"]["labelSelector"] =
            json!({"matchLabels": {"region": "eu"}, "matchExpressions": []});
    });
    site.settle();
    assert_eq!(site.get(&global).spec()["clusterSelector"], selector);
    site.applier.remove(&default);
    site.settle();
    site.get(&default);
    site.edit(&default, |raw| {
        raw["metadata"]["annotations"] =
            json!({"cluster.open-cluster-management.io/autoupdate": "false"});
        raw["spec"]["clusterSelector"] = json!({"selectorType": "LabelSelector"});
    });
    site.settle();
    assert_eq!(message(&site, &default), "No ManagedCluster selected");
}

#[test]
fn a_binding_says_whether_its_set_exists() {
    let binding = object(SET_API, "ManagedClusterSetBinding", "team")
        .namespace("apps")
        .spec(json!({"clusterSet": "team"}))
        .build();
    let mut site = Site::new(HubControllers::ALL, vec![binding]);
    site.settle();
    let key = MANAGED_CLUSTER_SET_BINDING.key("apps", "team");
    assert_eq!(site.get(&key).condition_status("Bound"), Some("False"));
    site.applier.insert(object(SET_API, "ManagedClusterSet", "team").build());
    site.settle();
    assert_eq!(site.get(&key).condition_status("Bound"), Some("True"));
}

#[test]
fn parts_that_are_off_are_left_to_others() {
    let mut site = Site::new(HubControllers::NONE, vec![cluster(true)]);
    assert_eq!(site.steps().len(), 0);
    site.hub = Some(hub(HubControllers { taints: true, ..HubControllers::NONE }));
    site.settle();
    assert_eq!(site.taints(), ["cluster.open-cluster-management.io/unreachable"]);
    assert!(site.applier.world().find(&NAMESPACE, "", "eu").is_none());
    assert_eq!(site.applier.world().of(&MANAGED_CLUSTER_SET).count(), 0);
}

#[test]
fn a_replica_set_goes_by_the_decisions_that_are_written() {
    let placement = object(PLACEMENT_API, "Placement", "web").namespace("apps").build();
    let set = object("work.open-cluster-management.io/v1alpha1", "ManifestWorkReplicaSet", "web")
        .namespace("apps")
        .spec(json!({"placementRefs": [{"name": "web"}], "manifestWorkTemplate": {"workload":
            {"manifests": [{"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "a", "namespace": "default"}}]}}}))
        .build();
    let binding = object(SET_API, "ManagedClusterSetBinding", "global")
        .namespace("apps")
        .spec(json!({"clusterSet": "global"}))
        .build();
    let objects = vec![cluster(true), placement, set, binding];
    let mut site = Site::new(HubControllers { placement: false, ..HubControllers::ALL }, objects);
    site.settle();
    assert_eq!(site.applier.world().of(&MANIFEST_WORK).count(), 0, "nobody decided yet");
    site.report("True");
    site.hub = Some(hub(HubControllers::ALL));
    site.settle();
    assert_eq!(site.applier.world().of(&PLACEMENT_DECISION).count(), 1);
    assert_eq!(site.applier.world().in_namespace(&MANIFEST_WORK, "eu").count(), 1);
    let status = site.get(&PLACEMENT.key("apps", "web")).condition_status("PlacementSatisfied");
    assert_eq!(status, Some("True"));
    let set = site.get(&MANIFEST_WORK_REPLICA_SET.key("apps", "web"));
    assert_eq!(set.condition_status("PlacementVerified"), Some("True"));
}

#[test]
fn works_stay_while_decisions_are_missing() {
    let placement = object(PLACEMENT_API, "Placement", "web").namespace("apps").build();
    let set = object("work.open-cluster-management.io/v1alpha1", "ManifestWorkReplicaSet", "web")
        .namespace("apps")
        .spec(json!({"placementRefs": [{"name": "web"}], "manifestWorkTemplate": {"workload":
            {"manifests": [{"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "a", "namespace": "default"}}]}}}))
        .build();
    let binding = object(SET_API, "ManagedClusterSetBinding", "global")
        .namespace("apps")
        .spec(json!({"clusterSet": "global"}))
        .build();
    let mut site = Site::new(HubControllers::ALL, vec![cluster(true), placement, set, binding]);
    site.settle();
    site.report("True");
    site.settle();
    let uid = |site: &Site| {
        let mut works = site.applier.world().in_namespace(&MANIFEST_WORK, "eu");
        works.next().and_then(|work| work.uid().map(str::to_owned))
    };
    let before = uid(&site);
    assert!(before.is_some(), "it is rolled out");
    // Somebody deletes the decision, and then the placement and makes it anew.
    site.applier.remove(&PLACEMENT_DECISION.key("apps", "web-decision-1"));
    site.settle();
    assert_eq!(uid(&site), before);
    site.applier.remove(&PLACEMENT_DECISION.key("apps", "web-decision-1"));
    site.edit(&PLACEMENT.key("apps", "web"), |raw| raw["status"] = json!({}));
    site.settle();
    assert_eq!(uid(&site), before);
    assert_eq!(site.applier.world().of(&PLACEMENT_DECISION).count(), 1);
}

#[test]
fn a_work_that_is_through_goes_after_its_time() {
    let work = |name: &str, ttl: Option<i64>, complete: &str| {
        let condition = json!({"type": "Complete", "status": complete, "reason": "Done",
            "message": "", "lastTransitionTime": NOW});
        object(WORK_API, "ManifestWork", name)
            .namespace("eu")
            .spec(json!({"deleteOption": {"ttlSecondsAfterFinished": ttl}}))
            .status(json!({"conditions": [condition]}))
    };
    let owned = work("owned", Some(0), "True").with(
        "/metadata/labels",
        json!({"work.open-cluster-management.io/manifestworkreplicaset": ""}),
    );
    let objects = vec![
        work("now", Some(0), "True").build(),
        work("later", Some(30), "True").build(),
        work("never", Some(i64::MAX), "True").build(),
        work("open", Some(0), "False").build(),
        work("plain", None, "True").build(),
        owned.build(),
    ];
    let mut site = Site::new(HubControllers { work: true, ..HubControllers::NONE }, objects);
    let names = |site: &Site| -> Vec<String> {
        let works = site.applier.world().in_namespace(&MANIFEST_WORK, "eu");
        works.map(|work| work.name().to_string()).collect()
    };
    site.settle();
    assert_eq!(names(&site), ["later", "never", "open", "owned", "plain"]);
    let wake = site.steps().iter().filter_map(|step| step.wake_at).min();
    assert_eq!(wake, Some(after(&site, 30)));
    site.applier.advance_to(wake.unwrap());
    site.settle();
    assert_eq!(names(&site), ["never", "open", "owned", "plain"]);
}
