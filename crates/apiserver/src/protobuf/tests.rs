//! Bodies by hand; the recorded ones are in the crate's `tests`.

use convoy_testkit::property;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let run = |number: u8, bytes: &[u8]| {
        let mut field = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        field.extend(bytes);
        field
    };
    let types = [run(1, api_version.as_bytes()), run(2, kind.as_bytes())].concat();
    [MAGIC.to_vec(), run(1, &types), run(2, raw), run(3, b""), run(4, b"")].concat()
}

#[test]
fn a_present_zero_counts_where_a_pointer_can_tell() {
    // metadata {name: "a", uid: "", generation: 0}, spec {replicas: 0}
    let raw = b"\x0a\x07\x0a\x01a\x2a\x00\x38\x00\x12\x02\x08\x00";
    let received = decode(&body("apps/v1", "ReplicaSet", raw)).unwrap();
    let wanted = json!({"kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": {"name": "a"},
        "spec": {"replicas": 0, "selector": null, "template": {"metadata": {},
            "spec": {"containers": null}}}, "status": {"replicas": 0}});
    assert_eq!(received.value, wanted);
}

#[test]
fn what_is_no_body_is_refused() {
    assert_eq!(decode(b"{}"), Err(ProtobufError::NoEnvelope));
    let unknown = decode(&body("v2", "Pod", b""));
    assert!(matches!(unknown, Err(ProtobufError::UnknownKind { .. })));
    for raw in [&b"\x0a\x7f"[..], b"\xff", b"\x00\x00", b"\x0b", b"\x08\x01", b"\x0a\x02\x0a\x05"] {
        let found = decode(&body("v1", "Pod", raw));
        assert!(matches!(found, Err(ProtobufError::Malformed(_))), "{raw:?} gave {found:?}");
    }
}

#[test]
fn fields_of_newer_releases_are_skipped() {
    let received = decode(&body("v1", "ConfigMap", b"\xfa\x3e\x01x\x80\x7d\x05")).unwrap();
    assert_eq!(received.value["metadata"], json!({}));
}

proptest! {
    #![proptest_config(property::config(256))]

    #[test]
    fn no_bytes_make_it_panic(raw in prop::collection::vec(any::<u8>(), 0..120)) {
        let _ = decode(&body("v1", "Pod", &raw));
        let _ = decode(&body("apiextensions.k8s.io/v1", "CustomResourceDefinition", &raw));
        let _ = decode(&raw);
    }
}
