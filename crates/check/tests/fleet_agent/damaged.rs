//! G12: an object with a field of any type fails nobody's decision, neither on the hub nor on a
//! member.

use convoy_api::GroupKind;
use convoy_plan::dialect::fleet::Fleet;
use convoy_plan::dialect::fleet_agent::FleetAgent;
use convoy_testkit::{NOW, fleet, object};
use serde_json::json;

use super::damage::survives;
use super::manifests::{config, deployment};
use super::world::{PLACEMENT_API, Site, work};

#[test]
fn a_damaged_object_fails_no_decision_of_an_agent() {
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "key", "namespace": "shop"}, "data": {"a": "YQ=="},
        "stringData": {"token": "abc"}});
    let strategy = json!({"comparisonOption": "FullComparison", "whenToApply": "IfNotDrifted",
        "whenToTakeOver": "IfNoDiff"});
    let manifests = [config("a"), secret, deployment("v1")];
    let mut site = Site::of_agent(vec![work("web-work", &manifests, &strategy)], "eu");
    site.settle();
    survives(&FleetAgent::new("eu"), site.world());
}

#[test]
fn a_damaged_object_fails_no_work_of_a_binding() {
    let started = fleet::condition("RolloutStarted", "True", "RolloutStarted", 1, NOW);
    let binding = fleet::binding("web", "eu", "Bound", "web-0-snapshot")
        .with("/metadata/generation", json!(1))
        .with("/spec/clusterResourceOverrideSnapshots", json!(["more-0"]))
        .status(json!({"conditions": [started]}));
    let envelope = json!({"apiVersion": PLACEMENT_API, "kind": "ResourceEnvelope",
        "metadata": {"name": "limits", "namespace": "shop"}, "data": {"settings": config("a")}});
    let snapshot = fleet::resource_snapshot("web", 0, true, &[deployment("v1"), envelope]);
    let rule = json!({"clusterSelector": {"clusterSelectorTerms": []}, "jsonPatchOverrides":
        [{"op": "add", "path": "/metadata/labels", "value": {"at": "${MEMBER-CLUSTER-NAME}"}}]});
    let shop = json!({"group": "", "version": "v1", "kind": "Namespace", "name": "shop"});
    let overrides = object(PLACEMENT_API, "ClusterResourceOverrideSnapshot", "more-0")
        .spec(json!({"overrideSpec": {"clusterResourceSelectors": [shop],
            "policy": {"overrideRules": [rule]}}}));
    let internal = object("cluster.kubernetes-fleet.io/v1beta1", "InternalMemberCluster", "eu")
        .namespace("fleet-member-eu")
        .spec(json!({"state": "Join"}));
    let objects = vec![
        binding.build(),
        snapshot.build(),
        overrides.build(),
        internal.build(),
        fleet::member("eu", NOW).build(),
    ];
    let mut site = Site::new(objects, &["eu"]);
    site.settle();
    let works = GroupKind::new("placement.kubernetes-fleet.io", "Work");
    assert_eq!(site.world().of(&works).count(), 2);
    survives(&Fleet, site.world());
}
