//! Texts of objects, in a quarter of the room.
//!
//! An object is too short to be compressed by what it repeats itself, but most of it stands in
//! every other of its kind. `dictionary.txt` has what servers write in those that clusters have
//! the most of; whatever else an object has in it is kept as it is.

/// Words and phrases, of which compressed texts say where they stand.
const DICTIONARY: &str = include_str!("dictionary.txt");

/// `head` as it is, and behind it `text` compressed, which may repeat the head for next to
/// nothing.
pub(super) fn compress(head: &str, text: &str) -> Vec<u8> {
    let rest = lz4_flex::block::compress_with_dict(text.as_bytes(), &dictionary(head.as_bytes()));
    [head.as_bytes(), &rest].concat()
}

/// The text, of `length` bytes, that was compressed to `rest`.
pub(super) fn restore(head: &[u8], rest: &[u8], length: usize) -> Vec<u8> {
    lz4_flex::block::decompress_with_dict(rest, length, &dictionary(head))
        .expect("it was compressed with the same dictionary")
}

fn dictionary(head: &[u8]) -> Vec<u8> {
    [DICTIONARY.as_bytes(), head].concat()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod() -> Value {
        let uid = "ee0c9d5e-41e5-4c7c-8a4e-ca91ad0a8ae6";
        let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "shop-6bd6c9cf8f",
            "uid": uid, "controller": true, "blockOwnerDeletion": true});
        let conditions: Vec<Value> = ["Initialized", "Ready", "ContainersReady", "PodScheduled"]
            .map(|kind| {
                json!({"type": kind, "status": "True", "lastProbeTime": null,
                "lastTransitionTime": "2026-03-01T09:30:00Z"})
            })
            .into();
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "shop-6bd6c9cf8f-x2m4p", "generateName": "shop-6bd6c9cf8f-",
                "namespace": "shop", "uid": "9c6c2c5e-0b0b-4b6c-9e0b-5a1a3f1d2c3b",
                "labels": {"app": "shop", "pod-template-hash": "6bd6c9cf8f"},
                "ownerReferences": [owner]},
            "spec": {"nodeName": "node-17"}, "status": {"conditions": conditions}})
    }

    #[test]
    fn objects_take_a_third_of_their_text() {
        let text = pod().to_string();
        let packed = compress("", &text);
        assert!(packed.len() * 3 < text.len(), "{} of {}", packed.len(), text.len());
    }

    #[test]
    fn every_text_is_restored() {
        let pod = pod().to_string();
        let starts = (0..pod.len()).map(|start| pod[start..].to_owned());
        let pieces = (0..DICTIONARY.len()).step_by(97).map(|start| {
            let end = DICTIONARY.len().min(start + start % 1000);
            format!("\u{1f6a2}{}{}", &DICTIONARY[start..end], start % 7)
        });
        let long = [pod.repeat(200), "x".repeat(100_000), String::new()];
        for text in starts.chain(pieces).chain(long) {
            for head in ["", "9c6c2c5e-0b0b-4b6c-9e0b-5a1a3f1d2c3b"] {
                let packed = compress(head, &text);
                let (kept, rest) = packed.split_at(head.len());
                assert_eq!(kept, head.as_bytes());
                assert_eq!(restore(kept, rest, text.len()), text.as_bytes());
            }
        }
    }
}
