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
    /// The members at and below the element.
    pub(super) subset: Subset,
}

/// The members of the set at and below one path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Subset {
    pub(super) member: bool,
    pub(super) children: FieldSet,
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

impl Subset {
    pub(super) fn member() -> Self {
        Self { member: true, children: FieldSet::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }
}

impl FieldSet {
    /// The set of these paths, each a list of field names.
    pub fn of_names(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let mut elements = path.iter().rev().map(|name| Element::Field((*name).into()));
            let Some(last) = elements.next() else { continue };
            let leaf = Self { nodes: vec![Node { element: last, subset: Subset::member() }] };
            let path = elements.fold(leaf, |children, element| Self {
                nodes: vec![Node { element, subset: Subset { member: false, children } }],
            });
            set = set.union(&path);
        }
        set
    }

    /// Reads the trie of `fieldsV1`. Elements of unknown kinds are dropped, with all below them.
    pub fn parse(fields: &Value) -> Result<Self, BadFields> {
        Ok(read(fields, 0)?.children)
    }

    /// The trie of `fieldsV1`, in Kubernetes' order.
    pub fn to_value(&self) -> Value {
        let mut fields = Map::with_capacity(self.nodes.len());
        self.write(&mut fields);
        Value::Object(fields)
    }

    fn write(&self, fields: &mut Map<String, Value>) {
        for node in &self.nodes {
            let children = &node.subset.children;
            let own = node.subset.member && !children.is_empty();
            let mut inner = Map::with_capacity(children.nodes.len() + usize::from(own));
            if own {
                inner.insert(".".to_owned(), Value::Object(Map::new()));
            }
            children.write(&mut inner);
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
                    first.subset.member |= later.subset.member;
                    first.subset.children = first.subset.children.union(&later.subset.children);
                }
                equal
            });
        }
        Self { nodes }
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(super) fn field(&self, name: &str) -> Option<&Subset> {
        self.find(|element| element.cmp_field(name))
    }

    pub(super) fn item(&self, identity: &Identity<'_>) -> Option<&Subset> {
        self.find(|element| element.cmp_identity(identity))
    }

    fn find(&self, order: impl Fn(&Element) -> Ordering) -> Option<&Subset> {
        let position = self.nodes.binary_search_by(|node| order(&node.element)).ok()?;
        Some(&self.nodes[position].subset)
    }

    /// Whether the path is a member.
    pub fn has(&self, path: &[Element]) -> bool {
        let Some((first, rest)) = path.split_first() else { return false };
        self.find(|element| element.cmp(first)).is_some_and(|subset| {
            if rest.is_empty() { subset.member } else { subset.children.has(rest) }
        })
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
                    subset: Subset {
                        member: a.subset.member || b.subset.member,
                        children: a.subset.children.union(&b.subset.children),
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
            Some(Subset { member, children: a.children.intersection(&b.children) })
        })
    }

    /// Without the members of `other`; what is below a removed member stays.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.combined(other, |a, b| {
            let Some(b) = b else { return Some(a.clone()) };
            let member = a.member && !b.member;
            Some(Subset { member, children: a.children.difference(&b.children) })
        })
    }

    /// Without the members of `other` and all that is below them.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        self.combined(other, |a, b| match b {
            None => Some(a.clone()),
            Some(b) if b.member => None,
            Some(b) => {
                let children = a.children.recursive_difference(&b.children);
                Some(Subset { member: a.member, children })
            }
        })
    }

    /// The nodes of this set, each made with the part that `other` has at the same element.
    fn combined(
        &self,
        other: &Self,
        subset: impl Fn(&Subset, Option<&Subset>) -> Option<Subset>,
    ) -> Self {
        let mut nodes = Vec::new();
        for pair in joined(self, other) {
            let (Some(a), b) = pair else { continue };
            match subset(&a.subset, b.map(|node| &node.subset)) {
                Some(subset) if !subset.is_empty() => {
                    nodes.push(Node { element: a.element.clone(), subset });
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
                node.subset.member &= !their.subset.member;
                node.subset.children.subtract(&their.subset.children);
            }
            !node.subset.is_empty()
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
            let member = node.subset.member || declared;
            let children = node.subset.children.with_named_fields(inner);
            nodes.push(Node { element: node.element.clone(), subset: Subset { member, children } });
        }
        Self { nodes }
    }

    pub(super) fn for_each_subset(&mut self, visit: &mut impl FnMut(&Element, &mut Subset)) {
        for node in &mut self.nodes {
            visit(&node.element, &mut node.subset);
        }
    }

    /// All members: at each level first the members there, then what is below.
    pub(super) fn for_each(&self, path: &mut Vec<Element>, visit: &mut impl FnMut(&[Element])) {
        for node in self.nodes.iter().filter(|node| node.subset.member) {
            path.push(node.element.clone());
            visit(path);
            path.pop();
        }
        for node in &self.nodes {
            path.push(node.element.clone());
            node.subset.children.for_each(path, visit);
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

fn read(fields: &Value, depth: usize) -> Result<Subset, BadFields> {
    let fields = match fields {
        Value::Object(fields) => fields,
        Value::Null => return Ok(Subset::member()),
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
            let subset = read(inner, depth + 1)?;
            nodes.push(Node { element, subset });
        }
    }
    let children = FieldSet::of_nodes(nodes);
    Ok(Subset { member: member || children.is_empty(), children })
}
