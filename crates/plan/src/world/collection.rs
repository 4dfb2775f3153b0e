//! The objects of one kind in one cluster, and the indexes by which decisions find a few of them.

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::fleet::{PARENT, PLACEMENT_GROUP};
use convoy_api::karpenter::names::NODE_CLAIM;
use convoy_api::kinds::NODE;
use convoy_api::{GroupKind, Object};
use smol_str::SmolStr;

pub(super) type NamespacedName = (SmolStr, SmolStr);

/// The label by which objects of an API group are found. A placement has a few of the thousands
/// of bindings and snapshots of a fleet.
const INDEXED_LABELS: [(&str, &str); 1] = [(PLACEMENT_GROUP, PARENT)];

/// The objects of one kind in one cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct Collection {
    objects: BTreeMap<NamespacedName, Object>,
    /// Index of the namespaced objects by the uid of their controller, empty for those without
    /// one: a namespace may have thousands of pods, of which a ReplicaSet owns three. One set for
    /// all controllers takes less memory than thousands of small ones.
    controlled: Index,
    /// Index by one value of each object that has it: the label of [`INDEXED_LABELS`], or the ID
    /// of a machine.
    identified: Index,
    /// The objects that are being deleted: few of many, and some decisions concern only these.
    deleting: BTreeSet<NamespacedName>,
}

/// A value, and the objects that have it.
type Index = BTreeSet<(SmolStr, NamespacedName)>;

/// A collection as a world shows it.
#[derive(Clone, Copy)]
pub(super) struct Visible<'w> {
    pub(super) collection: &'w Collection,
    pub(super) hidden: Option<&'w BTreeSet<NamespacedName>>,
}

/// The label by which objects of a kind are indexed, if there is one.
pub(crate) fn indexed_label(kind: &GroupKind) -> Option<&'static str> {
    INDEXED_LABELS.iter().find(|(group, _)| kind.group == *group).map(|(_, label)| *label)
}

impl Collection {
    pub(super) fn insert(&mut self, object: Object) -> Option<Object> {
        let name = (object.namespace().clone(), object.name().clone());
        let (controller, value) = (controller(&object), identity(&object));
        if object.is_deleting() {
            self.deleting.insert(name.clone());
        } else if !self.deleting.is_empty() {
            self.deleting.remove(&name);
        }
        let before = self.objects.insert(name.clone(), object);
        let known = before.as_ref().and_then(self::controller);
        reindex(&mut self.controlled, &name, known, controller);
        let known = before.as_ref().and_then(identity);
        reindex(&mut self.identified, &name, known, value);
        before
    }

    pub(super) fn remove(&mut self, name: &NamespacedName) -> Option<Object> {
        let removed = self.objects.remove(name)?;
        self.deleting.remove(name);
        reindex(&mut self.controlled, name, controller(&removed), None);
        reindex(&mut self.identified, name, identity(&removed), None);
        Some(removed)
    }
}

/// The uid under which an object is indexed; none for objects of cluster scope.
fn controller(object: &Object) -> Option<SmolStr> {
    let uid = || object.controller().map_or_else(SmolStr::default, |owner| SmolStr::new(owner.uid));
    (!object.namespace().is_empty()).then(uid)
}

/// The value under which an object is indexed: of a Node and of its claim, which machine it is.
fn identity(object: &Object) -> Option<SmolStr> {
    let value = match object.kind() {
        kind if *kind == NODE => object.spec_text("providerID"),
        kind if *kind == NODE_CLAIM => object.status_text("providerID"),
        kind => return object.label(indexed_label(kind)?).map(SmolStr::new),
    };
    (!value.is_empty()).then(|| SmolStr::new(value))
}

/// Moves an object from the value that is `known` of it to another one.
fn reindex(
    index: &mut Index,
    name: &NamespacedName,
    known: Option<SmolStr>,
    value: Option<SmolStr>,
) {
    if known == value {
        return;
    }
    if let Some(known) = known {
        index.remove(&(known, name.clone()));
    }
    if let Some(value) = value {
        add(index, value, name.clone());
    }
}

/// Adds an object to an index; all objects with one value share its text.
fn add(index: &mut Index, value: SmolStr, name: NamespacedName) {
    let from = (value, NamespacedName::default());
    let next = index.range(&from..).next();
    let known = next.filter(|(known, _)| *known == from.0).map(|(known, _)| known.clone());
    index.insert((known.unwrap_or(from.0), name));
}

impl<'w> Visible<'w> {
    pub(super) fn get(self, name: &NamespacedName) -> Option<&'w Object> {
        self.collection.objects.get(name).filter(|_| self.shows(name))
    }

    pub(super) fn objects(self) -> impl Iterator<Item = &'w Object> {
        let objects = self.collection.objects.iter();
        objects.filter(move |(name, _)| self.shows(name)).map(|(_, object)| object)
    }

    pub(super) fn list(self) -> Vec<&'w Object> {
        match self.hidden {
            None => self.collection.objects.values().collect(),
            Some(_) => self.objects().collect(),
        }
    }

    /// The objects from a name on, with their names.
    pub(super) fn from(
        self,
        name: NamespacedName,
    ) -> impl Iterator<Item = (&'w NamespacedName, &'w Object)> {
        self.collection.objects.range(name..).filter(move |(name, _)| self.shows(name))
    }

    /// The objects of a namespace whose controller has this uid, by name.
    pub(super) fn controlled(
        self,
        namespace: &str,
        uid: &str,
    ) -> impl Iterator<Item = &'w Object> + use<'w> {
        self.indexed(&self.collection.controlled, namespace, uid)
    }

    /// The objects of a namespace that are indexed under this value, by name.
    pub(super) fn identified(
        self,
        namespace: &str,
        value: &str,
    ) -> impl Iterator<Item = &'w Object> + use<'w> {
        self.indexed(&self.collection.identified, namespace, value)
    }

    /// The objects that are being deleted, by name.
    pub(super) fn deleting(self) -> impl Iterator<Item = &'w Object> {
        self.collection.deleting.iter().filter_map(move |name| self.get(name))
    }

    fn indexed(
        self,
        index: &'w Index,
        namespace: &str,
        value: &str,
    ) -> impl Iterator<Item = &'w Object> + use<'w> {
        let from = (SmolStr::new(value), (SmolStr::new(namespace), SmolStr::default()));
        let near = index.range(&from..);
        let (value, (namespace, _)) = from;
        let near = near.take_while(move |(of, name)| *of == value && name.0 == namespace);
        near.filter_map(move |(_, name)| self.get(name))
    }

    fn shows(self, name: &NamespacedName) -> bool {
        self.hidden.is_none_or(|hidden| !hidden.contains(name))
    }

    pub(super) fn len(self) -> usize {
        self.collection.objects.len() - self.hidden.map_or(0, BTreeSet::len)
    }
}

impl FromIterator<(NamespacedName, Object)> for Collection {
    fn from_iter<I: IntoIterator<Item = (NamespacedName, Object)>>(objects: I) -> Self {
        let objects: BTreeMap<NamespacedName, Object> = objects.into_iter().collect();
        let (mut controlled, mut identified) = (Index::new(), Index::new());
        let going = objects.iter().filter(|(_, object)| object.is_deleting());
        let deleting = going.map(|(name, _)| name.clone()).collect();
        for (name, object) in &objects {
            if let Some(uid) = controller(object) {
                add(&mut controlled, uid, name.clone());
            }
            if let Some(value) = identity(object) {
                add(&mut identified, value, name.clone());
            }
        }
        Self { objects, controlled, identified, deleting }
    }
}
