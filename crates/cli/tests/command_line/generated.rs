//! Random input in process: nothing panics, and the order of objects changes nothing. The same
//! generators drive the fuzz targets in `fuzz/`.

use std::sync::LazyLock;

use arbitrary::Unstructured;
use convoy_cli::finding;
use convoy_cli::input::{Limits, Manifests, read_bytes};
use convoy_cli::report::Report;
use convoy_testkit::mutate::Templates;
use convoy_testkit::property;
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

static TEMPLATES: LazyLock<Templates> = LazyLock::new(|| {
    Templates::from_vectors(&[
        include_str!("../vectors/deployment.json"),
        include_str!("../vectors/karpenter.json"),
        include_str!("../vectors/kubefleet.json"),
        include_str!("../vectors/ocm.json"),
        include_str!("../vectors/skyhook.json"),
    ])
});

fn manifests_from(bytes: Vec<u8>) -> Manifests {
    let mut manifests = Manifests::default();
    read_bytes("fuzz.yaml", bytes, Limits::default(), &mut manifests);
    manifests
}

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn output(bytes: Vec<u8>) -> (String, Value) {
    let report = Report::new(manifests_from(bytes), now(), &[], true);
    (convoy_cli::text::plan(&report), report.to_json())
}

fn list(objects: &[Value]) -> Vec<u8> {
    json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string().into_bytes()
}

/// A manifest with a few bytes written over.
fn scribbled() -> impl Strategy<Value = Vec<u8>> {
    let seeds = [
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: b}\nspec:\n  replicas: 0o7\n  selector: &s {matchLabels: {a: yes}}\n  template: {metadata: {labels: {a: \"yes\"}}}\n---\n- *s\n",
        "{\"apiVersion\": \"v1\", \"kind\": \"NodeList\", \"items\": [{\"metadata\": {\"name\": \"n\"}}, {\"kind\": \"List\", \"items\": []}]}",
        "a: &a\n  <<: {b: 1e3}\n  c: |\n   x\n? d\n: !!str 1\n",
    ];
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8);
    (prop::sample::select(seeds.to_vec()), edits).prop_map(|(seed, edits)| {
        let mut bytes = seed.as_bytes().to_vec();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes
    })
}

proptest! {
    #![proptest_config(property::config(256))]

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        let _ = output(bytes);
    }

    #[test]
    fn any_damaged_text_is_read(bytes in scribbled()) {
        let _ = output(bytes);
    }

    #[test]
    fn any_damaged_objects_are_planned_and_validated(
        bytes in prop::collection::vec(any::<u8>(), 16..400),
    ) {
        let mut objects = TEMPLATES.objects(&mut Unstructured::new(&bytes)).unwrap_or_default();
        let manifests = manifests_from(list(&objects));
        let _ = finding::all(&manifests, &convoy_plan::validate(&manifests.world));
        let is_sound = manifests.is_sound(); // of an object given twice, the first is taken
        let report = Report::new(manifests, now(), &[], true);
        prop_assert!(!convoy_cli::text::plan(&report).is_empty());
        objects.reverse();
        let other = Report::new(manifests_from(list(&objects)), now(), &[], true);
        if is_sound {
            prop_assert_eq!(report.plan.to_json().to_string(), other.plan.to_json().to_string());
        }
    }
}
