//! Changes beside the resources: overrides, how things are applied, and who rolls out.

use std::time::Duration;

use serde_json::json;

use super::record::Moment;
use super::site::{embedded, fixed, on_cluster, placed, rolling};

#[test]
fn an_override_makes_its_clusters_stale_one_at_a_time() {
    let site = embedded().site("overrides");
    site.deploy();
    let clusters = ["member-1", "member-2", "member-3"];
    site.place(&fixed(&clusters), &rolling(&json!({"maxUnavailable": 1})));
    site.finished(0);
    let record = site.record();
    let west =
        json!({"clusterSelectorTerms": [{"labelSelector": {"matchLabels": {"loc": "west"}}}]});
    let patches = json!([
        {"op": "replace", "path": "/spec/replicas", "value": 3},
        {"op": "add", "path": "/metadata/annotations", "value": {"site": "${MEMBER-CLUSTER-NAME}"}}]);
    let rule = json!({"clusterSelector": west, "jsonPatchOverrides": patches});
    let selector = json!({"group": "apps", "version": "v1", "kind": "Deployment", "name": "web"});
    site.apply(&json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
        "kind": "ResourceOverride", "metadata": {"name": "more", "namespace": site.name},
        "spec": {"placement": {"name": site.name}, "resourceSelectors": [selector],
            "policy": {"overrideRules": [rule]}}}));
    site.until(|placement| {
        placed(placement, "Available").starts_with("True")
            && ["member-1", "member-2"].iter().all(|cluster| {
                on_cluster(placement, cluster, "Overridden") == "True/OverriddenSucceeded"
            })
    });
    for member in ["member-1", "member-2"] {
        let web = site.on(member, "deployment web").unwrap();
        assert_eq!(web["spec"]["replicas"], 3);
        assert_eq!(web["metadata"]["annotations"]["site"], member);
    }
    assert_eq!(site.on("member-3", "deployment web").unwrap()["spec"]["replicas"], 2);
    let moments = record.moments();
    let uid = |moment: &Moment| moment.of("member-3").unwrap()["metadata"]["generation"].clone();
    for moment in &moments {
        assert!(moment.available().len() >= 2, "{moment:?}");
        assert_eq!(uid(moment), uid(&moments[0]), "the third is not concerned");
    }
}

#[test]
fn an_apply_strategy_reaches_all_bindings_at_once_without_a_rollout() {
    let site = embedded().site("apply-strategy");
    site.deploy();
    let clusters = ["member-1", "member-2", "member-3"];
    site.place(&fixed(&clusters), &rolling(&json!({"maxUnavailable": 1})));
    site.finished(0);
    let record = site.record();
    let apply = json!({"whenToApply": "IfNotDrifted", "comparisonOption": "FullComparison"});
    site.patch_placement(&json!({"strategy": {"applyStrategy": apply}}));
    record.until("the strategy on all", |now| {
        now.clusters(|it| it["spec"]["applyStrategy"]["whenToApply"] == "IfNotDrifted").len() == 3
    });
    let placement = site.finished(0);
    assert_eq!(placed(&placement, "RolloutStarted"), "True/RolloutStarted");
    for moment in record.moments() {
        assert_eq!(moment.at(0).len(), 3, "no new snapshot");
    }
    for member in clusters {
        let work = format!("work {}-work -n fleet-member-{member}", site.name);
        let work = site.hub.get(&work);
        assert_eq!(work["spec"]["applyStrategy"]["whenToApply"], "IfNotDrifted");
    }
}

#[test]
fn handing_over_to_an_external_controller_freezes_the_rollout() {
    let site = embedded().site("external");
    site.deploy();
    site.place(&fixed(&["member-1", "member-2"]), &rolling(&json!({"maxUnavailable": 1})));
    site.finished(0);
    site.patch_placement(&json!({"strategy": {"type": "External", "rollingUpdate": null}}));
    let record = site.record();
    site.set_image("2");
    std::thread::sleep(Duration::from_secs(2));
    for moment in record.moments() {
        assert_eq!(moment.at(0), ["member-1", "member-2"]);
    }
    assert!(site.tags().iter().all(|(_, tag)| tag == "1"), "{:?}", site.tags());
    let back = json!({"spec": {"strategy": {"type": "RollingUpdate"}}});
    let patch = format!("patch clusterresourceplacement {} --type=merge -p {back}", site.name);
    site.hub.try_kubectl(&patch, "");
}

/// A cluster that is picked again before it was let go keeps what it has.
#[test]
fn a_quick_change_of_mind_leaves_a_cluster_as_it_is() {
    let site = embedded().site("change-of-mind");
    site.deploy();
    let keeping = rolling(&json!({"maxUnavailable": 0, "maxSurge": 0}));
    site.place(&fixed(&["member-1", "member-2"]), &keeping);
    site.finished(0);
    let record = site.record();
    let named = |names: &[&str]| json!({"policy": {"clusterNames": names}});
    // The new one needs surge, which there is none of: the old one stays until it is wanted again.
    site.patch_placement(&named(&["member-1", "member-3"]));
    record.until("member-2 to be let go", |now| {
        now.of("member-2").is_some_and(|it| it["spec"]["state"] == "Unscheduled")
    });
    site.patch_placement(&named(&["member-1", "member-2"]));
    record.finally("member-2 to be back", |now| {
        now.of("member-2").is_some_and(|it| it["spec"]["state"] == "Bound")
    });
    for moment in record.moments() {
        assert_eq!(moment.available().len(), 2, "{moment:?}");
        assert!(moment.leaving().iter().all(|it| *it == "member-3"), "{moment:?}");
    }
    assert_eq!(site.tags().len(), 2);
}
