//! The garbage collector: decides what to do about an object whose owners are gone, from the
//! committed state and an index of dependents. `collect` carries the decision out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use convoy_store::{Change, Key};
use smol_str::SmolStr;

use crate::metrics::Work;
use crate::object_meta::{Entry, ObjectMeta, Owner, Snapshot};
use crate::verb::delete::{FOREGROUND, ORPHAN, Propagation};

use super::queue::Queue;
use super::{BATCH, Event};

/// Finds the key of an owner reference; `None` for unknown kinds.
pub(super) type OwnerResolver<'p> = &'p dyn Fn(&Key, &Owner) -> Option<Key>;

/// The dependency index, and the queue of objects to check.
#[derive(Debug)]
pub(super) struct Garbage {
    /// Dependents by the uid of an owner.
    dependents: BTreeMap<SmolStr, BTreeSet<Key>>,
    /// Owners that were seen to go while something still depended on them. Their kind may be
    /// gone too, and then nothing else tells that they are.
    gone: BTreeSet<SmolStr>,
    pub(super) queue: Queue<Key>,
}

/// A write that the collector has to make, to the version of the object that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) key: Key,
    pub(super) uid: SmolStr,
    pub(super) revision: u64,
    pub(super) action: Action,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Delete(Propagation),
    /// Removes the owner references with these uids.
    DropOwners(Vec<SmolStr>),
    /// Sets `blockOwnerDeletion` of the owner references to false.
    Unblock,
    RemoveFinalizer(&'static str),
}

/// The state of an owner, as seen from its dependent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnerState {
    Absent,
    /// Waiting for its dependents to be deleted first.
    Waiting,
    Present,
}

impl Garbage {
    pub(super) fn new(counts: Work) -> Self {
        let (dependents, gone) = (BTreeMap::new(), BTreeSet::new());
        Self { dependents, gone, queue: Queue::new(counts) }
    }

    /// Notes a change, and whom to look at because of it.
    pub(super) fn observe(&mut self, event: &Event, resolve: OwnerResolver<'_>) {
        let entry = &event.entry;
        let key = &entry.key;
        if key.shelf.resource == "events" {
            return;
        }
        if event.change == Change::Deleted {
            for owner in &entry.meta.owners {
                self.unlink(&owner.uid, key);
                self.look_at_owner(key, owner, resolve);
            }
            if self.look_at_dependents(&entry.meta.uid) {
                self.gone.insert(entry.meta.uid.clone());
            }
            return;
        }
        let before = event.previous.as_deref().map(|previous| &previous.meta);
        self.relink(key, before, &entry.meta, resolve);
        if before.is_some_and(|before| !has_turned(before, &entry.meta)) {
            return;
        }
        if !entry.meta.owners.is_empty()
            || waits(&entry.meta, FOREGROUND)
            || waits(&entry.meta, ORPHAN)
        {
            self.queue.add(key.clone());
        }
        if waits(&entry.meta, FOREGROUND) {
            self.look_at_dependents(&entry.meta.uid);
        }
    }

    /// What to do about an object next, as it stands in `snapshot`.
    pub(super) fn decide(
        &self,
        snapshot: &Snapshot,
        resolve: OwnerResolver<'_>,
        key: &Key,
    ) -> Vec<Task> {
        let Some(entry) = snapshot.get(key) else { return Vec::new() };
        let meta = &entry.meta;
        if waits(meta, FOREGROUND) {
            return self.let_go(snapshot, resolve, entry);
        }
        if waits(meta, ORPHAN) {
            return self.orphan(snapshot, resolve, entry);
        }
        if meta.is_deleting() || meta.owners.is_empty() {
            return Vec::new();
        }
        let mut by_state: [Vec<SmolStr>; 3] = Default::default();
        for owner in &meta.owners {
            let state = self.state(snapshot, resolve, key, owner);
            by_state[state as usize].push(owner.uid.clone());
        }
        let [absent, waiting, present] = by_state;
        if !present.is_empty() {
            let others = [absent, waiting].concat();
            return if others.is_empty() {
                vec![]
            } else {
                vec![task(entry, Action::DropOwners(others))]
            };
        }
        let mut dependents = self.dependents_of(snapshot, resolve, entry).peekable();
        if waiting.is_empty() || dependents.peek().is_none() {
            return vec![task(entry, Action::Delete(own_propagation(meta)))];
        }
        // A dependent that waits for this object, which its owner waits for, is a circle: none
        // of them would ever go.
        let is_circle = dependents.any(|(dependent, _)| waits(&dependent.meta, FOREGROUND));
        if is_circle && meta.owners.iter().any(|owner| owner.blocks_deletion) {
            return vec![task(entry, Action::Unblock)];
        }
        vec![task(entry, Action::Delete(Propagation::Foreground))]
    }

    /// An owner goes when nothing is left that blocks it.
    fn let_go(
        &self,
        snapshot: &Snapshot,
        resolve: OwnerResolver<'_>,
        entry: &Arc<Entry>,
    ) -> Vec<Task> {
        let mut dependents = self.dependents_of(snapshot, resolve, entry);
        if dependents.any(|(_, owner)| owner.blocks_deletion) {
            return Vec::new();
        }
        vec![task(entry, Action::RemoveFinalizer(FOREGROUND))]
    }

    /// Dependents forget their owner before it goes.
    fn orphan(
        &self,
        snapshot: &Snapshot,
        resolve: OwnerResolver<'_>,
        entry: &Arc<Entry>,
    ) -> Vec<Task> {
        let uid = &entry.meta.uid;
        let dependents = self.dependents_of(snapshot, resolve, entry).take(BATCH);
        let tasks: Vec<Task> = dependents
            .map(|(dependent, _)| task(dependent, Action::DropOwners(vec![uid.clone()])))
            .collect();
        if tasks.is_empty() { vec![task(entry, Action::RemoveFinalizer(ORPHAN))] } else { tasks }
    }

    /// The objects that an object owns, with the reference that says so.
    fn dependents_of<'s>(
        &'s self,
        snapshot: &'s Snapshot,
        resolve: OwnerResolver<'s>,
        owner: &'s Entry,
    ) -> impl Iterator<Item = (&'s Arc<Entry>, &'s Owner)> {
        let keys = self.dependents.get(&owner.meta.uid).into_iter().flatten();
        keys.filter_map(move |key| {
            let entry = snapshot.get(key)?;
            let reference =
                entry.meta.owners.iter().find(|reference| reference.uid == owner.meta.uid)?;
            (resolve(key, reference)? == owner.key).then_some((entry, reference))
        })
    }

    /// An owner is what its reference names, in the dependent's namespace or in none; whatever
    /// cannot be named is not known to be gone.
    fn state(
        &self,
        snapshot: &Snapshot,
        resolve: OwnerResolver<'_>,
        key: &Key,
        owner: &Owner,
    ) -> OwnerState {
        let Some(owner_key) = resolve(key, owner) else {
            let is_gone = self.gone.contains(&owner.uid);
            return if is_gone { OwnerState::Absent } else { OwnerState::Present };
        };
        match snapshot.get(&owner_key) {
            Some(found) if found.meta.uid == owner.uid => {
                if waits(&found.meta, FOREGROUND) {
                    OwnerState::Waiting
                } else {
                    OwnerState::Present
                }
            }
            _ => OwnerState::Absent,
        }
    }

    fn relink(
        &mut self,
        key: &Key,
        before: Option<&ObjectMeta>,
        meta: &ObjectMeta,
        resolve: OwnerResolver<'_>,
    ) {
        let old = before.map_or(&[][..], |before| &before.owners);
        if *old == *meta.owners {
            return;
        }
        for owner in old {
            self.unlink(&owner.uid, key);
            self.look_at_owner(key, owner, resolve);
        }
        for owner in &meta.owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(key.clone());
        }
    }

    fn unlink(&mut self, uid: &SmolStr, key: &Key) {
        if let Some(keys) = self.dependents.get_mut(uid) {
            keys.remove(key);
            if keys.is_empty() {
                self.dependents.remove(uid);
                self.gone.remove(uid);
            }
        }
    }

    fn look_at_owner(&mut self, key: &Key, owner: &Owner, resolve: OwnerResolver<'_>) {
        if let Some(owner) = resolve(key, owner) {
            self.queue.add(owner);
        }
    }

    /// Looks at all dependents of an owner; whether there are any.
    fn look_at_dependents(&mut self, uid: &SmolStr) -> bool {
        let Some(keys) = self.dependents.get(uid) else { return false };
        for key in keys {
            self.queue.add(key.clone());
        }
        true
    }
}

fn task(entry: &Entry, action: Action) -> Task {
    let (uid, revision) = (entry.meta.uid.clone(), entry.modified.0);
    Task { key: entry.key.clone(), uid, revision, action }
}

fn waits(meta: &ObjectMeta, finalizer: &str) -> bool {
    meta.is_deleting() && meta.has_finalizer(finalizer)
}

/// Whether anything changed that decisions are made by.
fn has_turned(before: &ObjectMeta, after: &ObjectMeta) -> bool {
    before.owners != after.owners
        || before.finalizers != after.finalizers
        || before.is_deleting() != after.is_deleting()
}

/// The propagation policy that the finalizers of an object request.
fn own_propagation(meta: &ObjectMeta) -> Propagation {
    if meta.has_finalizer(ORPHAN) {
        Propagation::Orphan
    } else if meta.has_finalizer(FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    }
}
