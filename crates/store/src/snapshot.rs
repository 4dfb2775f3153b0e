//! The state at one revision: consistent, and unchanged while it is held.

use std::sync::Arc;

use imbl::OrdMap;
use smol_str::SmolStr;

use crate::entry::{Change, Entry, Event, Revision};
use crate::key::{Key, Shelf};

/// Namespace and name, in the order of a list.
pub(crate) type NamespacedName = (SmolStr, SmolStr);
pub(crate) type Entries<M> = OrdMap<NamespacedName, Arc<Entry<M>>>;

/// A consistent view of all objects. Clones share their structure, so taking one is cheap.
#[derive(Debug)]
pub struct Snapshot<M> {
    pub(crate) revision: Revision,
    pub(crate) shelves: OrdMap<Shelf, Entries<M>>,
}

impl<M> Clone for Snapshot<M> {
    fn clone(&self) -> Self {
        Self { revision: self.revision, shelves: self.shelves.clone() }
    }
}

impl<M> Snapshot<M> {
    pub(crate) fn empty(revision: Revision) -> Self {
        Self { revision, shelves: OrdMap::default() }
    }

    pub fn revision(&self) -> Revision {
        self.revision
    }

    pub fn get(&self, key: &Key) -> Option<&Arc<Entry<M>>> {
        self.shelves.get(&key.shelf)?.get(&(key.namespace.clone(), key.name.clone()))
    }

    /// The objects of a shelf in order of namespace and name.
    pub fn list<'s>(
        &'s self,
        shelf: &Shelf,
    ) -> impl Iterator<Item = &'s Arc<Entry<M>>> + use<'s, M> {
        self.list_from(shelf, "", "")
    }

    /// The same, from a namespace and name on (inclusive).
    pub fn list_from<'s>(
        &'s self,
        shelf: &Shelf,
        namespace: &str,
        name: &str,
    ) -> impl Iterator<Item = &'s Arc<Entry<M>>> + use<'s, M> {
        let from = (SmolStr::new(namespace), SmolStr::new(name));
        let entries = self.shelves.get(shelf);
        entries
            .into_iter()
            .flat_map(move |entries| entries.range(from.clone()..))
            .map(|(_, entry)| entry)
    }

    /// The objects of one namespace of a shelf, by name.
    pub fn list_namespace<'s>(
        &'s self,
        shelf: &Shelf,
        namespace: &str,
    ) -> impl Iterator<Item = &'s Arc<Entry<M>>> + use<'s, M> {
        let namespace = SmolStr::new(namespace);
        let entries = self.list_from(shelf, &namespace, "");
        entries.take_while(move |entry| entry.key.namespace == namespace)
    }

    /// How many objects a shelf holds.
    pub fn count(&self, shelf: &Shelf) -> usize {
        self.shelves.get(shelf).map_or(0, OrdMap::len)
    }

    /// Every shelf that holds something.
    pub fn shelves(&self) -> impl Iterator<Item = &Shelf> {
        self.shelves.iter().map(|(shelf, _)| shelf)
    }

    pub(crate) fn put(&mut self, entry: Arc<Entry<M>>) {
        let shelf = entry.key.shelf.clone();
        let name = (entry.key.namespace.clone(), entry.key.name.clone());
        // In place: a batch of writes copies each node that readers share once.
        if let Some(entries) = self.shelves.get_mut(&shelf) {
            entries.insert(name, entry);
        } else {
            let mut entries = Entries::default();
            entries.insert(name, entry);
            self.shelves.insert(shelf, entries);
        }
    }

    pub(crate) fn remove(&mut self, key: &Key) {
        if let Some(entries) = self.shelves.get_mut(&key.shelf) {
            entries.remove(&(key.namespace.clone(), key.name.clone()));
            if entries.is_empty() {
                self.shelves.remove(&key.shelf);
            }
        }
    }

    pub(crate) fn advance(&mut self, event: &Event<M>) {
        match event.change {
            Change::Created | Change::Modified => self.put(Arc::clone(&event.entry)),
            Change::Deleted => self.remove(&event.entry.key),
        }
        self.revision = event.revision;
    }

    /// Takes an event back; called newest first.
    pub(crate) fn undo(&mut self, event: &Event<M>) {
        match &event.previous {
            Some(previous) => self.put(Arc::clone(previous)),
            None => self.remove(&event.entry.key),
        }
    }
}
