//! A replica set on its way through three clusters, each with its agent.

use convoy_api::Object;
use convoy_api::kinds::{DEPLOYMENT, LEASE};
use convoy_api::ocm::names::{MANAGED_CLUSTER, MANIFEST_WORK, MANIFEST_WORK_REPLICA_SET};
use convoy_testkit::{NOW, object};
use serde_json::{Value, json};

use super::manifests::{deployment, on, shop};
use super::world::Site;

const CLUSTERS: [&str; 3] = ["alpha", "beta", "gamma"];
const CLUSTER_API: &str = "cluster.open-cluster-management.io";

fn objects() -> Vec<Object> {
    let mut objects: Vec<Object> = CLUSTERS
        .iter()
        .map(|name| {
            object(&format!("{CLUSTER_API}/v1"), "ManagedCluster", name)
                .spec(json!({"hubAcceptsClient": true, "leaseDurationSeconds": 60}))
                .build()
        })
        .collect();
    let definition = "managedclustersets.cluster.open-cluster-management.io";
    objects.push(
        object("apiextensions.k8s.io/v1", "CustomResourceDefinition", definition)
            .with("/status", json!({"conditions": [{"type": "Established", "status": "True"}]}))
            .build(),
    );
    objects.push(
        object(&format!("{CLUSTER_API}/v1beta2"), "ManagedClusterSetBinding", "global")
            .namespace("apps")
            .spec(json!({"clusterSet": "global"}))
            .build(),
    );
    objects.push(
        object(&format!("{CLUSTER_API}/v1beta1"), "Placement", "web").namespace("apps").build(),
    );
    let rule = json!({"condition": "Progressing", "type": "CEL", "celExpressions":
        ["!has(object.status) || object.status.availableReplicas < object.spec.replicas"]});
    let template = json!({
        "workload": {"manifests": [shop(), deployment("bad")]},
        "manifestConfigs": [{"resourceIdentifier": {"group": "apps", "resource": "deployments",
            "namespace": "shop", "name": "front"}, "conditionRules": [rule]}],
    });
    let strategy = json!({"type": "Progressive", "progressive": {"maxConcurrency": 1}});
    objects.push(
        object("work.open-cluster-management.io/v1alpha1", "ManifestWorkReplicaSet", "web")
            .namespace("apps")
            .with("/metadata/generation", json!(1))
            .spec(json!({"placementRefs": [{"name": "web", "rolloutStrategy": strategy}],
                "manifestWorkTemplate": template}))
            .build(),
    );
    objects
}

/// What the registration agents of the clusters do.
fn report(site: &mut Site) {
    for name in CLUSTERS {
        let now = site.applier.now();
        site.edit(&LEASE.key(name, "managed-cluster-lease"), |raw| {
            raw["spec"]["renewTime"] = json!(now.to_string());
        });
        site.edit(&MANAGED_CLUSTER.key("", name), |raw| {
            let conditions = raw["status"]["conditions"].as_array_mut().expect("it was accepted");
            conditions.push(json!({"type": "ManagedClusterConditionAvailable", "status": "True",
                "reason": "ManagedClusterAvailable", "message": "", "lastTransitionTime": NOW}));
        });
    }
}

fn images(site: &Site) -> Vec<String> {
    let image = |name: &&str| {
        let live = site.world().get(&on(name, &DEPLOYMENT, "shop", "front"))?;
        let containers = &live.spec()["template"]["spec"]["containers"];
        Some(containers[0]["image"].as_str()?.to_owned())
    };
    CLUSTERS.iter().map(|name| image(name).unwrap_or_default()).collect()
}

#[test]
fn a_cluster_that_does_not_become_available_holds_the_others() {
    let mut site = Site::new(objects(), &CLUSTERS);
    site.settle();
    report(&mut site);
    site.settle();
    assert_eq!(images(&site), ["bad", "", ""], "one at a time");
    let set = MANIFEST_WORK_REPLICA_SET.key("apps", "web");
    let summary = |site: &Site| site.get(&set).status()["summary"].clone();
    let first = site.world().in_namespace(&MANIFEST_WORK, "alpha").next().expect("its work");
    assert_eq!(first.condition_status("Available"), Some("True"), "it is there");
    assert_eq!(first.condition_status("Progressing"), Some("True"), "and does not get on");
    assert_eq!(summary(&site)["total"], 1, "{}", summary(&site));
    assert_eq!(summary(&site)["applied"], 1, "{}", summary(&site));
    site.edit(&set, |raw| {
        raw["spec"]["manifestWorkTemplate"]["workload"]["manifests"][1] = deployment("v1");
    });
    site.settle();
    assert_eq!(images(&site), ["v1", "v1", "v1"]);
    assert_eq!(summary(&site)["available"], 3, "{}", summary(&site));
    assert_eq!(site.get(&set).condition_status("PlacementRolledOut"), Some("True"));
    // The work goes everywhere with its set.
    site.edit(&set, |raw: &mut Value| raw["metadata"]["deletionTimestamp"] = json!(NOW));
    site.settle();
    assert!(site.world().get(&set).is_none());
    assert_eq!(images(&site), ["", "", ""]);
    assert_eq!(site.world().of(&MANIFEST_WORK).count(), 0);
}
