//! One page of a list, read object by object: a hundred whole objects take many times the memory
//! of the fields that are kept, and fragment the heap.

use std::fmt;

use convoy_api::Object;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::trimmed::Trimmed;

/// The projected objects of a page.
#[derive(Debug)]
pub(crate) struct ListPage {
    pub(crate) version: String,
    /// The continue token; empty on the last page.
    pub(crate) next: String,
    pub(crate) objects: Vec<Object>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    resource_version: String,
    r#continue: Option<String>,
}

impl ListPage {
    /// Reads a page and projects its items with `keep`.
    pub(crate) fn read<'de, D: Deserializer<'de>>(
        body: D,
        keep: impl FnMut(Value) -> Option<Object>,
    ) -> Result<Self, D::Error> {
        body.deserialize_map(PageVisitor(keep))
    }
}

struct PageVisitor<F>(F);

impl<'de, F: FnMut(Value) -> Option<Object>> Visitor<'de> for PageVisitor<F> {
    type Value = ListPage;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<ListPage, A::Error> {
        let (mut metadata, mut objects) = (None, Vec::new());
        while let Some(field) = fields.next_key::<String>()? {
            match field.as_str() {
                "metadata" => metadata = Some(fields.next_value::<Metadata>()?),
                "items" => objects = fields.next_value_seed(ItemsVisitor(&mut self.0))?,
                _ => _ = fields.next_value::<IgnoredAny>()?,
            }
        }
        let Some(Metadata { resource_version: version, r#continue: next }) = metadata else {
            return Err(A::Error::missing_field("metadata"));
        };
        Ok(ListPage { version, next: next.unwrap_or_default(), objects })
    }
}

struct ItemsVisitor<'k, F>(&'k mut F);

impl<'de, F: FnMut(Value) -> Option<Object>> DeserializeSeed<'de> for ItemsVisitor<'_, F> {
    type Value = Vec<Object>;

    fn deserialize<D: Deserializer<'de>>(self, items: D) -> Result<Self::Value, D::Error> {
        items.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(Value) -> Option<Object>> Visitor<'de> for ItemsVisitor<'_, F> {
    type Value = Vec<Object>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut objects = Vec::new();
        while let Some(Trimmed(item)) = items.next_element()? {
            objects.extend((self.0)(item));
        }
        Ok(objects)
    }
}
