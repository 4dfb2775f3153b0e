//! Which manifests were applied in full, as an annotation of the `AppliedManifestWork` tells.
//!
//! Applied objects carry no annotation of ours, so nothing else says whether a manifest has
//! changed since, and whether a difference between it and the object is what the server makes of
//! it or what somebody did. Each entry is a hash of the manifest, and where the server keeps
//! something otherwise than the manifest writes it, also a hash of that difference.

use std::collections::BTreeMap;

use convoy_api::{Object, ObjectKey};
use serde_json::Value;

use crate::dialect::ocm_agent::names::APPLIED_MANIFESTS;
use crate::hash::content::sorted;
use crate::hash::structure::fingerprint;

/// The entries, by hash of the manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record(BTreeMap<String, Option<String>>);

impl Record {
    pub(crate) fn of(applied_work: &Object) -> Self {
        let text = applied_work.annotation(APPLIED_MANIFESTS).unwrap_or_default();
        let entries = text.split(',').filter(|entry| !entry.is_empty());
        let entries = entries.map(|entry| match entry.split_once(':') {
            Some((hash, left)) => (hash.to_owned(), Some(left.to_owned())),
            None => (entry.to_owned(), None),
        });
        Self(entries.collect())
    }

    /// Whether a manifest was applied.
    pub(crate) fn has(&self, hash: &str) -> bool {
        self.0.contains_key(hash)
    }

    /// The difference that was left when a manifest was applied.
    pub(crate) fn left(&self, hash: &str) -> Option<&str> {
        self.0.get(hash)?.as_deref()
    }

    pub(crate) fn set(&mut self, hash: String, left: Option<String>) {
        self.0.insert(hash, left);
    }

    pub(crate) fn text(&self) -> String {
        let entries = self.0.iter().map(|(hash, left)| match left {
            Some(left) => format!("{hash}:{left}"),
            None => hash.clone(),
        });
        entries.collect::<Vec<_>>().join(",")
    }
}

/// The hash of a manifest, and of how it is applied.
pub(crate) fn hash(key: &ObjectKey, manifest: &Value, strategy: &Value) -> String {
    fingerprint(&format!("{key} {} {}", sorted(manifest), sorted(strategy)))
}

/// The hash of a difference.
pub(crate) fn hash_of_difference(difference: &Value) -> String {
    fingerprint(&sorted(difference).to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_reads_as_it_was_written() {
        let mut record = Record::default();
        record.set("b".to_owned(), None);
        record.set("a".to_owned(), Some("x".to_owned()));
        assert_eq!(record.text(), "a:x,b");
        let object = json!({"apiVersion": "work.open-cluster-management.io/v1",
            "kind": "AppliedManifestWork", "metadata": {"name": "h-w",
                "annotations": {APPLIED_MANIFESTS: record.text()}}});
        let object = Object::from_value(object).unwrap();
        assert_eq!(Record::of(&object), record);
        assert_eq!((record.left("a"), record.left("b")), (Some("x"), None));
        assert!(record.has("b") && !record.has("c"));
    }
}
