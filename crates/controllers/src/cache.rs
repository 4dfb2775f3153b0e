//! The watch cache: the objects that watches deliver, and our own writes as soon as the server
//! responds. In whatever order these arrive, an older state never replaces a newer one, so no
//! decision is made from a cache older than our own last write (G2).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use convoy_api::{CollectionKey, GroupKind, Object, ObjectKey};
use convoy_plan::{Complaint, Denial, Diagnostic, Dialect, Step, World};
use jiff::Timestamp;
use serde_json::Value;
use smol_str::SmolStr;

use crate::rollout::Rollout;
use crate::validation::ValidationErrors;
use crate::watches::Watches;

/// A change to the watch cache.
#[derive(Clone, Debug)]
pub enum CacheEvent {
    /// A list of all objects of a kind.
    Listed { collection: CollectionKey, version: Option<u64>, objects: Vec<Object> },
    /// The cluster does not serve the kind.
    NotServed { collection: CollectionKey },
    /// A list failed, or a watch several times in a row.
    Failed { collection: CollectionKey, why: String },
    /// A watch delivered a new or changed object.
    Applied(Object),
    /// The response to a request of our own has this object; a watch may be ahead of it.
    Responded(Object),
    /// A watch delivered the last state of a deleted object.
    Deleted(Object),
    /// A write of our own deleted the object, or found that it does not exist. With the uid of the
    /// object that was meant: another of that name may have been created since.
    Gone { key: ObjectKey, uid: Option<String> },
    /// There is a connection to a member cluster.
    Joined { cluster: SmolStr },
    /// There is none any more, or another one.
    Left { cluster: SmolStr },
    /// The namespaced kinds that a cluster serves, or why they could not be found out.
    Served { cluster: SmolStr, kinds: Result<BTreeSet<GroupKind>, String> },
}

/// Objects, their validation errors, and which rollouts a change affects.
pub struct Cache {
    dialects: Vec<&'static dyn Dialect>,
    watches: Watches,
    world: World,
    /// By dialect.
    invalid: Vec<ValidationErrors>,
    /// The uids of objects that our own writes deleted, until a watch confirms it.
    tombstones: BTreeMap<ObjectKey, String>,
    /// The newest version seen of each collection. Those of two clusters are not comparable.
    versions: BTreeMap<CollectionKey, u64>,
    /// The version up to which lists and watches have delivered each collection completely.
    delivered: BTreeMap<CollectionKey, u64>,
    /// The first error of objects that became invalid, or are so for another reason now.
    refused: Vec<Diagnostic>,
    /// The latest instant of a decision.
    decided_at: Timestamp,
    /// The home cluster is being listed: all rollouts are looked at once it is, so that nobody
    /// needs to find those that a single object affects.
    is_starting: bool,
}

impl Cache {
    pub fn new(dialects: Vec<&'static dyn Dialect>) -> Self {
        let invalid = dialects.iter().map(|_| ValidationErrors::default()).collect();
        Self {
            watches: Watches::new(dialects.clone()),
            dialects,
            world: World::new(),
            invalid,
            tombstones: BTreeMap::new(),
            versions: BTreeMap::new(),
            delivered: BTreeMap::new(),
            refused: Vec::new(),
            decided_at: Timestamp::MIN,
            is_starting: false,
        }
    }

    pub fn world(&self) -> &World {
        &self.world
    }

    pub fn dialect(&self, rollout: &Rollout) -> &'static dyn Dialect {
        self.dialects[rollout.dialect]
    }

    /// What is watched, and what of it is known.
    pub fn watches(&self) -> &Watches {
        &self.watches
    }

    pub fn watches_mut(&mut self) -> &mut Watches {
        &mut self.watches
    }

    /// The newest version of each collection in the cache, which decisions are made from.
    pub fn versions(&self) -> &BTreeMap<CollectionKey, u64> {
        &self.versions
    }

    /// Applies an event. Returns the rollouts to look at again; not those of single objects before
    /// the home cluster is listed, because all are looked at then.
    pub fn handle(&mut self, event: CacheEvent) -> BTreeSet<Rollout> {
        self.is_starting = !self.watches.is_home_listed();
        match event {
            CacheEvent::Listed { collection, version, objects } => {
                self.replace(&collection, version, objects)
            }
            CacheEvent::NotServed { collection } => self.clear(&collection),
            CacheEvent::Failed { collection, why } => {
                self.watches.failed(&collection, &why).into_iter().collect()
            }
            CacheEvent::Applied(object) => self.apply(object),
            CacheEvent::Responded(object) => self.apply_response(object),
            CacheEvent::Deleted(last) => self.delete(&last),
            CacheEvent::Gone { key, uid } => self.mark_gone(&key, uid.as_deref()),
            CacheEvent::Joined { cluster } => self.watches.join(&cluster),
            CacheEvent::Left { cluster } => {
                let (left, affected) = self.watches.leave(&cluster);
                self.forget(&left);
                affected
            }
            CacheEvent::Served { cluster, kinds } => {
                let (stopped, affected) = self.watches.set_served(&cluster, kinds);
                self.forget(&stopped);
                affected
            }
        }
    }

    /// Finds out what a decision about `rollout` needs, so that all of it is watched.
    pub fn update_needs(&mut self, rollout: &Rollout) {
        if rollout.is_standing() {
            return;
        }
        let with = self.dialects[rollout.dialect];
        let object = self.world.get(&rollout.key);
        let object = object.filter(|object| with.is_rollout(&self.world, object));
        let needs = object.map(|object| with.needs(&self.world, object)).unwrap_or_default();
        let stopped = self.watches.set_needs(rollout, needs);
        self.forget(&stopped);
    }

    /// The step of a rollout that has to wait for objects it needs; `None` if all are known.
    pub fn postpone(&self, rollout: &Rollout) -> Option<Step> {
        let missing = self.watches.missing(rollout)?;
        convoy_plan::postpone(self.dialect(rollout), &self.world, &rollout.key, missing)
    }

    /// Every rollout in the cache.
    pub fn rollouts(&self) -> Vec<Rollout> {
        let all = self.dialects.iter().enumerate().flat_map(|(dialect, with)| {
            let found = with.rollouts(&self.world).into_iter();
            found.map(move |object| Rollout { dialect, key: object.key().clone() })
        });
        all.collect()
    }

    /// The next step of `rollout`; `None` if it is gone.
    pub fn decide(&mut self, rollout: &Rollout, now: Timestamp) -> Option<Step> {
        self.decided_at = self.decided_at.max(now);
        let invalid = self.invalid[rollout.dialect].list();
        convoy_plan::decide(self.dialect(rollout), &self.world, invalid, &rollout.key, now)
    }

    /// The first error of each object that was found invalid since the last call.
    pub fn take_refused(&mut self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.refused)
    }

    /// Whether an object is a rollout of any dialect.
    pub fn is_rollout(&self, object: &Object) -> bool {
        self.dialects.iter().any(|dialect| dialect.is_rollout(&self.world, object))
    }

    /// How a denied write of `rollout` is reported; `None` if the rollout is gone.
    pub fn complain(
        &self,
        rollout: &Rollout,
        denial: &Denial,
        now: Timestamp,
    ) -> Option<Complaint> {
        let (dialect, invalid) = (self.dialect(rollout), self.invalid[rollout.dialect].list());
        convoy_plan::complain(dialect, &self.world, invalid, &rollout.key, denial, now)
    }

    /// Applies an object that a watch delivered. Returns the affected rollouts: none if the
    /// cache already has this version or a newer one.
    pub fn apply(&mut self, object: Object) -> BTreeSet<Rollout> {
        if !self.watches.is_watched(&object.key().collection()) {
            return BTreeSet::new();
        }
        self.note_delivered(&object.key().collection(), version(&object));
        self.insert(object, false)
    }

    /// Applies an object from the response to a request of our own. A watch may have delivered
    /// its deletion before the response arrived: an object that is absent although the watch is
    /// past this version is gone, and must not come back.
    pub fn apply_response(&mut self, object: Object) -> BTreeSet<Rollout> {
        let delivered = self.delivered.get(&object.key().collection()).copied();
        let is_past = version(&object).is_some_and(|at| delivered.is_some_and(|to| at <= to));
        let is_gone = is_past && self.world.get(object.key()).is_none();
        if is_gone || !self.watches.is_watched(&object.key().collection()) {
            return BTreeSet::new();
        }
        self.insert(object, false)
    }

    /// With `is_reread`, the version that is known is replaced too.
    fn insert(&mut self, object: Object, is_reread: bool) -> BTreeSet<Rollout> {
        let key = object.key().clone();
        self.note_version(&object);
        let is_known = |known: &Object| {
            let is_same = is_reread && version(&object) == version(known);
            !is_newer(&object, known) && !is_same
        };
        if self.world.get(&key).is_some_and(is_known) {
            return BTreeSet::new();
        }
        let buried = self.tombstones.get(&key).map(String::as_str);
        // An object that is being deleted still exists; other states of this uid are outdated.
        if buried.is_some() && buried == object.uid() && !object.is_deleting() {
            return BTreeSet::new();
        }
        self.tombstones.remove(&key);
        let known = self.world.get(&key);
        let affected_by = |dialect: &&dyn Dialect| {
            dialect.affected_by(&self.world, known?, &object, self.decided_at)
        };
        let fewer: Vec<_> = self.dialects.iter().map(affected_by).collect();
        self.change_for(&key, fewer, |world| _ = world.insert(object))
    }

    /// Removes an object whose deletion a watch delivered, with its last state.
    pub fn delete(&mut self, last: &Object) -> BTreeSet<Rollout> {
        let key = last.key();
        self.note_version(last);
        self.note_delivered(&key.collection(), version(last));
        if self.tombstones.get(key).map(String::as_str) == last.uid() {
            self.tombstones.remove(key);
        }
        match self.world.get(key) {
            // Created again by a write of ours whose response arrived before this event.
            Some(known) if known.uid() != last.uid() && is_newer(known, last) => BTreeSet::new(),
            Some(_) => self.change(key, |world| _ = world.remove(key)),
            None => BTreeSet::new(),
        }
    }

    /// Removes an object that our own write deleted or did not find; with a `uid`, only that one.
    pub fn mark_gone(&mut self, key: &ObjectKey, uid: Option<&str>) -> BTreeSet<Rollout> {
        let Some(known) = self.world.get(key) else { return BTreeSet::new() };
        if uid.is_some() && known.uid() != uid {
            return BTreeSet::new();
        }
        if let Some(uid) = known.uid() {
            self.tombstones.insert(key.clone(), uid.to_owned());
        }
        self.change(key, |world| _ = world.remove(key))
    }

    /// Replaces all objects of a collection by a list as of `version`. Objects that are not in the
    /// list are removed, unless they were written after the list was made.
    pub fn replace(
        &mut self,
        collection: &CollectionKey,
        version: Option<u64>,
        objects: Vec<Object>,
    ) -> BTreeSet<Rollout> {
        if !self.watches.is_watched(collection) {
            return BTreeSet::new();
        }
        let is_reread = self.watches.is_reread(collection);
        let mut affected = self.remove_all_but(collection, version, &objects);
        for object in objects {
            affected.extend(self.insert(object, is_reread));
        }
        self.world.observe(collection);
        self.note_delivered(collection, version);
        affected.extend(self.watches.listed(collection));
        affected
    }

    /// The kind is not served, so there are no objects.
    fn clear(&mut self, collection: &CollectionKey) -> BTreeSet<Rollout> {
        let mut affected = self.remove_all_but(collection, None, &[]);
        self.world.forget(collection);
        affected.extend(self.watches.listed(collection));
        affected
    }

    fn remove_all_but(
        &mut self,
        collection: &CollectionKey,
        version: Option<u64>,
        objects: &[Object],
    ) -> BTreeSet<Rollout> {
        let listed: BTreeSet<&ObjectKey> = objects.iter().map(Object::key).collect();
        let written_since = |object: &Object| {
            self::version(object).is_some_and(|at| version.is_some_and(|listed| at > listed))
        };
        let known = self.world.of_cluster(&collection.cluster, &collection.kind);
        let missing = known.filter(|object| !listed.contains(object.key()));
        let gone: Vec<ObjectKey> = missing
            .filter(|object| !written_since(object))
            .map(|object| object.key().clone())
            .collect();
        let is_other =
            |key: &ObjectKey| key.kind != collection.kind || key.cluster != collection.cluster;
        self.tombstones.retain(|key, _| is_other(key) || listed.contains(key));
        let mut affected = BTreeSet::new();
        for key in gone {
            affected.extend(self.change(&key, |world| _ = world.remove(&key)));
        }
        affected
    }

    /// Drops collections that are watched no longer. No rollout is decided about from what is
    /// missing with them: those that need them wait until they are listed again.
    fn forget(&mut self, collections: &[CollectionKey]) {
        for collection in collections {
            let objects = self.world.of_cluster(&collection.cluster, &collection.kind);
            let keys: Vec<ObjectKey> = objects.map(|object| object.key().clone()).collect();
            self.world.forget(collection);
            self.versions.remove(collection);
            self.delivered.remove(collection);
            self.tombstones.retain(|key, _| key.collection() != *collection);
            for (dialect, invalid) in self.invalid.iter_mut().enumerate() {
                let errors: Vec<_> = keys.iter().filter(|key| invalid.contains(key)).collect();
                for key in errors {
                    invalid.revalidate(self.dialects[dialect], &self.world, key);
                }
            }
        }
    }

    /// Changes the world and finds the affected rollouts, before and after the change: only one
    /// of the two states may name the owner.
    fn change(&mut self, key: &ObjectKey, change: impl FnOnce(&mut World)) -> BTreeSet<Rollout> {
        self.change_for(key, vec![None; self.dialects.len()], change)
    }

    /// The same, where `fewer` has the rollouts of each dialect that knows which ones look at what
    /// changed.
    fn change_for(
        &mut self,
        key: &ObjectKey,
        fewer: Vec<Option<Vec<ObjectKey>>>,
        change: impl FnOnce(&mut World),
    ) -> BTreeSet<Rollout> {
        let mut affected = BTreeSet::new();
        let others: Vec<usize> =
            (0..fewer.len()).filter(|dialect| fewer[*dialect].is_none()).collect();
        for (dialect, keys) in fewer.into_iter().enumerate() {
            let keys = keys.into_iter().flatten();
            affected.extend(keys.map(|key| Rollout { dialect, key }));
        }
        self.affected(key, &others, &mut affected);
        let before = self.world.get(key).cloned();
        change(&mut self.world);
        for (dialect, invalid) in self.invalid.iter_mut().enumerate() {
            let with = self.dialects[dialect];
            if !with.validates(&key.kind) {
                continue;
            }
            let after = self.world.get(key);
            let reads_metadata = with.validates_metadata(&key.kind);
            let is_aside = before
                .as_ref()
                .zip(after)
                .is_some_and(|(one, two)| is_status_update(one, two, reads_metadata));
            if is_aside && !invalid.contains(key) {
                continue;
            }
            for other in invalid.revalidate(with, &self.world, key) {
                self.refused.extend(invalid.first(&other).cloned());
                let keys = with.affected(&self.world, &other).into_iter();
                affected.extend(keys.map(|key| Rollout { dialect, key }));
            }
        }
        self.affected(key, &others, &mut affected);
        affected
    }

    /// The rollouts of these dialects that a change affects.
    fn affected(&self, key: &ObjectKey, dialects: &[usize], found: &mut BTreeSet<Rollout>) {
        if self.is_starting {
            return;
        }
        for dialect in dialects.iter().copied() {
            if self.watches.is_read_by(dialect, key) {
                let keys = self.dialects[dialect].affected(&self.world, key).into_iter();
                found.extend(keys.map(|key| Rollout { dialect, key }));
            }
        }
    }

    fn note_delivered(&mut self, collection: &CollectionKey, version: Option<u64>) {
        let Some(version) = version else { return };
        let delivered = self.delivered.entry(collection.clone()).or_default();
        *delivered = version.max(*delivered);
    }

    fn note_version(&mut self, object: &Object) {
        let Some(version) = version(object) else { return };
        let newest = self.versions.entry(object.key().collection()).or_default();
        *newest = version.max(*newest);
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dialects: Vec<&str> = self.dialects.iter().map(|dialect| dialect.name()).collect();
        f.debug_struct("Cache")
            .field("dialects", &dialects)
            .field("objects", &self.world.len())
            .finish_non_exhaustive()
    }
}

/// The resource version as a number, which is comparable within a kind.
fn version(object: &Object) -> Option<u64> {
    object.resource_version()?.parse().ok()
}

/// Whether only the status changed, or metadata that validation does not read. The server validates
/// statuses, and those of large fleets are long, so validation skips such changes.
fn is_status_update(before: &Object, after: &Object, reads_metadata: bool) -> bool {
    let versions = ["resourceVersion", "generation"];
    differ_only_in(before.raw(), after.raw(), &["status", "metadata"])
        && (!reads_metadata || differ_only_in(before.metadata(), after.metadata(), &versions))
}

fn differ_only_in(one: &Value, other: &Value, fields: &[&str]) -> bool {
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else { return false };
    let names = one.keys().chain(other.keys()).filter(|name| !fields.contains(&name.as_str()));
    names.into_iter().all(|name| one.get(name) == other.get(name))
}

fn is_newer(object: &Object, known: &Object) -> bool {
    match (version(object), version(known)) {
        (Some(new), Some(old)) => new > old,
        _ => true,
    }
}

#[cfg(test)]
mod tests;
