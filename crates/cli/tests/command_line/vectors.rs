//! Objects and an instant in, the decision out: every vector through `convoy plan`.

use serde_json::{Map, Value, json};

use crate::{binary, compare};

/// Runs all vectors of a file and names those that fail.
fn hold(file: &str) {
    let path = format!("{}/tests/vectors/{file}.json", env!("CARGO_MANIFEST_DIR"));
    let vectors: Vec<Value> =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(!vectors.is_empty());
    let (left, right) = vectors.split_at(vectors.len() / 2);
    let failures = std::thread::scope(|scope| {
        let left = scope.spawn(|| failures(left));
        let mut all = failures(right);
        all.extend(left.join().unwrap());
        all
    });
    assert!(
        failures.is_empty(),
        "{} of {} fail:\n{}",
        failures.len(),
        vectors.len(),
        failures.join("\n")
    );
}

fn failures(vectors: &[Value]) -> Vec<String> {
    vectors.iter().filter_map(failure).collect()
}

fn failure(vector: &Value) -> Option<String> {
    let manifests =
        json!({"apiVersion": "v1", "kind": "List", "items": vector["objects"]}).to_string();
    let now = vector["now"].as_str().unwrap_or("2026-01-01T00:00:00Z");
    let run =
        binary::run_with(manifests.as_bytes(), &["plan", "-f", "-", "-o", "json", "--now", now]);
    let empty = Map::new();
    let wrong = compare::problems(vector["expect"].as_object().unwrap_or(&empty), &run);
    let id = vector["id"].as_str().unwrap_or_default();
    (!wrong.is_empty()).then(|| format!("{id}: {}", wrong.join("\n    ")))
}

#[test]
fn the_skyhook_vectors_hold() {
    hold("skyhook");
}

/// Our own: batches are scored by the marks on their nodes, which upstream does not have.
#[test]
fn the_skyhook_batch_vectors_hold() {
    hold("skyhook_batches");
}

/// Our own: who is a candidate, where we used to decide otherwise than upstream.
#[test]
fn the_karpenter_candidate_vectors_hold() {
    hold("karpenter_candidates");
}

#[test]
fn the_kubefleet_vectors_hold() {
    hold("kubefleet");
}

#[test]
fn the_deployment_vectors_hold() {
    hold("deployment");
}

#[test]
fn the_karpenter_vectors_hold() {
    hold("karpenter");
}

#[test]
fn the_ocm_vectors_hold() {
    hold("ocm");
}
