//! The parsed metadata that is kept beside an object's bytes, so that selectors, owner references
//! and deletions need not parse the object again.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use convoy_store::Key;
use serde::Deserialize;
use smol_str::{SmolStr, format_smolstr};

use crate::layout::Layout;

/// The parsed metadata of a stored object.
#[derive(Clone, Debug, Default)]
pub struct ObjectMeta {
    pub layout: Layout,
    pub uid: SmolStr,
    pub labels: Box<[(SmolStr, SmolStr)]>,
    pub owners: Box<[Owner]>,
    pub finalizers: Box<[SmolStr]>,
    /// `deletionTimestamp`: set while finalizers or a grace period delay the deletion.
    pub deletion: Option<SmolStr>,
    pub generation: i64,
    /// Pods: the node they are bound to. It is what most watches of pods select by.
    pub node_name: SmolStr,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub api_version: SmolStr,
    pub kind: SmolStr,
    pub name: SmolStr,
    pub uid: SmolStr,
    pub blocks_deletion: bool,
    pub is_controller: bool,
}

pub type Entry = convoy_store::Entry<ObjectMeta>;
pub type Store = convoy_store::Store<ObjectMeta>;
pub type Snapshot = convoy_store::Snapshot<ObjectMeta>;

impl ObjectMeta {
    pub fn label(&self, key: &str) -> Option<&str> {
        let index = self.labels.binary_search_by(|(known, _)| known.as_str().cmp(key)).ok()?;
        Some(&self.labels[index].1)
    }

    pub fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == name)
    }

    pub fn is_deleting(&self) -> bool {
        self.deletion.is_some()
    }
}

impl convoy_store::Metadata for ObjectMeta {
    fn mark(&self) -> Option<&str> {
        Some(&self.node_name)
    }

    fn read(key: &Key, value: &Bytes) -> Self {
        // Only this server writes, so bytes that do not parse are a defect below us; empty
        // metadata keeps the object readable and deletable.
        let Ok(peek) = serde_json::from_slice::<Peek<'_>>(value) else {
            tracing::error!(%key, "could not parse the metadata of a stored object");
            return Self::default();
        };
        let metadata = peek.metadata;
        let labels = metadata.labels.into_iter().flatten();
        let mut labels: Vec<_> = labels.map(|(key, value)| (smol(key), smol(value))).collect();
        labels.sort_unstable();
        Self {
            layout: Layout::of(value),
            uid: smol(metadata.uid),
            labels: labels.into(),
            owners: metadata.owner_references.into_iter().flatten().map(Owner::from).collect(),
            finalizers: metadata.finalizers.into_iter().flatten().map(smol).collect(),
            deletion: metadata.deletion_timestamp.map(smol),
            generation: metadata.generation.unwrap_or(0),
            node_name: match (key.shelf.resource.as_str(), peek.spec) {
                ("pods", Some(spec)) => smol(spec.node_name),
                _ => SmolStr::default(),
            },
        }
    }
}

fn smol(text: Cow<'_, str>) -> SmolStr {
    SmolStr::new(text)
}

#[derive(Deserialize)]
struct Peek<'b> {
    #[serde(borrow, default)]
    metadata: PeekMetadata<'b>,
    #[serde(borrow, default, deserialize_with = "spec_if_object")]
    spec: Option<PeekSpec<'b>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PeekMetadata<'b> {
    #[serde(borrow, default)]
    uid: Cow<'b, str>,
    #[serde(borrow)]
    labels: Option<BTreeMap<Cow<'b, str>, Cow<'b, str>>>,
    #[serde(borrow)]
    owner_references: Option<Vec<PeekOwner<'b>>>,
    #[serde(borrow)]
    finalizers: Option<Vec<Cow<'b, str>>>,
    #[serde(borrow)]
    deletion_timestamp: Option<Cow<'b, str>>,
    generation: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PeekOwner<'b> {
    #[serde(borrow, default)]
    api_version: Cow<'b, str>,
    #[serde(borrow, default)]
    kind: Cow<'b, str>,
    #[serde(borrow, default)]
    name: Cow<'b, str>,
    #[serde(borrow, default)]
    uid: Cow<'b, str>,
    block_owner_deletion: Option<bool>,
    controller: Option<bool>,
}

#[derive(Default)]
struct PeekSpec<'b> {
    node_name: Cow<'b, str>,
}

/// Reads `nodeName` of a spec that is an object; a custom kind's spec may be anything.
fn spec_if_object<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<PeekSpec<'de>>, D::Error> {
    deserializer.deserialize_any(SpecVisitor)
}

struct SpecVisitor;

impl<'de> serde::de::Visitor<'de> for SpecVisitor {
    type Value = Option<PeekSpec<'de>>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut spec = PeekSpec::default();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            if key == "nodeName" {
                if let serde_json::Value::String(name) = map.next_value()? {
                    spec.node_name = Cow::Owned(name);
                }
            } else {
                map.next_value::<serde::de::IgnoredAny>()?;
            }
        }
        Ok(Some(spec))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(
        self,
        mut items: A,
    ) -> Result<Self::Value, A::Error> {
        while items.next_element::<serde::de::IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

impl From<PeekOwner<'_>> for Owner {
    fn from(peek: PeekOwner<'_>) -> Self {
        Self {
            api_version: smol(peek.api_version),
            kind: smol(peek.kind),
            name: smol(peek.name),
            uid: smol(peek.uid),
            blocks_deletion: peek.block_owner_deletion.unwrap_or(false),
            is_controller: peek.controller.unwrap_or(false),
        }
    }
}

/// The name of the shelf that holds the objects of a group and plural.
pub fn shelf_name(group: &str, plural: &str) -> SmolStr {
    if group.is_empty() { SmolStr::new(plural) } else { format_smolstr!("{group}/{plural}") }
}

#[cfg(test)]
mod tests {
    use convoy_store::{Metadata as _, Shelf};

    use super::*;

    #[test]
    fn metadata_holds_what_selectors_and_deletions_need() {
        let pod = br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","uid":"u1","generation":2,
            "labels":{"b":"2","a":"1\n"},"finalizers":["x/y"],"deletionTimestamp":"2026-01-01T00:00:00Z",
            "ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"u0","controller":true}]},
            "spec":{"containers":[{"name":"c"}],"nodeName":"n1"}}"#;
        let key = Shelf::new("", "pods").key("default", "p");
        let meta = ObjectMeta::read(&key, &Bytes::from_static(pod));
        assert_eq!(
            (meta.label("a"), meta.label("b"), meta.label("c")),
            (Some("1\n"), Some("2"), None)
        );
        assert_eq!((meta.uid.as_str(), meta.node_name.as_str(), meta.generation), ("u1", "n1", 2));
        assert!(meta.is_deleting() && meta.has_finalizer("x/y"));
        assert!(meta.owners[0].is_controller && !meta.owners[0].blocks_deletion);
    }

    #[test]
    fn custom_specs_may_be_anything() {
        let key = Shelf::new("", "example.com/widgets").key("", "w");
        for spec in ["[1,{}]", "\"text\"", "null", "1.5", "true", "-3", "7", "{}"] {
            let bytes = format!(r#"{{"metadata":{{"name":"w","uid":"u"}},"spec":{spec}}}"#);
            assert_eq!(ObjectMeta::read(&key, &Bytes::from(bytes)).uid, "u", "{spec}");
        }
    }
}
