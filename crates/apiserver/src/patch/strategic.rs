//! Strategic merge patches: merge patches that know which lists are merged, and by what.
//!
//! Keys with a `$` in front are directives to the merge. They never reach the object, and one
//! of an unknown name is an error.

mod lists;

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use smol_str::SmolStr;

use super::PatchError;
use crate::shape::{Form, PatchStrategy, Shape, untyped};
use lists::{MergeKey, go_map};

pub(super) const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder";
const DELETE: &str = "$deleteFromPrimitiveList";

/// The object that `patch` makes of `current`.
pub fn strategic_merge(
    shape: Shape<'_>,
    current: &Value,
    patch: &Value,
) -> Result<Value, PatchError> {
    let Value::Object(patch) = patch else {
        return Err(PatchError::BadBody("a strategic merge patch is an object".into()));
    };
    let current = current.as_object().cloned().unwrap_or_default();
    merge(shape, current, patch).map(Value::Object)
}

/// What a directive in an object asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Directive {
    Merge,
    Replace,
    Delete,
}

/// The directive that an object of a patch carries.
pub(super) fn directive(patch: &Map<String, Value>) -> Result<Option<Directive>, PatchError> {
    match patch.get(DIRECTIVE) {
        None => Ok(None),
        Some(Value::String(text)) if text == "merge" => Ok(Some(Directive::Merge)),
        Some(Value::String(text)) if text == "replace" => Ok(Some(Directive::Replace)),
        Some(Value::String(text)) if text == "delete" => Ok(Some(Directive::Delete)),
        Some(other) => {
            let (other, patch) = (go_map(other), go_map(&Value::Object(patch.clone())));
            let message = format!("unknown patch type: {other} in map: {patch}");
            Err(PatchError::Impossible(message))
        }
    }
}

pub(super) fn merge(
    shape: Shape<'_>,
    mut current: Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<Map<String, Value>, PatchError> {
    match directive(patch)? {
        Some(Directive::Delete) => return Ok(Map::new()),
        Some(Directive::Replace) => return Ok(without_directives(shape, patch)),
        Some(Directive::Merge) | None => {}
    }
    retain_keys(&mut current, patch)?;
    let ordered = set_orders(shape, &mut current, patch)?;
    for (key, value) in patch {
        if ordered.contains(key.as_str()) || is_done_before(key) {
            continue;
        }
        if let Some(field) = target(key, DELETE)? {
            delete_from_list(&mut current, field, value)?;
        } else if is_unknown_directive(shape, key) {
            return Err(PatchError::BadBody(format!("unknown directive {key:?} in the patch")));
        } else {
            merge_field(shape, &mut current, key, value)?;
        }
    }
    Ok(current)
}

fn is_done_before(key: &str) -> bool {
    key == DIRECTIVE || key == RETAIN_KEYS || key.starts_with(ORDER)
}

/// A `$` may begin the name of a field, or a key of a map that has names of its own.
fn is_unknown_directive(shape: Shape<'_>, key: &str) -> bool {
    key.starts_with('$')
        && matches!(shape.form(), Form::Struct(of) if !of.open)
        && shape.field(key).is_none()
}

/// The field that a directive such as `$setElementOrder/ports` is about.
fn target<'k>(key: &'k str, prefix: &str) -> Result<Option<&'k str>, PatchError> {
    let Some(rest) = key.strip_prefix(prefix) else { return Ok(None) };
    match rest.strip_prefix('/') {
        Some(field) => Ok(Some(field)),
        None => Err(PatchError::BadBody(format!("{prefix} must be followed by / and a field"))),
    }
}

fn retain_keys(
    current: &mut Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<(), PatchError> {
    let Some(retained) = patch.get(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(retained) = retained else {
        return Err(PatchError::BadBody(format!("{RETAIN_KEYS} must be a list of fields")));
    };
    let retained: BTreeSet<&str> = retained.iter().filter_map(Value::as_str).collect();
    let is_retained = |key: &str| retained.contains(key);
    let is_field = |key: &str| ![DELETE, ORDER, DIRECTIVE].iter().any(|it| key.starts_with(it));
    for (key, value) in patch {
        if key != RETAIN_KEYS && !value.is_null() && is_field(key) && !is_retained(key) {
            let message = "invalid patch format of retainKeys".to_owned();
            tracing::debug!(
                key,
                "$retainKeys of a patch does not list all keys that the patch sets"
            );
            return Err(PatchError::BadBody(message));
        }
    }
    current.retain(|key, _| is_retained(key));
    Ok(())
}

/// Merges the lists whose order the patch gives, and names them.
fn set_orders<'p>(
    shape: Shape<'_>,
    current: &mut Map<String, Value>,
    patch: &'p Map<String, Value>,
) -> Result<BTreeSet<&'p str>, PatchError> {
    let mut done = BTreeSet::new();
    for (key, order) in patch {
        let Some(field) = target(key, ORDER)? else { continue };
        let order = as_list(order, key)?;
        let before = current.get(field).map(|list| as_list(list, field)).transpose()?;
        let after = patch.get(field).map(|list| as_list(list, field)).transpose()?;
        done.insert(field);
        let target = FieldPatch::of(shape, field);
        let Some(merge_key) = target.merge_key() else {
            // A list that is one value has its order from the patch itself.
            if let Some(after) = after {
                let taken = stripped(target.shape, &Value::Array(after.to_vec()));
                current.insert(field.to_owned(), taken);
            }
            continue;
        };
        if let Some(after) = after {
            lists::check_order(after, order, &merge_key)?;
        }
        let merged = match (before, after) {
            (None, None) => continue,
            (Some(before), None) => before.to_vec(),
            (None, Some(after)) => {
                let items = target.shape.items();
                after.iter().filter_map(|item| added(items, item, false)).collect()
            }
            (Some(before), Some(after)) => {
                lists::merge(target.shape.items(), &merge_key, before.to_vec(), after)?
            }
        };
        let before = before.unwrap_or_default();
        let server_order = lists::refilled(before, after.unwrap_or_default(), &merge_key)?;
        let sorted = lists::in_order(merged, order, &server_order, &merge_key)?;
        current.insert(field.to_owned(), Value::Array(sorted));
    }
    Ok(done)
}

fn as_list<'v>(value: &'v Value, name: &str) -> Result<&'v [Value], PatchError> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| {
        PatchError::BadBody(format!("expected a list at {name:?} to be ordered or merged"))
    })
}

fn delete_from_list(
    current: &mut Map<String, Value>,
    field: &str,
    gone: &Value,
) -> Result<(), PatchError> {
    if gone.is_null() {
        current.remove(field);
        return Ok(());
    }
    let gone = as_list(gone, field)?;
    if gone.iter().any(|value| value.is_object() || value.is_array()) {
        return Err(PatchError::BadBody(format!("{DELETE}/{field} must be a list of scalars")));
    }
    if let Some(Value::Array(items)) = current.get_mut(field) {
        let gone: BTreeSet<String> = gone.iter().map(Value::to_string).collect();
        items.retain(|item| !gone.contains(&item.to_string()));
    }
    Ok(())
}

/// A field of an object: its shape, and its patch strategy.
struct FieldPatch<'s> {
    shape: Shape<'s>,
    strategy: PatchStrategy,
}

impl<'s> FieldPatch<'s> {
    fn of(shape: Shape<'s>, key: &str) -> Self {
        let shape = shape.alternative().map_or(shape, |(schema, _)| schema);
        let strategy = shape.field(key).map(|field| field.patch.clone()).unwrap_or_default();
        Self { shape: shape.child(key).unwrap_or(untyped()), strategy }
    }

    fn merge_key(&self) -> Option<MergeKey> {
        let key: SmolStr = self.strategy.merge.clone()?;
        Some(if key.is_empty() { MergeKey::Itself } else { MergeKey::Field(key) })
    }
}

fn merge_field(
    shape: Shape<'_>,
    current: &mut Map<String, Value>,
    key: &str,
    value: &Value,
) -> Result<(), PatchError> {
    let target = FieldPatch::of(shape, key);
    let merged = match (current.get_mut(key).map(Value::take), value) {
        (_, Value::Null) => None,
        (Some(Value::Object(_)), Value::Object(patch)) if target.strategy.replace => {
            Some(Value::Object(without_directives(target.shape, patch)))
        }
        (Some(Value::Object(before)), Value::Object(patch)) => {
            Some(Value::Object(merge(target.shape, before, patch)?))
        }
        (Some(Value::Array(before)), Value::Array(patch)) => match target.merge_key() {
            Some(merge_key) => {
                let merged = lists::merge(target.shape.items(), &merge_key, before, patch)?;
                Some(Value::Array(merged))
            }
            None => Some(stripped(target.shape, value)),
        },
        (_, new) => added(target.shape, new, true),
    };
    match merged {
        Some(merged) => {
            current.insert(key.to_owned(), merged);
        }
        None => {
            current.remove(key);
        }
    }
    Ok(())
}

/// JSON without a type may have any keys; only `$patch` means something there.
fn is_directive(shape: Shape<'_>, key: &str) -> bool {
    let has_type =
        !matches!(shape.form(), Form::Untyped | Form::Raw) || shape.alternative().is_some();
    key == DIRECTIVE || has_type && (is_done_before(key) || key.starts_with(DELETE))
}

/// What becomes of a value that nothing is there to merge with: objects that carry a
/// directive are gone, and so are nulls if `nulls_delete`.
fn added(shape: Shape<'_>, value: &Value, nulls_delete: bool) -> Option<Value> {
    match value {
        Value::Object(entries) if entries.contains_key(DIRECTIVE) => None,
        Value::Object(entries) => {
            let kept = |key: &str, entry: &Value| {
                !(is_directive(shape, key) || nulls_delete && entry.is_null())
            };
            let kept = entries.iter().filter(|(key, entry)| kept(key, entry));
            let kept = kept.filter_map(|(key, entry)| {
                let below = FieldPatch::of(shape, key).shape;
                Some((key.clone(), added(below, entry, nulls_delete)?))
            });
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => {
            let below = shape.items();
            let kept = items.iter().filter_map(|item| added(below, item, nulls_delete));
            Some(Value::Array(kept.collect()))
        }
        scalar => Some(scalar.clone()),
    }
}

fn without_directives(shape: Shape<'_>, patch: &Map<String, Value>) -> Map<String, Value> {
    let fields = patch.iter().filter(|(key, _)| !is_directive(shape, key));
    fields
        .map(|(key, value)| (key.clone(), stripped(FieldPatch::of(shape, key).shape, value)))
        .collect()
}

/// A value that is taken as it is, but for the directives in it.
pub(super) fn stripped(shape: Shape<'_>, value: &Value) -> Value {
    match value {
        Value::Object(entries) => Value::Object(without_directives(shape, entries)),
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| stripped(shape.items(), item)).collect())
        }
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests;
