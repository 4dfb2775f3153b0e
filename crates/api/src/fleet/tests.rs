//! Manifests as people write them come through the typed views unchanged, and the CRDs are
//! what an API server takes.

use std::collections::BTreeSet;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    binding, cluster, cluster_profile, crds, envelope, eviction, overrides, placement, snapshot,
    staged, work,
};
use crate::object::view::view_of;

fn round_trip<T: DeserializeOwned + Serialize>(yaml: &str) {
    let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
    assert!(!documents.is_empty());
    for mut document in documents {
        let view: T = view_of(&document).unwrap();
        let seen = serde_json::to_value(view).unwrap();
        // A view is of the stored version, whatever version it was read from.
        let (group, version) = document["apiVersion"].as_str().unwrap().split_once('/').unwrap();
        let stored = if group == "multicluster.x-k8s.io" { version } else { "v1beta1" };
        document["apiVersion"] = format!("{group}/{stored}").into();
        assert_eq!(seen, document);
    }
}

macro_rules! unchanged {
    ($($test:ident: $kind:ty = $file:literal,)*) => {$(
        #[test]
        fn $test() {
            round_trip::<$kind>(include_str!(concat!("../../testdata/fleet/", $file, ".yaml")));
        }
    )*};
}

unchanged! {
    cluster_placements_come_through: placement::ClusterResourcePlacement = "cluster_resource_placement",
    placements_come_through: placement::ResourcePlacement = "resource_placement",
    placement_statuses_come_through: envelope::ClusterResourcePlacementStatus = "cluster_resource_placement_status",
    cluster_bindings_come_through: binding::ClusterResourceBinding = "binding_cluster",
    bindings_come_through: binding::ResourceBinding = "binding",
    cluster_resource_snapshots_come_through: snapshot::ClusterResourceSnapshot = "resource_snapshot_cluster",
    resource_snapshots_come_through: snapshot::ResourceSnapshot = "resource_snapshot",
    cluster_policy_snapshots_come_through: snapshot::ClusterSchedulingPolicySnapshot = "policy_snapshot_cluster",
    policy_snapshots_come_through: snapshot::SchedulingPolicySnapshot = "policy_snapshot",
    works_come_through: work::Work = "work",
    applied_works_come_through: work::AppliedWork = "applied_work",
    cluster_overrides_come_through: overrides::ClusterResourceOverride = "override_cluster",
    overrides_come_through: overrides::ResourceOverride = "override",
    cluster_override_snapshots_come_through: overrides::ClusterResourceOverrideSnapshot = "override_snapshot_cluster",
    override_snapshots_come_through: overrides::ResourceOverrideSnapshot = "override_snapshot",
    cluster_envelopes_come_through: envelope::ClusterResourceEnvelope = "envelope_cluster",
    envelopes_come_through: envelope::ResourceEnvelope = "envelope",
    evictions_come_through: eviction::ClusterResourcePlacementEviction = "eviction",
    budgets_come_through: eviction::ClusterResourcePlacementDisruptionBudget = "disruption_budget",
    cluster_runs_come_through: staged::ClusterStagedUpdateRun = "staged_run_cluster",
    runs_come_through: staged::StagedUpdateRun = "staged_run",
    cluster_strategies_come_through: staged::ClusterStagedUpdateStrategy = "staged_strategy_cluster",
    strategies_come_through: staged::StagedUpdateStrategy = "staged_strategy",
    cluster_approvals_come_through: staged::ClusterApprovalRequest = "approval_request_cluster",
    approvals_come_through: staged::ApprovalRequest = "approval_request",
    member_clusters_come_through: cluster::MemberCluster = "member_cluster",
    cluster_profiles_come_through: cluster_profile::ClusterProfile = "cluster_profile",
    internal_member_clusters_come_through: cluster::InternalMemberCluster = "internal_member_cluster",
}

fn all() -> Vec<Value> {
    crds().iter().map(|crd| serde_json::to_value(crd).unwrap()).collect()
}

#[test]
fn every_kind_is_stored_as_v1beta1_and_has_its_own_name() {
    let crds = all();
    assert_eq!(crds.len(), 28);
    let names: BTreeSet<&str> =
        crds.iter().filter_map(|crd| crd["metadata"]["name"].as_str()).collect();
    assert_eq!(names.len(), 28);
    for crd in &crds {
        let versions = crd["spec"]["versions"].as_array().unwrap();
        let stored: Vec<&Value> =
            versions.iter().filter(|version| version["storage"] == true).collect();
        assert_eq!(stored.len(), 1, "{}", crd["metadata"]["name"]);
        let is_shared = crd["spec"]["group"] == "multicluster.x-k8s.io";
        assert_eq!(stored[0]["name"], if is_shared { "v1alpha1" } else { "v1beta1" });
    }
}

#[test]
fn v1_lacks_what_only_v1beta1_has() {
    let crds = all();
    let placement = &crds[0]["spec"]["versions"];
    let strategy = "/schema/openAPIV3Schema/properties/spec/properties/strategy/properties";
    let fields = |at: usize| placement[at].pointer(strategy).unwrap().as_object().unwrap();
    assert_eq!(
        (placement[0]["name"].as_str(), placement[1]["name"].as_str()),
        (Some("v1"), Some("v1beta1"))
    );
    assert!(!fields(0).contains_key("deleteStrategy"));
    assert!(fields(1).contains_key("deleteStrategy"));
}

/// Every place in a structural schema says its type, or that it takes anything.
#[test]
fn schemas_are_structural() {
    fn walk(schema: &Value, path: &str) {
        let open = |key: &str| schema[key] == true;
        let typed = schema["type"].is_string()
            || open("x-kubernetes-int-or-string")
            || open("x-kubernetes-preserve-unknown-fields");
        assert!(typed, "{path} has no type: {schema}");
        assert!(schema["nullable"].is_null() && schema["$ref"].is_null(), "{path}");
        if let Some(properties) = schema["properties"].as_object() {
            properties.iter().for_each(|(name, inner)| walk(inner, &format!("{path}.{name}")));
        }
        for key in ["items", "additionalProperties"] {
            if schema[key].is_object() {
                walk(&schema[key], &format!("{path}[]"));
            }
        }
    }
    for crd in all() {
        for version in crd["spec"]["versions"].as_array().unwrap() {
            walk(&version["schema"]["openAPIV3Schema"], crd["metadata"]["name"].as_str().unwrap());
        }
    }
}

#[test]
fn names_columns_and_rules_reach_the_crd() {
    let crds = all();
    let placement = &crds[0]["spec"];
    assert_eq!(placement["names"]["shortNames"][0], "crp");
    assert_eq!(placement["names"]["categories"][1], "fleet-placement");
    let version = &placement["versions"][1];
    assert_eq!(version["additionalPrinterColumns"][2]["name"], "Scheduled");
    assert!(version["subresources"]["status"].is_object());
    let spec = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
    assert_eq!(spec["x-kubernetes-validations"].as_array().unwrap().len(), 4);
    let rolling = &spec["properties"]["strategy"]["properties"]["rollingUpdate"]["properties"];
    assert_eq!(rolling["maxUnavailable"]["default"], "25%");
    assert_eq!(spec["properties"]["policy"]["properties"]["placementType"]["default"], "PickAll");
}
