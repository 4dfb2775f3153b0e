//! Clusters that join, leave and are tainted.

use serde_json::{Value, json};

use super::site::{changing, clusters, embedded, pick, placed, rolling, word};

#[test]
fn taints_keep_new_placements_out_and_old_ones_stay() {
    let home = changing();
    let before = home.site("before-the-taint");
    before.kubectl("create configmap settings --from-literal=a=b");
    before.hub.kubectl("label memberclusters member-1 member-4 taints=tried");
    before.place(&pick(2, "taints", "tried"), &rolling(&json!({})));
    assert_eq!(clusters(&before.finished(0)), ["member-1", "member-4"]);
    let taint = json!({"key": "dedicated", "value": "others", "effect": "NoSchedule"});
    before.patch("membercluster member-4", &json!({"spec": {"taints": [taint]}}));
    let after = home.site("after-the-taint");
    after.kubectl("create configmap settings --from-literal=a=b");
    after.place(&pick(2, "taints", "tried"), &rolling(&json!({})));
    let placement = after.until(|it| {
        placed(it, "Scheduled") == "False/SchedulingPolicyUnfulfilled"
            && placed(it, "Available").starts_with("True")
    });
    assert_eq!(clusters(&placement), ["member-1"]);
    let toleration = json!({"key": "dedicated", "operator": "Exists"});
    let mut tolerant = pick(2, "taints", "tried");
    tolerant["tolerations"] = json!([toleration]);
    after.patch_placement(&json!({"policy": tolerant}));
    after.until(|it| clusters(it) == ["member-1", "member-4"]);
    after.until_on("member-4", "configmap settings", |it| !it.is_null());
    let placement = before.until(|_| true);
    assert_eq!(clusters(&placement), ["member-1", "member-4"]);
    before.patch("membercluster member-4", &json!({"spec": {"taints": null}}));
}

#[test]
fn who_leaves_keeps_its_objects_and_who_comes_back_has_them_taken_over() {
    let home = changing();
    let site = home.site("leaving");
    site.hub.kubectl("label membercluster member-3 leaving=yes");
    site.hub.kubectl("label membercluster member-2 leaving=no");
    site.deploy();
    let both = json!({"matchExpressions": [{"key": "leaving", "operator": "Exists"}]});
    let terms = json!({"clusterSelectorTerms": [{"labelSelector": both}]});
    let affinity =
        json!({"clusterAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}});
    let policy = json!({"placementType": "PickAll", "affinity": affinity});
    site.place(&policy, &rolling(&json!({})));
    assert_eq!(clusters(&site.finished(0)), ["member-2", "member-3"]);
    let namespace = site.hub.get("namespace fleet-member-member-3");
    assert_eq!(namespace["metadata"]["ownerReferences"][0]["kind"], "MemberCluster");
    let member = site.hub.get("membercluster member-3");
    let uid = site.on("member-3", "deployment web").unwrap()["metadata"]["uid"].clone();

    site.hub.kubectl("delete membercluster member-3 --timeout=60s");
    site.hub.kubectl("wait --for=delete namespace/fleet-member-member-3 --timeout=60s");
    let placement = site.until(|it| clusters(it) == ["member-2"]);
    assert!(placed(&placement, "Available").starts_with("True"), "{placement}");
    assert_eq!(site.on("member-3", "deployment web").unwrap()["metadata"]["uid"], uid);

    let again = json!({"apiVersion": member["apiVersion"], "kind": "MemberCluster",
        "metadata": {"name": "member-3", "labels": {"leaving": "yes", "env": "prod", "loc": "east"}},
        "spec": member["spec"]});
    site.apply(&again);
    site.hub.kubectl("wait --for=condition=Joined membercluster/member-3 --timeout=60s");
    let joined = site.hub.get("membercluster member-3");
    let ready = word(&joined["status"]["conditions"], "ReadyToJoin", &Value::Null);
    assert!(ready.starts_with("True"), "{joined}");
    site.until(|it| {
        clusters(it) == ["member-2", "member-3"] && placed(it, "Available").starts_with("True")
    });
    assert_eq!(site.on("member-3", "deployment web").unwrap()["metadata"]["uid"], uid, "the same");
    site.set_image("2");
    site.finished(1);
    assert_eq!(site.image("member-3").unwrap(), "example/web:2");
}

/// A cluster without an agent is never joined, and nothing is placed there.
#[test]
fn a_cluster_that_never_joined_is_not_picked() {
    let site = embedded().site("never-joined");
    site.kubectl("create configmap settings --from-literal=a=b");
    let identity =
        json!({"kind": "User", "name": "ghost", "apiGroup": "rbac.authorization.k8s.io"});
    site.apply(
        &json!({"apiVersion": "cluster.kubernetes-fleet.io/v1beta1", "kind": "MemberCluster",
        "metadata": {"name": "ghost", "labels": {"joined": "never"}},
        "spec": {"identity": identity}}),
    );
    site.hub.kubectl("wait --for=create namespace/fleet-member-ghost --timeout=60s");
    site.place(&pick(1, "joined", "never"), &rolling(&json!({})));
    let placement = site.until(|it| placed(it, "Scheduled").starts_with("False"));
    assert!(clusters(&placement).is_empty());
    site.hub.kubectl("label membercluster member-1 joined=never");
    site.until(|it| clusters(it) == ["member-1"]);
}
