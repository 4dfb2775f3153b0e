//! What a configuration owns: the paths of all that it mentions.

use serde_json::Value;

use super::element::{Element, Identity};
use super::fields::{FieldSet, Node, Subset};
use super::grain::{Grain, child, entries, grain, items};
use crate::shape::Shape;

/// The paths that `object` mentions: every scalar and everything atomic; a key that no struct
/// declares, and an item, besides what is in it; a declared field itself only if it is null or
/// empty. Of an item that occurs twice, only the item.
pub(super) fn set_of(shape: Shape<'_>, object: &Value) -> FieldSet {
    subset_of(shape, object).children
}

fn subset_of(shape: Shape<'_>, value: &Value) -> Subset {
    match grain(shape, value) {
        Grain::Whole => Subset::member(),
        Grain::Keys => Subset { member: false, children: keys_of(shape, value) },
        Grain::Items => Subset { member: false, children: items_of(shape, value) },
    }
}

fn keys_of(shape: Shape<'_>, value: &Value) -> FieldSet {
    let Some(fields) = entries(Some(value)) else {
        return FieldSet::default();
    };
    let mut nodes = Vec::with_capacity(fields.len());
    for (key, value) in fields {
        let mut subset = subset_of(child(shape, key), value);
        let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
        subset.member |= empty || shape.field(key).is_none();
        if !subset.is_empty() {
            nodes.push(Node { element: Element::Field(key.into()), subset });
        }
    }
    FieldSet::of_nodes(nodes)
}

fn items_of(shape: Shape<'_>, value: &Value) -> FieldSet {
    let mut found: Vec<(Identity<'_>, &Value)> = identified(shape, items(Some(value)));
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    let nodes = found.chunk_by(|(a, _), (b, _)| a == b).map(|same| {
        let children = match same {
            [(_, item)] => subset_of(shape.items(), item).children,
            _ => FieldSet::default(),
        };
        Node { element: same[0].0.element(), subset: Subset { member: true, children } }
    });
    FieldSet::of_nodes(nodes.collect())
}

/// The items with what identifies them. All have an identity, or the check would have refused
/// the object.
pub(super) fn identified<'v>(
    list: Shape<'v>,
    items: Option<&'v [Value]>,
) -> Vec<(Identity<'v>, &'v Value)> {
    let items = items.unwrap_or_default().iter();
    items.filter_map(|item| Some((Identity::of(list, item).ok()?, item))).collect()
}
