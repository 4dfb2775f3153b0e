//! Manifests as people write them come through the typed views unchanged, and the CRDs say
//! what the API says.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::node_claim::NodeClaim;
use super::node_pool::NodePool;
use super::{crds, kwok, node_pool_v1beta1};
use crate::object::view::view_of;

fn round_trip<T: DeserializeOwned + Serialize>(yaml: &str) {
    let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
    assert!(!documents.is_empty());
    for document in documents {
        let view: T = view_of(&document).unwrap();
        assert_eq!(serde_json::to_value(view).unwrap(), document);
    }
}

#[test]
fn node_pools_come_through_unchanged() {
    round_trip::<NodePool>(include_str!("../../testdata/karpenter/nodepool.yaml"));
    let beta = include_str!("../../testdata/karpenter/nodepool-v1beta1.yaml");
    round_trip::<node_pool_v1beta1::NodePool>(beta);
}

#[test]
fn node_claims_come_through_unchanged() {
    round_trip::<NodeClaim>(include_str!("../../testdata/karpenter/nodeclaim.yaml"));
}

#[test]
fn node_classes_come_through_unchanged() {
    round_trip::<kwok::KWOKNodeClass>(include_str!("../../testdata/karpenter/kwoknodeclass.yaml"));
}

#[test]
fn a_pool_is_served_in_two_versions_and_stored_in_the_newer() {
    let crds: Vec<Value> = crds().iter().map(|crd| serde_json::to_value(crd).unwrap()).collect();
    let names: Vec<&str> = crds.iter().filter_map(|crd| crd["metadata"]["name"].as_str()).collect();
    let wanted =
        ["nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "kwoknodeclasses.karpenter.kwok.sh"];
    assert_eq!(names, wanted);
    let versions = crds[0]["spec"]["versions"].as_array().unwrap();
    let stored: Vec<(&str, bool)> = versions
        .iter()
        .map(|version| (version["name"].as_str().unwrap(), version["storage"] == true))
        .collect();
    assert!(stored.contains(&("v1", true)) && stored.contains(&("v1beta1", false)), "{stored:?}");
    let v1 = versions.iter().find(|version| version["name"] == "v1").unwrap();
    assert_eq!(v1["subresources"]["scale"]["statusReplicasPath"], ".status.nodes");
    let budgets =
        "/schema/openAPIV3Schema/properties/spec/properties/disruption/properties/budgets";
    let budgets = v1.pointer(budgets).unwrap();
    assert_eq!(budgets["maxItems"], 50);
    assert_eq!(budgets["default"], serde_json::json!([{"nodes": "10%"}]));
}
