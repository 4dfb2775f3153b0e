//! Garbage: objects whose owners are gone. This decides what to do about one object, from the
//! committed state and an index of who depends on whom; carrying it out is the collector's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use convoy_store::{Change, Key};
use smol_str::SmolStr;

use crate::head::{Entry, Head, Owner, Snapshot};
use crate::metrics::Work;
use crate::verb::delete::{FOREGROUND, ORPHAN, Propagation};

use super::queue::Queue;
use super::{BATCH, Event};

/// Where a reference of a dependent points; none for kinds that nobody knows.
pub(super) type Place<'p> = &'p dyn Fn(&Key, &Owner) -> Option<Key>;

/// Who depends on whom, and whom to look at.
#[derive(Debug)]
pub(super) struct Garbage {
    /// Dependents by the uid of an owner.
    dependents: BTreeMap<SmolStr, BTreeSet<Key>>,
    /// Owners that were seen to go while something still depended on them. Their kind may be
    /// gone too, and then nothing else tells that they are.
    gone: BTreeSet<SmolStr>,
    pub(super) queue: Queue<Key>,
}

/// One thing to do. Each is about the very version that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Act {
    pub(super) key: Key,
    pub(super) uid: SmolStr,
    pub(super) revision: u64,
    pub(super) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    Delete(Propagation),
    /// Takes away the references to owners with these uids.
    DropOwners(Vec<SmolStr>),
    /// Lets the object's owners go before it.
    Unblock,
    RemoveFinalizer(&'static str),
}

/// What an owner is to its dependent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Absent,
    /// On its way out, after its dependents.
    Waiting,
    Present,
}

impl Garbage {
    pub(super) fn new(counts: Work) -> Self {
        let (dependents, gone) = (BTreeMap::new(), BTreeSet::new());
        Self { dependents, gone, queue: Queue::new(counts) }
    }

    /// Notes a change, and whom to look at because of it.
    pub(super) fn observe(&mut self, event: &Event, place: Place<'_>) {
        let entry = &event.entry;
        let key = &entry.key;
        if key.shelf.resource == "events" {
            return;
        }
        if event.change == Change::Deleted {
            for owner in &entry.head.owners {
                self.unlink(&owner.uid, key);
                self.look_at_owner(key, owner, place);
            }
            if self.look_at_dependents(&entry.head.uid) {
                self.gone.insert(entry.head.uid.clone());
            }
            return;
        }
        let before = event.previous.as_deref().map(|previous| &previous.head);
        self.relink(key, before, &entry.head, place);
        if before.is_some_and(|before| !has_turned(before, &entry.head)) {
            return;
        }
        if !entry.head.owners.is_empty()
            || waits(&entry.head, FOREGROUND)
            || waits(&entry.head, ORPHAN)
        {
            self.queue.add(key.clone());
        }
        if waits(&entry.head, FOREGROUND) {
            self.look_at_dependents(&entry.head.uid);
        }
    }

    /// What to do about an object next, as it stands in `snapshot`.
    pub(super) fn decide(&self, snapshot: &Snapshot, place: Place<'_>, key: &Key) -> Vec<Act> {
        let Some(entry) = snapshot.get(key) else { return Vec::new() };
        let head = &entry.head;
        if waits(head, FOREGROUND) {
            return self.let_go(snapshot, place, entry);
        }
        if waits(head, ORPHAN) {
            return self.orphan(snapshot, place, entry);
        }
        if head.is_deleting() || head.owners.is_empty() {
            return Vec::new();
        }
        let mut by_standing: [Vec<SmolStr>; 3] = Default::default();
        for owner in &head.owners {
            let standing = self.standing(snapshot, place, key, owner);
            by_standing[standing as usize].push(owner.uid.clone());
        }
        let [absent, waiting, present] = by_standing;
        if !present.is_empty() {
            let others = [absent, waiting].concat();
            return if others.is_empty() {
                vec![]
            } else {
                vec![act(entry, What::DropOwners(others))]
            };
        }
        let mut dependents = self.dependents_of(snapshot, place, entry).peekable();
        if waiting.is_empty() || dependents.peek().is_none() {
            return vec![act(entry, What::Delete(own_propagation(head)))];
        }
        // A dependent that waits for this object, which its owner waits for, is a circle: none
        // of them would ever go.
        let is_circle = dependents.any(|(dependent, _)| waits(&dependent.head, FOREGROUND));
        if is_circle && head.owners.iter().any(|owner| owner.blocks_deletion) {
            return vec![act(entry, What::Unblock)];
        }
        vec![act(entry, What::Delete(Propagation::Foreground))]
    }

    /// An owner goes when nothing is left that blocks it.
    fn let_go(&self, snapshot: &Snapshot, place: Place<'_>, entry: &Arc<Entry>) -> Vec<Act> {
        let mut dependents = self.dependents_of(snapshot, place, entry);
        if dependents.any(|(_, owner)| owner.blocks_deletion) {
            return Vec::new();
        }
        vec![act(entry, What::RemoveFinalizer(FOREGROUND))]
    }

    /// Dependents forget their owner before it goes.
    fn orphan(&self, snapshot: &Snapshot, place: Place<'_>, entry: &Arc<Entry>) -> Vec<Act> {
        let uid = &entry.head.uid;
        let dependents = self.dependents_of(snapshot, place, entry).take(BATCH);
        let acts: Vec<Act> = dependents
            .map(|(dependent, _)| act(dependent, What::DropOwners(vec![uid.clone()])))
            .collect();
        if acts.is_empty() { vec![act(entry, What::RemoveFinalizer(ORPHAN))] } else { acts }
    }

    /// The objects that an object owns, with the reference that says so.
    fn dependents_of<'s>(
        &'s self,
        snapshot: &'s Snapshot,
        place: Place<'s>,
        owner: &'s Entry,
    ) -> impl Iterator<Item = (&'s Arc<Entry>, &'s Owner)> {
        let keys = self.dependents.get(&owner.head.uid).into_iter().flatten();
        keys.filter_map(move |key| {
            let entry = snapshot.get(key)?;
            let reference =
                entry.head.owners.iter().find(|reference| reference.uid == owner.head.uid)?;
            (place(key, reference)? == owner.key).then_some((entry, reference))
        })
    }

    /// An owner is what its reference names, in the dependent's namespace or in none; whatever
    /// cannot be named is not known to be gone.
    fn standing(
        &self,
        snapshot: &Snapshot,
        place: Place<'_>,
        key: &Key,
        owner: &Owner,
    ) -> Standing {
        let Some(owner_key) = place(key, owner) else {
            let is_gone = self.gone.contains(&owner.uid);
            return if is_gone { Standing::Absent } else { Standing::Present };
        };
        match snapshot.get(&owner_key) {
            Some(found) if found.head.uid == owner.uid => {
                if waits(&found.head, FOREGROUND) {
                    Standing::Waiting
                } else {
                    Standing::Present
                }
            }
            _ => Standing::Absent,
        }
    }

    fn relink(&mut self, key: &Key, before: Option<&Head>, head: &Head, place: Place<'_>) {
        let old = before.map_or(&[][..], |before| &before.owners);
        if *old == *head.owners {
            return;
        }
        for owner in old {
            self.unlink(&owner.uid, key);
            self.look_at_owner(key, owner, place);
        }
        for owner in &head.owners {
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

    fn look_at_owner(&mut self, key: &Key, owner: &Owner, place: Place<'_>) {
        if let Some(owner) = place(key, owner) {
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

fn act(entry: &Entry, what: What) -> Act {
    let (uid, revision) = (entry.head.uid.clone(), entry.modified.0);
    Act { key: entry.key.clone(), uid, revision, what }
}

fn waits(head: &Head, finalizer: &str) -> bool {
    head.is_deleting() && head.has_finalizer(finalizer)
}

/// Whether anything changed that decisions are made by.
fn has_turned(before: &Head, after: &Head) -> bool {
    before.owners != after.owners
        || before.finalizers != after.finalizers
        || before.is_deleting() != after.is_deleting()
}

/// What an object asks for its own dependents.
fn own_propagation(head: &Head) -> Propagation {
    if head.has_finalizer(ORPHAN) {
        Propagation::Orphan
    } else if head.has_finalizer(FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    }
}
