//! Manifests as people write them come through the typed views unchanged, and the CRDs say
//! what an API server has to know.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::applied_work::AppliedManifestWork;
use super::claim::ClusterClaim;
use super::cluster_set::{ManagedClusterSet, ManagedClusterSetBinding};
use super::managed_cluster::ManagedCluster;
use super::manifest_work::ManifestWork;
use super::placement::Placement;
use super::replica_set::ManifestWorkReplicaSet;
use super::{AddOnPlacementScore, PlacementDecision, crds};
use crate::object::view::view_of;

fn round_trip<T: DeserializeOwned + Serialize>(yaml: &str) {
    let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
    for document in documents {
        let view: T = view_of(&document).unwrap();
        assert_eq!(serde_json::to_value(view).unwrap(), document);
    }
}

#[test]
fn every_kind_comes_through_unchanged() {
    round_trip::<ManagedCluster>(include_str!("../../testdata/ocm/cluster.yaml"));
    round_trip::<ManagedClusterSet>(include_str!("../../testdata/ocm/cluster_set.yaml"));
    round_trip::<ManagedClusterSetBinding>(include_str!("../../testdata/ocm/binding.yaml"));
    round_trip::<Placement>(include_str!("../../testdata/ocm/placement.yaml"));
    round_trip::<PlacementDecision>(include_str!("../../testdata/ocm/decision.yaml"));
    round_trip::<AddOnPlacementScore>(include_str!("../../testdata/ocm/score.yaml"));
    round_trip::<ClusterClaim>(include_str!("../../testdata/ocm/claim.yaml"));
    round_trip::<ManifestWork>(include_str!("../../testdata/ocm/work.yaml"));
    round_trip::<AppliedManifestWork>(include_str!("../../testdata/ocm/applied_work.yaml"));
    round_trip::<ManifestWorkReplicaSet>(include_str!("../../testdata/ocm/replica_set.yaml"));
}

fn crd(kind: &str) -> Value {
    let crd = crds().into_iter().find(|crd| crd.spec.names.kind == kind).unwrap();
    serde_json::to_value(crd).unwrap()
}

fn schema(kind: &str, pointer: &str) -> Value {
    let crd = crd(kind);
    let root = crd.pointer("/spec/versions/0/schema/openAPIV3Schema").unwrap();
    root.pointer(pointer).unwrap_or(&Value::Null).clone()
}

#[test]
fn scopes_and_sub_resources_are_upstreams() {
    let cases = [
        ("ManagedCluster", "Cluster", true),
        ("ManagedClusterSet", "Cluster", true),
        ("ManagedClusterSetBinding", "Namespaced", true),
        ("Placement", "Namespaced", true),
        ("PlacementDecision", "Namespaced", true),
        ("AddOnPlacementScore", "Namespaced", true),
        ("ClusterClaim", "Cluster", false),
        ("ManifestWork", "Namespaced", true),
        ("AppliedManifestWork", "Cluster", true),
        ("ManifestWorkReplicaSet", "Namespaced", true),
    ];
    for (kind, scope, status) in cases {
        let crd = crd(kind);
        assert_eq!(crd["spec"]["scope"], scope, "{kind}");
        let version = &crd["spec"]["versions"][0];
        assert_eq!(version["subresources"]["status"].is_object(), status, "{kind}");
    }
}

#[test]
fn kinds_without_a_spec_have_none() {
    for kind in ["PlacementDecision", "AddOnPlacementScore"] {
        assert_eq!(schema(kind, "/properties/spec"), Value::Null, "{kind}");
        assert!(schema(kind, "/properties/status").is_object(), "{kind}");
        assert!(!schema(kind, "/required").to_string().contains("spec"), "{kind}");
    }
}

#[test]
fn old_spellings_are_not_pruned() {
    let keep = "x-kubernetes-preserve-unknown-fields";
    assert_eq!(schema("Placement", "/properties/spec")[keep], true);
    let strategy = "/properties/spec/properties/decisionStrategy";
    assert_eq!(schema("Placement", strategy)[keep], true);
    let reference = "/properties/spec/properties/placementRefs/items/properties/rolloutStrategy";
    let rollout = schema("ManifestWorkReplicaSet", reference);
    assert_eq!(rollout[keep], true);
    // A default would win over the value that stands under an old name.
    assert_eq!(rollout["properties"]["type"]["default"], Value::Null);
    assert_eq!(
        rollout["properties"]["progressive"]["properties"]["progressDeadline"]["default"],
        Value::Null
    );
    assert_eq!(rollout["default"]["type"], "All");
}

#[test]
fn sound_manifests_fit_their_schemas() {
    let files = [
        include_str!("../../testdata/ocm/cluster.yaml"),
        include_str!("../../testdata/ocm/cluster_set.yaml"),
        include_str!("../../testdata/ocm/binding.yaml"),
        include_str!("../../testdata/ocm/placement.yaml"),
        include_str!("../../testdata/ocm/decision.yaml"),
        include_str!("../../testdata/ocm/score.yaml"),
        include_str!("../../testdata/ocm/claim.yaml"),
        include_str!("../../testdata/ocm/work.yaml"),
        include_str!("../../testdata/ocm/applied_work.yaml"),
        include_str!("../../testdata/ocm/replica_set.yaml"),
    ];
    for document in files.iter().flat_map(|file| serde_saphyr::from_multiple(file).unwrap()) {
        let object = crate::Object::from_value(document).unwrap();
        let schema = crate::schema::of(object.kind(), object.version()).unwrap();
        assert_eq!(schema.validate(object.raw(), None), [], "{}", object.key());
        let mut pruned = object.raw().clone();
        schema.prune(&mut pruned);
        assert_eq!(pruned, *object.raw(), "{}", object.key());
    }
}

#[test]
fn every_property_has_a_type_or_says_why_not() {
    for crd in crds() {
        let kind = crd.spec.names.kind.clone();
        let crd = serde_json::to_value(crd).unwrap();
        typed(&kind, crd.pointer("/spec/versions/0/schema/openAPIV3Schema").unwrap());
    }
}

/// What an API server demands of a structural schema.
fn typed(path: &str, schema: &Value) {
    let free = ["x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"];
    assert!(
        schema["type"].is_string() || free.iter().any(|mark| schema[*mark] == true),
        "{path} has no type: {schema}"
    );
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        typed(&format!("{path}.{name}"), property);
    }
    for below in ["items", "additionalProperties"] {
        if schema[below].is_object() {
            typed(&format!("{path}.{below}"), &schema[below]);
        }
    }
    for word in ["$ref", "definitions", "$schema", "if", "const"] {
        assert_eq!(schema[word], Value::Null, "{path} uses {word}");
    }
}
