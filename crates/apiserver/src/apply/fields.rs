//! Sets of field paths, as a trie: what a manager owns, and what a change touched.
//!
//! A node says whether its own path is a member, besides the paths below it. No node is kept
//! that is neither a member nor has any below it, so equal sets have equal tries.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::element::{BadElement, Element, Identity};
use crate::shape::{Form, Shape};

/// Deeper than any JSON that is read, and shallow enough for every walk to be recursive.
pub(super) const DEPTH_MAX: usize = 200;

/// A set of paths; the empty path is never a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Sorted by element, each once.
    nodes: Vec<Node>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) element: Element,
    /// What is known below the element; the element itself is part of it.
    pub(super) part: Part,
}

/// The subset at and below one path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) member: bool,
    pub(super) below: FieldSet,
}

/// Why `fieldsV1` could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFields {
    #[error("expected an object")]
    NotAnObject,
    #[error("nested too deeply")]
    TooDeep,
    #[error(transparent)]
    Element(#[from] BadElement),
}

impl Part {
    pub(super) fn member() -> Self {
        Self { member: true, below: FieldSet::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl FieldSet {
    /// The set of these paths, each a list of field names.
    pub fn of_names(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let mut elements = path.iter().rev().map(|name| Element::Field((*name).into()));
            let Some(last) = elements.next() else { continue };
            let leaf = Self { nodes: vec![Node { element: last, part: Part::member() }] };
            let path = elements.fold(leaf, |below, element| Self {
                nodes: vec![Node { element, part: Part { member: false, below } }],
            });
            set = set.union(&path);
        }
        set
    }

    /// Reads the trie of `fieldsV1`. Elements of unknown kinds are dropped, with all below them.
    pub fn parse(fields: &Value) -> Result<Self, BadFields> {
        Ok(read(fields, 0)?.below)
    }

    /// The trie of `fieldsV1`, in Kubernetes' order.
    pub fn to_value(&self) -> Value {
        let mut fields = Map::with_capacity(self.nodes.len());
        self.write(&mut fields);
        Value::Object(fields)
    }

    fn write(&self, fields: &mut Map<String, Value>) {
        for node in &self.nodes {
            let below = &node.part.below;
            let own = node.part.member && !below.is_empty();
            let mut inner = Map::with_capacity(below.nodes.len() + usize::from(own));
            if own {
                inner.insert(".".to_owned(), Value::Object(Map::new()));
            }
            below.write(&mut inner);
            fields.insert(node.element.text(), Value::Object(inner));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Builds a set from nodes in any order, each element once; empty ones are left out.
    pub(super) fn of_nodes(mut nodes: Vec<Node>) -> Self {
        if !nodes.is_sorted_by(|a, b| a.element < b.element) {
            nodes.sort_by(|a, b| a.element.cmp(&b.element));
            nodes.dedup_by(|later, first| {
                let equal = later.element == first.element;
                if equal {
                    first.part.member |= later.part.member;
                    first.part.below = first.part.below.union(&later.part.below);
                }
                equal
            });
        }
        Self { nodes }
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(super) fn field(&self, name: &str) -> Option<&Part> {
        self.find(|element| element.cmp_field(name))
    }

    pub(super) fn item(&self, identity: &Identity<'_>) -> Option<&Part> {
        self.find(|element| element.cmp_identity(identity))
    }

    fn find(&self, order: impl Fn(&Element) -> Ordering) -> Option<&Part> {
        let position = self.nodes.binary_search_by(|node| order(&node.element)).ok()?;
        Some(&self.nodes[position].part)
    }

    /// Whether the path is a member.
    pub fn has(&self, path: &[Element]) -> bool {
        let Some((first, rest)) = path.split_first() else { return false };
        self.find(|element| element.cmp(first))
            .is_some_and(|part| if rest.is_empty() { part.member } else { part.below.has(rest) })
    }

    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        let mut nodes = Vec::with_capacity(self.nodes.len().max(other.nodes.len()));
        for pair in joined(self, other) {
            nodes.push(match pair {
                (Some(node), None) | (None, Some(node)) => node.clone(),
                (Some(a), Some(b)) => Node {
                    element: a.element.clone(),
                    part: Part {
                        member: a.part.member || b.part.member,
                        below: a.part.below.union(&b.part.below),
                    },
                },
                (None, None) => continue,
            });
        }
        Self { nodes }
    }

    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.combined(other, |a, b| {
            let b = b?;
            let member = a.member && b.member;
            Some(Part { member, below: a.below.intersection(&b.below) })
        })
    }

    /// Without the members of `other`; what is below a removed member stays.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.combined(other, |a, b| {
            let Some(b) = b else { return Some(a.clone()) };
            let member = a.member && !b.member;
            Some(Part { member, below: a.below.difference(&b.below) })
        })
    }

    /// Without the members of `other` and all that is below them.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        self.combined(other, |a, b| match b {
            None => Some(a.clone()),
            Some(b) if b.member => None,
            Some(b) => {
                let below = a.below.recursive_difference(&b.below);
                Some(Part { member: a.member, below })
            }
        })
    }

    /// The nodes of this set, each made with the part that `other` has at the same element.
    fn combined(&self, other: &Self, part: impl Fn(&Part, Option<&Part>) -> Option<Part>) -> Self {
        let mut nodes = Vec::new();
        for pair in joined(self, other) {
            let (Some(a), b) = pair else { continue };
            match part(&a.part, b.map(|node| &node.part)) {
                Some(part) if !part.is_empty() => {
                    nodes.push(Node { element: a.element.clone(), part });
                }
                _ => {}
            }
        }
        Self { nodes }
    }

    /// [`FieldSet::difference`] in place, which spares what is not touched.
    pub(super) fn subtract(&mut self, other: &Self) {
        let mut theirs = other.nodes.iter().peekable();
        self.nodes.retain_mut(|node| {
            while theirs.next_if(|their| their.element < node.element).is_some() {}
            if let Some(their) = theirs.next_if(|their| their.element == node.element) {
                node.part.member &= !their.part.member;
                node.part.below.subtract(&their.part.below);
            }
            !node.part.is_empty()
        });
    }

    /// With every declared field on the way to a member as a member too. A set leaves them out,
    /// but to remove all of a struct is to remove the struct.
    #[must_use]
    pub(super) fn with_named_fields(&self, shape: Option<Shape<'_>>) -> Self {
        let mut nodes = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let (declared, inner) = match (&node.element, shape) {
                (Element::Field(name), Some(shape)) => {
                    (shape.field(name).is_some(), shape.child(name))
                }
                (Element::Key(_), Some(shape)) if matches!(shape.form(), Form::List(_)) => {
                    (false, Some(shape.items()))
                }
                _ => (false, None),
            };
            let member = node.part.member || declared;
            let below = node.part.below.with_named_fields(inner);
            nodes.push(Node { element: node.element.clone(), part: Part { member, below } });
        }
        Self { nodes }
    }

    pub(super) fn for_each_part(&mut self, visit: &mut impl FnMut(&Element, &mut Part)) {
        for node in &mut self.nodes {
            visit(&node.element, &mut node.part);
        }
    }

    /// All members: at each level first the members there, then what is below.
    pub(super) fn for_each(&self, path: &mut Vec<Element>, visit: &mut impl FnMut(&[Element])) {
        for node in self.nodes.iter().filter(|node| node.part.member) {
            path.push(node.element.clone());
            visit(path);
            path.pop();
        }
        for node in &self.nodes {
            path.push(node.element.clone());
            node.part.below.for_each(path, visit);
            path.pop();
        }
    }
}

/// The nodes of two sets by element, in order.
fn joined<'s>(
    a: &'s FieldSet,
    b: &'s FieldSet,
) -> impl Iterator<Item = (Option<&'s Node>, Option<&'s Node>)> {
    let mut a = a.nodes.iter().peekable();
    let mut b = b.nodes.iter().peekable();
    std::iter::from_fn(move || {
        let order = match (a.peek(), b.peek()) {
            (Some(a), Some(b)) => a.element.cmp(&b.element),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return None,
        };
        let first = if order.is_le() { a.next() } else { None };
        let second = if order.is_ge() { b.next() } else { None };
        Some((first, second))
    })
}

fn read(fields: &Value, depth: usize) -> Result<Part, BadFields> {
    let fields = match fields {
        Value::Object(fields) => fields,
        Value::Null => return Ok(Part::member()),
        _ => return Err(BadFields::NotAnObject),
    };
    if depth > DEPTH_MAX {
        return Err(BadFields::TooDeep);
    }
    let mut member = false;
    let mut nodes = Vec::with_capacity(fields.len());
    for (key, inner) in fields {
        if key == "." {
            member = true;
        } else if let Some(element) = Element::parse(key)? {
            let part = read(inner, depth + 1)?;
            nodes.push(Node { element, part });
        }
    }
    let below = FieldSet::of_nodes(nodes);
    Ok(Part { member: member || below.is_empty(), below })
}
