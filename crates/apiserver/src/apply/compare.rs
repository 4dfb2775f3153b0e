//! What differs between two versions of an object, path by path.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::element::{Element, Identity, same};
use super::fields::{FieldSet, Node, Subset};
use super::grain::{Grain, child, entries, grain, items, unwritten};
use super::own::identified;
use super::reset::Reset;
use crate::shape::Shape;

/// The paths that are new, gone, and different.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) added: FieldSet,
    pub(super) removed: FieldSet,
    pub(super) modified: FieldSet,
}

/// Compares two objects of one shape. Leaves (scalars, atomic values, containers that are empty
/// on both sides) are compared by value, everything else by presence; items by identity, so
/// their order never matters.
pub(super) fn compare(shape: Shape<'_>, old: &Value, new: &Value) -> Changes {
    let change = changed(shape, Some(old), Some(new));
    Changes {
        added: change.added.children,
        removed: change.removed.children,
        modified: change.modified.children,
    }
}

impl Changes {
    pub(super) fn without(&mut self, reset: &Reset) {
        for set in [&mut self.added, &mut self.removed, &mut self.modified] {
            reset.remove_from(set);
        }
    }

    /// What somebody set.
    pub(super) fn written(&self) -> FieldSet {
        self.modified.union(&self.added)
    }
}

/// What changed at and below one path.
#[derive(Debug, Default)]
struct Change {
    added: Subset,
    removed: Subset,
    modified: Subset,
}

/// The changes below one path, as they are found.
#[derive(Debug, Default)]
struct Found {
    added: Vec<Node>,
    removed: Vec<Node>,
    modified: Vec<Node>,
}

impl Found {
    fn push(&mut self, element: impl Fn() -> Element, change: Change) {
        let Change { added, removed, modified } = change;
        let kinds = [
            (&mut self.added, added),
            (&mut self.removed, removed),
            (&mut self.modified, modified),
        ];
        for (nodes, subset) in kinds {
            if !subset.is_empty() {
                nodes.push(Node { element: element(), subset });
            }
        }
    }

    fn into_change(self) -> Change {
        let subset = |nodes| Subset { member: false, children: FieldSet::of_nodes(nodes) };
        Change {
            added: subset(self.added),
            removed: subset(self.removed),
            modified: subset(self.modified),
        }
    }
}

impl Change {
    /// Both, where a value is taken apart in two ways.
    fn and(self, other: Self) -> Self {
        let both = |a: Subset, b: Subset| Subset {
            member: a.member || b.member,
            children: a.children.union(&b.children),
        };
        Self {
            added: both(self.added, other.added),
            removed: both(self.removed, other.removed),
            modified: both(self.modified, other.modified),
        }
    }
}

fn changed(shape: Shape<'_>, old: Option<&Value>, new: Option<&Value>) -> Change {
    match (old, new) {
        (Some(old_value), Some(new_value)) => {
            let (before, after) = (grain(shape, old_value), grain(shape, new_value));
            let change = taken_apart(shape, after, old, new);
            // Where nothing is known, a value may have become one of another kind: then what
            // it was is gone besides.
            if before == after { change } else { taken_apart(shape, before, old, new).and(change) }
        }
        (Some(value), None) => {
            let mut change = taken_apart(shape, grain(shape, value), old, new);
            change.removed.member = true;
            change
        }
        (None, Some(value)) => {
            let mut change = taken_apart(shape, grain(shape, value), old, new);
            change.added.member = true;
            change
        }
        (None, None) => Change::default(),
    }
}

fn taken_apart(shape: Shape<'_>, grain: Grain, old: Option<&Value>, new: Option<&Value>) -> Change {
    match grain {
        Grain::Keys => match (entries(old), entries(new)) {
            (None, None) => leaf(old, new),
            _ => keys(shape, old, new),
        },
        Grain::Items => match (items(old), items(new)) {
            (None, None) => leaf(old, new),
            (before, after) if before == after => Change::default(),
            (before, after) => listed(shape, before, after),
        },
        Grain::Whole => leaf(old, new),
    }
}

/// Presence is told by the caller; here, whether a value that stays is another one.
fn leaf(old: Option<&Value>, new: Option<&Value>) -> Change {
    let mut change = Change::default();
    if let (Some(old), Some(new)) = (old, new) {
        change.modified.member = !same(old, new);
    }
    change
}

fn keys(shape: Shape<'_>, old: Option<&Value>, new: Option<&Value>) -> Change {
    static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    let before = old.and_then(Value::as_object);
    let after = new.and_then(Value::as_object);
    let mut found = Found::default();
    for (key, old) in before.unwrap_or(&NONE) {
        let new = after.and_then(|after| after.get(key).or_else(|| unwritten(shape, key)));
        let change = changed(child(shape, key), Some(old), new);
        found.push(|| Element::Field(key.into()), change);
    }
    for (key, new) in after.unwrap_or(&NONE) {
        if before.is_some_and(|before| before.contains_key(key)) {
            continue;
        }
        let old = before.and_then(|_| unwritten(shape, key));
        let change = changed(child(shape, key), old, Some(new));
        found.push(|| Element::Field(key.into()), change);
    }
    found.into_change()
}

fn listed(shape: Shape<'_>, old: Option<&[Value]>, new: Option<&[Value]>) -> Change {
    let mut all: Vec<(Identity<'_>, bool, &Value)> = Vec::new();
    all.extend(identified(shape, old).into_iter().map(|(identity, item)| (identity, true, item)));
    all.extend(identified(shape, new).into_iter().map(|(identity, item)| (identity, false, item)));
    all.sort_by(|(a, ..), (b, ..)| a.cmp(b));
    let mut found = Found::default();
    for same in all.chunk_by(|(a, ..), (b, ..)| a == b) {
        let side = |old: bool| -> Vec<&Value> {
            same.iter().filter(|(_, is_old, _)| *is_old == old).map(|(.., item)| *item).collect()
        };
        let change = item(shape.items(), &side(true), &side(false));
        found.push(|| same[0].0.element(), change);
    }
    found.into_change()
}

/// An item that occurs twice is one value; when it no longer does, or newly does, it goes and
/// comes with all that is in it.
fn item(shape: Shape<'_>, old: &[&Value], new: &[&Value]) -> Change {
    match (old, new) {
        ([] | [_], [] | [_]) => changed(shape, old.first().copied(), new.first().copied()),
        ([_, _, ..], [_, _, ..]) => {
            let equal = old.len() == new.len() && old.iter().zip(new).all(|(a, b)| same(a, b));
            let mut change = Change::default();
            change.modified.member = !equal;
            change
        }
        ([_, _, ..], _) => {
            let mut change = changed(shape, None, new.first().copied());
            change.removed.member = true;
            change
        }
        (_, _) => {
            let mut change = changed(shape, old.first().copied(), None);
            change.added.member = true;
            change
        }
    }
}
