//! The rollouts of the examples with a hub and members that are real Kubernetes, under exactly the
//! accounts of `deploy/`.

use serde_json::json;

use super::eviction::{budget, evict};
use super::site::{clusters, on_cluster, pick, placed, real, rolling};
use super::staged::{approve, run, strategy, succeeded};

#[test]
fn a_bad_image_is_contained_and_a_move_keeps_one_available() {
    let site = real().site("real-shop");
    site.deploy();
    let one = json!({"maxUnavailable": 1, "maxSurge": 1});
    let all = json!({"placementType": "PickAll"});
    site.place(&all, &rolling(&one));
    assert_eq!(clusters(&site.finished(0)), ["far-1", "far-2"]);
    let record = site.record();
    site.set_image("bad");
    site.until(|placement| {
        on_cluster(placement, "far-1", "Available") == "False/NotAllWorkAreAvailable"
            && on_cluster(placement, "far-2", "RolloutStarted") == "False/RolloutNotStartedYet"
    });
    std::thread::sleep(std::time::Duration::from_secs(2));
    for moment in record.moments() {
        assert!(moment.at(1).len() <= 1 && !moment.available().is_empty(), "{moment:?}");
    }
    assert_eq!(site.image("far-2").unwrap(), "example/web:1");
    site.set_image("2");
    let placement = site.finished(2);
    assert_eq!(placed(&placement, "Available"), "True/ResourceAvailable");
    assert!(record.moments().iter().all(|moment| !moment.available().is_empty()));

    // A placement that moves from the one to the other, and may never be missing.
    let site = real().site("real-move");
    site.deploy();
    let none_missing = json!({"maxUnavailable": 0, "maxSurge": 1});
    site.place(&pick(1, "name", "far-1"), &rolling(&none_missing));
    assert_eq!(clusters(&site.finished(0)), ["far-1"]);
    let record = site.record();
    site.patch_placement(&json!({"policy": pick(1, "name", "far-2")}));
    record.finally("the end", |now| now.available() == ["far-2"] && now.all() == ["far-2"]);
    for moment in record.moments() {
        assert!(!moment.available().is_empty(), "{moment:?}");
        assert!(moment.leaving().is_empty() || moment.available() == ["far-2"], "{moment:?}");
    }
    let gone = format!("wait --for=delete namespace/{} --timeout=120s", site.name);
    site.members["far-1"].kubectl(&gone);
    assert_eq!(site.image("far-2").unwrap(), "example/web:1");
}

/// What else a hub writes, under the same accounts: overrides, runs and their approvals, evictions, and
/// the status in a namespace.
#[test]
fn runs_overrides_and_evictions_need_no_other_permissions() {
    let site = real().site("real-staged");
    site.kubectl("create configmap settings --from-literal=a=hub");
    let all = json!({"placementType": "PickAll"});
    let external = json!({"type": "External"});
    site.place_with(
        &site.name,
        &json!({"policy": all, "strategy": external, "statusReportingScope": "NamespaceAccessible"}),
    );
    let rule = json!({"clusterSelector": {"clusterSelectorTerms": []},
        "jsonPatchOverrides": [{"op": "replace", "path": "/data/a", "value": "${MEMBER-CLUSTER-NAME}"}]});
    let selector = json!({"group": "", "version": "v1", "kind": "ConfigMap", "name": "settings"});
    site.apply(&json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
        "kind": "ResourceOverride", "metadata": {"name": "names", "namespace": site.name},
        "spec": {"placement": {"name": site.name}, "resourceSelectors": [selector],
            "policy": {"overrideRules": [rule]}}}));
    site.kubectl("wait --for=create resourceoverridesnapshot/names-0 --timeout=60s");
    site.until(|it| placed(it, "Scheduled").starts_with("True"));
    let stage =
        json!({"name": "all", "labelSelector": {}, "afterStageTasks": [{"type": "Approval"}]});
    strategy(&site, &json!([stage]));
    run(&site, "one", "", "Run");
    approve(&site, "one");
    succeeded(&site, "one");
    for member in ["far-1", "far-2"] {
        let settings = site.on(member, "configmap settings").unwrap();
        assert_eq!(settings["data"]["a"], member);
    }
    site.kubectl(&format!("get clusterresourceplacementstatus {}", site.name));
    site.hub.kubectl(&format!("delete clusterstagedupdaterun {}-one --timeout=60s", site.name));
    site.hub.kubectl(&format!("delete clusterresourceplacement {} --timeout=60s", site.name));

    let site = real().site("real-evict");
    site.kubectl("create configmap settings --from-literal=a=hub");
    site.place(&json!({"placementType": "PickAll"}), &rolling(&json!({})));
    site.finished(0);
    budget(&site, &json!({"minAvailable": 2}));
    assert_eq!(evict(&site, "denied", "far-1").1, "False/NotExecuted");
    budget(&site, &json!({"minAvailable": 1}));
    let record = site.record();
    assert_eq!(evict(&site, "allowed", "far-1").1, "True/Executed");
    record.until("its end", |now| now.leaving() == ["far-1"]);
    record.finally("another binding", |now| now.available() == ["far-1", "far-2"]);
}
