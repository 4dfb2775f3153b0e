//! Hub and members together, from a placement to what runs, with the two worked examples of a
//! safe rollout.

use convoy_api::kinds::{DEPLOYMENT, NAMESPACE};
use convoy_api::{GroupKind, Object};
use convoy_testkit::object;
use serde_json::{Value, json};

use super::manifests::{conditions, deployment, on};
use super::world::{PLACEMENT_API, Site, WORK, member};

const PLACEMENT: GroupKind =
    GroupKind::new("placement.kubernetes-fleet.io", "ClusterResourcePlacement");
const BINDING: GroupKind =
    GroupKind::new("placement.kubernetes-fleet.io", "ClusterResourceBinding");
const MEMBER: GroupKind = GroupKind::new("cluster.kubernetes-fleet.io", "MemberCluster");
const CLUSTERS: [&str; 4] = ["cluster-1", "cluster-2", "cluster-3", "cluster-4"];

fn labelled(name: &str, key: &str, value: &str) -> Object {
    let object = member(name);
    let mut raw = object.raw().clone();
    raw["metadata"]["labels"] = json!({key: value});
    object.with_raw(raw)
}

fn placement(number: u32, labels: &Value, rolling: &Value) -> Object {
    let selector = json!({"group": "", "version": "v1", "kind": "Namespace", "name": "shop"});
    let terms = json!([{"labelSelector": {"matchLabels": labels}}]);
    object(PLACEMENT_API, "ClusterResourcePlacement", "web")
        .spec(json!({"resourceSelectors": [selector],
            "policy": {"placementType": "PickN", "numberOfClusters": number,
                "affinity": {"clusterAffinity":
                    {"requiredDuringSchedulingIgnoredDuringExecution":
                        {"clusterSelectorTerms": terms}}}},
            "strategy": {"rollingUpdate": rolling}}))
        .build()
}

fn hub(placement: Object, members: Vec<Object>) -> Site {
    let front = Object::from_value(deployment("v1")).expect("an object");
    let shop = object("v1", "Namespace", "shop").build();
    let objects = members.into_iter().chain([placement, shop, front]).collect();
    Site::new(objects, &CLUSTERS)
}

/// The image that runs on each cluster.
fn images(site: &Site) -> Vec<Option<String>> {
    let image = |cluster: &&str| {
        let front = site.world().get(&on(cluster, &DEPLOYMENT, "shop", "front"))?;
        let image = &front.spec()["template"]["spec"]["containers"][0]["image"];
        image.as_str().map(str::to_owned)
    };
    CLUSTERS.iter().map(image).collect()
}

fn running(images: &[Option<String>], image: &str) -> usize {
    images.iter().filter(|it| it.as_deref() == Some(image)).count()
}

fn is_available(site: &Site) -> bool {
    let placement = site.get(&PLACEMENT.key("", "web"));
    placement.condition_status("ClusterResourcePlacementAvailable") == Some("True")
}

fn set_image(site: &mut Site, image: &str) {
    site.edit(&DEPLOYMENT.key("shop", "front"), |raw| {
        raw["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
    });
}

fn one_at_a_time() -> Value {
    json!({"maxUnavailable": 1, "maxSurge": 1})
}

fn prod(number: u32) -> Site {
    let members = CLUSTERS.iter().map(|name| labelled(name, "env", "prod")).collect();
    hub(placement(number, &json!({"env": "prod"}), &one_at_a_time()), members)
}

#[test]
fn a_placement_is_available_when_its_members_say_so() {
    let mut site = prod(3);
    site.run_until("available on three clusters", is_available);
    assert_eq!(running(&images(&site), "v1"), 3);
    let joined = CLUSTERS
        .iter()
        .filter(|name| site.get(&MEMBER.key("", name)).condition_status("Joined") == Some("True"));
    assert_eq!(joined.count(), 4);
    let placement = site.get(&PLACEMENT.key("", "web"));
    let told = &placement.status()["placementStatuses"];
    assert_eq!(told.as_array().unwrap().len(), 3);
    for cluster in told.as_array().unwrap() {
        assert_eq!(conditions(cluster).last().unwrap(), "Available=True/AllWorkAreAvailable");
    }
    site.edit(&PLACEMENT.key("", "web"), |raw| {
        raw["metadata"]["deletionTimestamp"] = json!(convoy_testkit::NOW);
    });
    site.settle();
    assert_eq!(running(&images(&site), "v1"), 0, "everything goes with the placement");
    assert_eq!(site.world().of(&WORK).count(), 0);
    assert_eq!(site.world().of(&BINDING).count(), 0);
    assert!(site.world().get(&PLACEMENT.key("", "web")).is_none());
}

#[test]
fn a_bad_release_reaches_one_cluster_and_a_good_one_all() {
    let mut site = prod(3);
    site.run_until("available", is_available);
    let untouched = images(&site).iter().position(Option::is_none).expect("three of four");
    set_image(&mut site, "bad");
    site.run_until("rolled to one", |site| running(&images(site), "bad") == 1);
    site.settle();
    let stuck = images(&site);
    assert_eq!((running(&stuck, "bad"), running(&stuck, "v1")), (1, 2), "{stuck:?}");
    assert_eq!(stuck[untouched], None, "maxSurge is not used for updates in place");
    let placement = site.get(&PLACEMENT.key("", "web"));
    let failed: Vec<&Value> = placement.status()["placementStatuses"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|cluster| cluster.get("failedPlacements"))
        .collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0][0]["condition"]["reason"], "ManifestNotAvailableYet");
    // A fourth cluster is bound at once; the update in place stays stuck.
    site.edit(&PLACEMENT.key("", "web"), |raw| {
        raw["spec"]["policy"]["numberOfClusters"] = json!(4);
    });
    site.run_until("placed on the fourth", |site| images(site)[untouched].is_some());
    site.settle();
    assert_eq!(running(&images(&site), "v1"), 2);
    set_image(&mut site, "v2");
    site.run_until("available with the fix", |site| {
        is_available(site) && running(&images(site), "v2") == 4
    });
}

#[test]
fn a_move_keeps_at_least_one_cluster_available() {
    let members = CLUSTERS
        .iter()
        .enumerate()
        .map(|(at, name)| labelled(name, "loc", if at < 2 { "west" } else { "east" }));
    let west = placement(2, &json!({"loc": "west"}), &json!({"maxSurge": 2}));
    let mut site = hub(west, members.collect());
    site.run_until("available in the west", is_available);
    let east = placement(2, &json!({"loc": "east"}), &json!({"maxSurge": 2}));
    site.edit(&PLACEMENT.key("", "web"), |raw| raw["spec"] = east.spec().clone());
    let mut fewest = 4;
    for _ in 0..60 {
        let busy = site.round();
        fewest = fewest.min(running(&images(&site), "v1"));
        if !busy {
            break;
        }
    }
    site.run_until("available in the east", is_available);
    let images = images(&site);
    let placed: Vec<bool> = images.iter().map(Option::is_some).collect();
    assert_eq!(placed, [false, false, true, true]);
    assert!(fewest >= 1, "the policy mandates that one cluster is available");
    assert!(site.world().get(&on("cluster-1", &NAMESPACE, "", "shop")).is_none());
}

#[test]
fn a_cluster_that_leaves_keeps_its_objects() {
    let mut site = prod(4);
    site.run_until("available", is_available);
    site.edit(&MEMBER.key("", "cluster-2"), |raw| {
        raw["metadata"]["deletionTimestamp"] = json!(convoy_testkit::NOW);
    });
    site.run_until("gone", |site| site.world().get(&MEMBER.key("", "cluster-2")).is_none());
    site.settle();
    assert_eq!(images(&site)[1].as_deref(), Some("v1"));
    let bindings = site.world().of(&BINDING).filter(|it| it.spec()["targetCluster"] == "cluster-2");
    assert_eq!(bindings.count(), 0);
}
