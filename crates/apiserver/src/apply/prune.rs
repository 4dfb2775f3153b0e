//! What an applier no longer mentions, and nobody else owns, goes.

use serde_json::{Map, Value};

use super::element::{Element, Identity};
use super::fields::FieldSet;
use super::grain::{Grain, child, entries, grain, items};
use super::own::set_of;
use crate::shape::{Form, Shape};

/// `merged` without what was in `last`, the applier's former set, and is owned by nobody now.
/// `owned` holds all that is: the applier's new set and the sets of all others.
pub(super) fn prune(shape: Shape<'_>, merged: Value, last: &FieldSet, owned: &FieldSet) -> Value {
    let named = |set: &FieldSet| set.with_named_fields(Some(shape));
    let all = named(&set_of(shape, &merged));
    let last = named(last);
    // Everything that was applied last goes, then what somebody owns comes back. That takes
    // along what stood inside of it without an owner, so only what was in `last` really goes.
    let without_last = named(&set_of(shape, &remove(shape, &merged, &last)));
    let unowned = all.difference(&without_last.union(&named(owned)));
    let remaining = named(&set_of(shape, &remove(shape, &merged, &unowned)));
    let gone = all.difference(&remaining).intersection(&last);
    if gone.is_empty() { merged } else { remove(shape, &merged, &gone) }
}

/// Whether pruning can remove anything at all when `set` is the applier's new set.
///
/// It cannot while everything applied last is applied again, with one exception: a declared
/// container that was applied empty, and that others filled without owning what they put in.
pub(super) fn may_remove(shape: Shape<'_>, last: &FieldSet, set: &FieldSet) -> bool {
    !last.difference(set).is_empty() || owns_container(shape, last)
}

fn owns_container(shape: Shape<'_>, set: &FieldSet) -> bool {
    set.nodes().iter().any(|node| {
        let (declared, inner) = match &node.element {
            Element::Field(name) => (shape.field(name).is_some(), child(shape, name)),
            _ => (false, shape.items()),
        };
        let container = grain(inner, &Value::Null) != Grain::Whole;
        declared && node.subset.member && container || owns_container(inner, &node.subset.children)
    })
}

/// `value` without the members of `gone`. A container of which nothing is left becomes null.
fn remove(shape: Shape<'_>, value: &Value, gone: &FieldSet) -> Value {
    if matches!(shape.form(), Form::Scalar(_)) {
        return value.clone();
    }
    match grain(shape, value) {
        Grain::Keys => entries(Some(value)).map_or(Value::Null, |fields| {
            let left = remaining_keys(shape, fields, gone);
            if left.is_empty() { Value::Null } else { Value::Object(left) }
        }),
        Grain::Items => items(Some(value)).map_or(Value::Null, |items| {
            let left = remaining_items(shape, items, gone);
            if left.is_empty() { Value::Null } else { Value::Array(left) }
        }),
        // What is atomic has nothing below it that could be removed alone.
        Grain::Whole if value.is_object() || value.is_array() => Value::Null,
        Grain::Whole => value.clone(),
    }
}

fn remaining_keys(
    shape: Shape<'_>,
    fields: &Map<String, Value>,
    gone: &FieldSet,
) -> Map<String, Value> {
    let mut left = Map::with_capacity(fields.len());
    for (key, value) in fields {
        let value = match gone.field(key) {
            Some(subset) if subset.member => continue,
            Some(subset) => remove(child(shape, key), value, &subset.children),
            None => value.clone(),
        };
        left.insert(key.clone(), value);
    }
    left
}

fn remaining_items(shape: Shape<'_>, items: &[Value], gone: &FieldSet) -> Vec<Value> {
    let mut left = Vec::with_capacity(items.len());
    for item in items {
        let subset = Identity::of(shape, item).ok().and_then(|identity| gone.item(&identity));
        left.push(match subset {
            Some(subset) if subset.member => continue,
            Some(subset) => remove(shape.items(), item, &subset.children),
            None => item.clone(),
        });
    }
    left
}
