//! Lists that a strategic merge patch merges: by a field of their items, or as sets of
//! scalars. The patch's order holds for what it names; other items keep their place among
//! their neighbours.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use smol_str::SmolStr;

use super::PatchError;
use super::{Directive, directive, stripped};
use crate::shape::Shape;

/// As much of an item as an error shows.
const SHOWN_MAX: usize = 200;

/// What tells the items of a merged list apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MergeKey {
    Itself,
    Field(SmolStr),
}

/// Where each identity stands first.
struct Positions(BTreeMap<String, usize>);

impl MergeKey {
    /// The identity of an item, as text so that it can be looked up.
    fn of(&self, item: &Value) -> Result<String, PatchError> {
        let identity = match (self, item) {
            (Self::Itself, Value::Object(_) | Value::Array(_) | Value::Null) => {
                return Err(PatchError::BadBody("cannot merge lists without a merge key".into()));
            }
            (Self::Itself, scalar) => scalar,
            (Self::Field(name), Value::Object(entries)) => {
                entries.get(name.as_str()).ok_or_else(|| {
                    let item: String = go_map(item).chars().take(SHOWN_MAX).collect();
                    let message =
                        format!("map: {item} does not contain declared merge key: {name}");
                    PatchError::Impossible(message)
                })?
            }
            (Self::Field(_), other) => {
                let shape = convoy_api::object::shape(other);
                let message = format!("expected an object in a merged list, got {shape}");
                return Err(PatchError::BadBody(message));
            }
        };
        Ok(identity.to_string())
    }
}

impl Positions {
    fn of(items: &[Value], key: &MergeKey) -> Result<Self, PatchError> {
        let mut positions = BTreeMap::new();
        for (index, item) in items.iter().enumerate() {
            positions.entry(key.of(item)?).or_insert(index);
        }
        Ok(Self(positions))
    }

    fn get(&self, identity: &str) -> Option<usize> {
        self.0.get(identity).copied()
    }
}

/// Merges a patch's list into the one that is there.
pub(super) fn merge(
    items: Shape<'_>,
    key: &MergeKey,
    current: Vec<Value>,
    patch: &[Value],
) -> Result<Vec<Value>, PatchError> {
    let (current, patch) = match key {
        MergeKey::Itself => (current, patch.to_vec()),
        MergeKey::Field(_) => obey(items, key, current, patch)?,
    };
    let merged = match key {
        MergeKey::Itself => union(&current, &patch)?,
        MergeKey::Field(_) => merge_objects(items, key, current.clone(), &patch)?,
    };
    in_order(merged, &patch, &current, key)
}

/// Carries out what items of the patch say about the list, and leaves the other items.
fn obey(
    items: Shape<'_>,
    key: &MergeKey,
    mut current: Vec<Value>,
    patch: &[Value],
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let (mut plain, mut gone, mut replace) = (Vec::new(), Vec::new(), false);
    for item in patch {
        match directive_of(item)? {
            None => plain.push(item.clone()),
            Some(Directive::Delete) => gone.push(key.of(item)?),
            Some(Directive::Replace) => replace = true,
            Some(Directive::Merge) => {
                let message = "merging lists cannot be asked for within a list";
                return Err(PatchError::BadBody(message.into()));
            }
        }
    }
    if replace {
        return Ok((plain.iter().map(|item| stripped(items, item)).collect(), Vec::new()));
    }
    if !gone.is_empty() {
        gone.sort();
        let is_gone = |identity: &String| gone.binary_search(identity).is_ok();
        current.retain(|item| !key.of(item).is_ok_and(|identity| is_gone(&identity)));
    }
    Ok((current, plain))
}

fn merge_objects(
    items: Shape<'_>,
    key: &MergeKey,
    mut current: Vec<Value>,
    patch: &[Value],
) -> Result<Vec<Value>, PatchError> {
    let mut positions = Positions::of(&current, key)?;
    for item in patch {
        let identity = key.of(item)?;
        if let (Some(index), Value::Object(patch)) = (positions.get(&identity), item) {
            let before = match current[index].take() {
                Value::Object(before) => before,
                _ => serde_json::Map::new(),
            };
            current[index] = Value::Object(super::merge(items, before, patch)?);
        } else {
            positions.0.insert(identity, current.len());
            current.push(stripped(items, item));
        }
    }
    Ok(current)
}

fn union(current: &[Value], patch: &[Value]) -> Result<Vec<Value>, PatchError> {
    let mut seen = BTreeSet::new();
    let mut union = Vec::new();
    for item in current.iter().chain(patch) {
        if seen.insert(MergeKey::Itself.of(item)?) {
            union.push(item.clone());
        }
    }
    Ok(union)
}

/// The order on the server that a given order is woven into. Upstream lets new items take the
/// places that deleted ones leave at the end of the list, and clients see the result.
pub(super) fn refilled(
    current: &[Value],
    patch: &[Value],
    key: &MergeKey,
) -> Result<Vec<Value>, PatchError> {
    if *key == MergeKey::Itself {
        return Ok(current.to_vec());
    }
    let (mut gone, mut new) = (BTreeSet::new(), Vec::new());
    for item in patch {
        match directive_of(item)? {
            Some(Directive::Delete) => {
                gone.insert(key.of(item)?);
            }
            None => new.push(item.clone()),
            Some(_) => return Ok(current.to_vec()),
        }
    }
    let mut order = Vec::with_capacity(current.len());
    for item in current {
        if !gone.contains(&key.of(item)?) {
            order.push(item.clone());
        }
    }
    let known = Positions::of(&order, key)?;
    for item in new {
        if known.get(&key.of(&item)?).is_none() {
            order.push(item);
        }
    }
    order.truncate(current.len());
    Ok(order)
}

/// Puts merged items in order: those that `wanted` names in its order, the others in that of
/// `current`, and both woven together so that neighbours stay neighbours.
pub(super) fn in_order(
    merged: Vec<Value>,
    wanted: &[Value],
    current: &[Value],
    key: &MergeKey,
) -> Result<Vec<Value>, PatchError> {
    let wanted = Positions::of(wanted, key)?;
    let current = Positions::of(current, key)?;
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for item in merged {
        let identity = key.of(&item)?;
        let before = current.get(&identity);
        match wanted.get(&identity) {
            Some(place) => named.push((place, before, item)),
            None => others.push((before, item)),
        }
    }
    named.sort_by_key(|(place, ..)| *place);
    others.sort_by_key(|(before, _)| *before);
    let mut woven = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_iter().peekable();
    for (_, before, item) in named {
        let goes_first = |other: &Option<usize>| match (other, before) {
            (Some(other), Some(before)) => *other < before,
            _ => false,
        };
        while let Some((_, other)) = others.next_if(|(other, _)| goes_first(other)) {
            woven.push(other);
        }
        woven.push(item);
    }
    woven.extend(others.map(|(_, other)| other));
    Ok(woven)
}

/// Checks that a patch's list agrees with the order that the patch gives for it: all of its
/// items are named there, and come in that order.
pub(super) fn check_order(
    patch: &[Value],
    order: &[Value],
    key: &MergeKey,
) -> Result<(), PatchError> {
    if order.is_empty() {
        return Ok(());
    }
    let mut order = order.iter();
    for item in patch {
        if directive_of(item)?.is_some() {
            continue;
        }
        let identity = key.of(item)?;
        let found = order
            .by_ref()
            .map(|entry| key.of(entry))
            .find(|entry| entry.is_err() || entry.as_ref().is_ok_and(|entry| *entry == identity));
        match found {
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(error),
            None => {
                let message = format!("the order that the patch gives lacks {identity}");
                return Err(PatchError::BadBody(message));
            }
        }
    }
    Ok(())
}

fn directive_of(item: &Value) -> Result<Option<Directive>, PatchError> {
    item.as_object().map_or(Ok(None), directive)
}

/// A value as Go prints it.
pub(super) fn go_map(value: &Value) -> String {
    match value {
        Value::Object(entries) => {
            let mut entries: Vec<_> = entries.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            let entries = entries.iter().map(|(key, value)| format!("{key}:{}", go_map(value)));
            format!("map[{}]", entries.collect::<Vec<_>>().join(" "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(go_map).collect::<Vec<_>>().join(" "))
        }
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
