//! Releases that do not work: they stop at the first cluster, and their fix gets through.

use serde_json::{Value, json};

use super::site::{Site, clusters, embedded, entry, fixed, on_cluster, placed, rolling};

const CLUSTERS: [&str; 3] = ["member-1", "member-2", "member-3"];

fn place(site: &Site, more: &Value) {
    let strategy = rolling(&json!({"maxUnavailable": 1, "maxSurge": 1}));
    let mut fields = json!({"policy": fixed(&CLUSTERS), "strategy": strategy});
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    site.place_with(&site.name, &fields);
    assert_eq!(clusters(&site.finished(0)), CLUSTERS);
}

/// A change that does not work stops at one cluster; a second one that works reaches all.
fn contained(site: &Site, kind: &str, bad: impl FnOnce(), good: impl FnOnce()) {
    let record = site.record();
    bad();
    let placement = site.until(|placement| {
        placement["status"]["observedResourceIndex"] == "1"
            && on_cluster(placement, "member-1", "Available").starts_with("False")
            && on_cluster(placement, "member-3", "RolloutStarted").starts_with("False")
    });
    let failed = &entry(&placement, "member-1")["failedPlacements"][0];
    assert_eq!(failed["kind"], kind, "{placement}");
    assert_eq!(placed(&placement, "RolloutStarted"), "False/RolloutNotStartedYet");
    std::thread::sleep(std::time::Duration::from_secs(1));
    for moment in record.moments() {
        assert!(moment.at(1).len() <= 1 && moment.available().len() >= 2, "{moment:?}");
    }
    good();
    let placement = site.finished(2);
    assert_eq!(placed(&placement, "Available"), "True/ResourceAvailable");
    for moment in record.moments() {
        assert!(moment.available().len() >= 2, "one of three may be missing: {moment:?}");
        assert_eq!(moment.all(), CLUSTERS);
    }
}

fn image(site: &Site, workload: &str, tag: &str) {
    site.kubectl(&format!("set image {workload} web=example/web:{tag}"));
}

/// A workload with one container.
fn workload(site: &Site, kind: &str, more: &Value) {
    let labels = json!({"app": "web"});
    let containers = json!([{"name": "web", "image": "example/web:1"}]);
    let mut spec = json!({"selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}}});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    site.apply(&json!({"apiVersion": "apps/v1", "kind": kind,
        "metadata": {"name": "web", "namespace": site.name}, "spec": spec}));
}

#[test]
fn a_bad_image_of_a_daemon_set_is_contained() {
    let site = embedded().site("bad-daemon-set");
    workload(&site, "DaemonSet", &json!({}));
    place(&site, &json!({}));
    let set = |tag: &'static str| image(&site, "daemonset/web", tag);
    contained(&site, "DaemonSet", || set("bad"), || set("2"));
}

#[test]
fn a_bad_image_of_a_stateful_set_is_contained() {
    let site = embedded().site("bad-stateful-set");
    workload(&site, "StatefulSet", &json!({"replicas": 1, "serviceName": "web"}));
    place(&site, &json!({}));
    let set = |tag: &'static str| image(&site, "statefulset/web", tag);
    contained(&site, "StatefulSet", || set("bad"), || set("2"));
}

#[test]
fn a_load_balancer_without_an_address_is_contained() {
    let site = embedded().site("no-address");
    site.kubectl("create service clusterip shop --tcp=80");
    place(&site, &json!({}));
    let set = |kind: &'static str| {
        let patch = json!({"spec": {"type": kind}});
        site.kubectl(&format!("patch service shop -p {patch}"));
    };
    contained(&site, "Service", || set("LoadBalancer"), || set("ClusterIP"));
}

/// The snapshot that two clusters still have is pruned, and they get the fix all the same.
#[test]
fn a_fix_gets_through_though_the_snapshot_in_use_is_pruned() {
    let site = embedded().site("pruned");
    site.deploy();
    place(&site, &json!({"revisionHistoryLimit": 1}));
    contained(&site, "Deployment", || site.set_image("bad"), || site.set_image("2"));
    let selector = format!("kubernetes-fleet.io/parent-CRP={}", site.name);
    let kept = site.hub.kubectl(&format!("get clusterresourcesnapshots -l {selector} -o name"));
    assert_eq!(kept.lines().count(), 1, "{kept}");
    assert_eq!(site.tags().iter().filter(|(_, tag)| tag == "2").count(), 3);
}
