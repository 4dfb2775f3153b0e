//! The watch cache: the objects that watches deliver, and our own writes as soon as the server
//! responds. In whatever order these arrive, an older state never replaces a newer one, so no
//! decision is made from a cache older than our own last write (G2).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_plan::{Complaint, Denial, Diagnostic, Dialect, Step, World};
use jiff::Timestamp;
use serde_json::Value;

use crate::validation::ValidationErrors;

/// A rollout and the dialect that decides about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rollout {
    /// Index into the dialects of the cache.
    pub dialect: usize,
    pub key: ObjectKey,
}

/// A change to the watch cache.
#[derive(Clone, Debug)]
pub enum CacheEvent {
    /// A list of all objects of a kind.
    Listed { kind: GroupKind, version: Option<u64>, objects: Vec<Object> },
    /// A watch delivered a new or changed object.
    Applied(Object),
    /// The response to a request of our own has this object; a watch may be ahead of it.
    Responded(Object),
    /// A watch delivered the last state of a deleted object.
    Deleted(Object),
    /// A write of our own deleted the object, or found that it does not exist.
    Gone(ObjectKey),
}

/// Objects, their validation errors, and which rollouts a change affects.
pub struct Cache {
    dialects: Vec<&'static dyn Dialect>,
    world: World,
    /// By dialect.
    invalid: Vec<ValidationErrors>,
    /// The uids of objects that our own writes deleted, until a watch confirms it.
    tombstones: BTreeMap<ObjectKey, String>,
    /// The newest version seen of each kind.
    versions: BTreeMap<GroupKind, u64>,
    /// The version up to which lists and watches have delivered each kind completely.
    delivered: BTreeMap<GroupKind, u64>,
    /// The first error of objects that became invalid, or are so for another reason now.
    refused: Vec<Diagnostic>,
}

impl Cache {
    pub fn new(dialects: Vec<&'static dyn Dialect>) -> Self {
        let invalid = dialects.iter().map(|_| ValidationErrors::default()).collect();
        let (world, tombstones) = (World::new(), BTreeMap::new());
        let (versions, delivered) = (BTreeMap::new(), BTreeMap::new());
        Self { dialects, world, invalid, tombstones, versions, delivered, refused: Vec::new() }
    }

    pub fn world(&self) -> &World {
        &self.world
    }

    pub fn dialect(&self, rollout: &Rollout) -> &'static dyn Dialect {
        self.dialects[rollout.dialect]
    }

    /// The newest version of each kind in the cache, which decisions are made from.
    pub fn versions(&self) -> &BTreeMap<GroupKind, u64> {
        &self.versions
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
    pub fn decide(&self, rollout: &Rollout, now: Timestamp) -> Option<Step> {
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
        self.note_delivered(object.kind(), version(&object));
        self.insert(object)
    }

    /// Applies an object from the response to a request of our own. A watch may have delivered
    /// its deletion before the response arrived: an object that is absent although the watch is
    /// past this version is gone, and must not come back.
    pub fn apply_response(&mut self, object: Object) -> BTreeSet<Rollout> {
        let delivered = self.delivered.get(object.kind()).copied();
        let is_past = version(&object).is_some_and(|at| delivered.is_some_and(|to| at <= to));
        if is_past && self.world.get(object.key()).is_none() {
            return BTreeSet::new();
        }
        self.insert(object)
    }

    fn insert(&mut self, object: Object) -> BTreeSet<Rollout> {
        let key = object.key().clone();
        self.note_version(&object);
        if self.world.get(&key).is_some_and(|known| !is_newer(&object, known)) {
            return BTreeSet::new();
        }
        let buried = self.tombstones.get(&key).map(String::as_str);
        // An object that is being deleted still exists; other states of this uid are outdated.
        if buried.is_some() && buried == object.uid() && !object.is_deleting() {
            return BTreeSet::new();
        }
        self.tombstones.remove(&key);
        let known = self.world.get(&key);
        let is_own_matter = |dialect: &&dyn Dialect| {
            known.is_some_and(|known| dialect.is_own_matter(known, &object))
        };
        let own: Vec<bool> = self.dialects.iter().map(is_own_matter).collect();
        let mut affected = self.change(&key, |world| _ = world.insert(object));
        affected.retain(|rollout| !own[rollout.dialect] || rollout.key == key);
        affected
    }

    /// Removes an object whose deletion a watch delivered, with its last state.
    pub fn delete(&mut self, last: &Object) -> BTreeSet<Rollout> {
        let key = last.key();
        self.note_version(last);
        self.note_delivered(last.kind(), version(last));
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

    /// Removes an object that our own write deleted or did not find.
    pub fn mark_gone(&mut self, key: &ObjectKey) -> BTreeSet<Rollout> {
        let Some(known) = self.world.get(key) else { return BTreeSet::new() };
        if let Some(uid) = known.uid() {
            self.tombstones.insert(key.clone(), uid.to_owned());
        }
        self.change(key, |world| _ = world.remove(key))
    }

    /// Replaces all objects of a kind by a list as of `version`. Objects that are not in the list
    /// are removed, unless they were written after the list was made.
    pub fn replace(
        &mut self,
        kind: &GroupKind,
        version: Option<u64>,
        objects: Vec<Object>,
    ) -> BTreeSet<Rollout> {
        let listed: BTreeSet<ObjectKey> =
            objects.iter().map(|object| object.key().clone()).collect();
        let written_since = |object: &Object| {
            self::version(object).is_some_and(|at| version.is_some_and(|listed| at > listed))
        };
        let known = self.world.of(kind);
        let missing = known.filter(|object| !listed.contains(object.key()));
        let gone: Vec<ObjectKey> = missing
            .filter(|object| !written_since(object))
            .map(|object| object.key().clone())
            .collect();
        self.tombstones.retain(|key, _| key.kind != *kind || listed.contains(key));
        let mut affected = BTreeSet::new();
        for key in gone {
            affected.extend(self.change(&key, |world| _ = world.remove(&key)));
        }
        for object in objects {
            affected.extend(self.insert(object));
        }
        self.note_delivered(kind, version);
        affected
    }

    /// Changes the world and finds the affected rollouts, before and after the change: only one
    /// of the two states may name the owner.
    fn change(&mut self, key: &ObjectKey, change: impl FnOnce(&mut World)) -> BTreeSet<Rollout> {
        let mut affected = BTreeSet::new();
        self.affected(key, &mut affected);
        let before = self.world.get(key).cloned();
        change(&mut self.world);
        for (dialect, invalid) in self.invalid.iter_mut().enumerate() {
            let with = self.dialects[dialect];
            if !with.validates(&key.kind) {
                continue;
            }
            let after = self.world.get(key);
            let is_status =
                before.as_ref().zip(after).is_some_and(|(one, two)| is_status_update(one, two));
            if is_status && !invalid.contains(key) {
                continue;
            }
            for other in invalid.revalidate(with, &self.world, key) {
                self.refused.extend(invalid.first(&other).cloned());
                let keys = with.affected(&self.world, &other).into_iter();
                affected.extend(keys.map(|key| Rollout { dialect, key }));
            }
        }
        self.affected(key, &mut affected);
        affected
    }

    fn affected(&self, key: &ObjectKey, found: &mut BTreeSet<Rollout>) {
        for (dialect, with) in self.dialects.iter().enumerate() {
            if with.watches().iter().any(|watch| watch.kind == key.kind) {
                let keys = with.affected(&self.world, key).into_iter();
                found.extend(keys.map(|key| Rollout { dialect, key }));
            }
        }
    }

    fn note_delivered(&mut self, kind: &GroupKind, version: Option<u64>) {
        let Some(version) = version else { return };
        let delivered = self.delivered.entry(kind.clone()).or_default();
        *delivered = version.max(*delivered);
    }

    fn note_version(&mut self, object: &Object) {
        let Some(version) = version(object) else { return };
        let newest = self.versions.entry(object.kind().clone()).or_default();
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

/// Whether only the status changed. The server validates statuses, and those of large fleets are
/// long, so validation skips such changes.
fn is_status_update(before: &Object, after: &Object) -> bool {
    differ_only_in(before.raw(), after.raw(), &["status", "metadata"])
        && differ_only_in(before.metadata(), after.metadata(), &["resourceVersion", "generation"])
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
mod tests {
    use convoy_api::apps::{DEPLOYMENT, POD, REPLICA_SET};
    use convoy_plan::dialect::apps::{Deployments, ReplicaSets};
    use convoy_testkit::{Builder, NOW, apps};
    use serde_json::json;

    use super::*;

    fn cache() -> Cache {
        Cache::new(vec![&Deployments, &ReplicaSets])
    }

    fn versioned(builder: Builder, version: u64) -> Object {
        builder.with("/metadata/resourceVersion", json!(version.to_string())).build()
    }

    fn names(affected: &BTreeSet<Rollout>) -> Vec<String> {
        affected.iter().map(|rollout| rollout.key.name.to_string()).collect()
    }

    fn set(version: u64, replicas: i64) -> Object {
        versioned(apps::replica_set("web-1", "web:v1", replicas, 5), version)
    }

    fn replicas(cache: &Cache) -> Option<i64> {
        let set = cache.world.find(&REPLICA_SET, "shop", "web-1")?;
        set.spec().get("replicas")?.as_i64()
    }

    #[test]
    fn a_late_event_does_not_undo_an_own_write() {
        let mut cache = cache();
        assert_eq!(names(&cache.apply(set(5, 1))), ["web-1"]);
        cache.apply(versioned(apps::deployment(1, "web:v1"), 4));
        assert_eq!(names(&cache.apply(set(9, 3))), ["web", "web-1"]);
        assert!(cache.apply(set(7, 2)).is_empty());
        assert!(cache.apply(set(9, 3)).is_empty(), "the echo of our own write changes nothing");
        assert_eq!(replicas(&cache), Some(3));
        assert_eq!(cache.versions()[&REPLICA_SET], 9);
    }

    #[test]
    fn an_object_we_deleted_stays_deleted_until_it_is_created_again() {
        let mut cache = cache();
        cache.apply(set(5, 1));
        let key = REPLICA_SET.key("shop", "web-1");
        assert_eq!(names(&cache.mark_gone(&key)), ["web-1"]);
        assert!(cache.apply(set(7, 2)).is_empty(), "an outdated state of the deleted one");
        let again = apps::replica_set("web-1", "web:v1", 4, 5).with("/metadata/uid", json!("new"));
        cache.apply(versioned(again, 12));
        assert!(cache.delete(&set(8, 1)).is_empty(), "the deletion of the former one arrives late");
        assert_eq!(replicas(&cache), Some(4));
    }

    #[test]
    fn an_object_that_is_still_being_deleted_comes_back() {
        let mut cache = cache();
        cache.apply(set(5, 1));
        cache.mark_gone(&REPLICA_SET.key("shop", "web-1"));
        let going = apps::replica_set("web-1", "web:v1", 1, 5)
            .with("/metadata/deletionTimestamp", json!(NOW));
        assert!(!cache.apply(versioned(going, 8)).is_empty());
        assert_eq!(replicas(&cache), Some(1));
    }

    #[test]
    fn a_list_removes_absent_objects_unless_they_are_newer() {
        let mut cache = cache();
        cache.apply(set(5, 1));
        let made = versioned(apps::replica_set("web-2", "web:v2", 1, 5), 20);
        cache.apply(made);
        let affected = cache.replace(&REPLICA_SET, Some(10), Vec::new());
        assert_eq!(names(&affected), ["web-1"]);
        assert_eq!(cache.world.of(&REPLICA_SET).count(), 1);
        cache.replace(&REPLICA_SET, Some(21), vec![set(15, 2)]);
        assert_eq!(replicas(&cache), Some(2));
        assert_eq!(cache.world.of(&REPLICA_SET).count(), 1);
    }

    #[test]
    fn a_response_that_a_watch_has_overtaken_brings_nothing_back() {
        let mut cache = cache();
        cache.apply(set(5, 1));
        // The watch delivers the whole deletion before the response to our own delete arrives.
        let leaving = |version| {
            let object = apps::replica_set("web-1", "web:v1", 1, 1)
                .with("/metadata/deletionTimestamp", json!(NOW));
            versioned(object, version)
        };
        cache.apply(leaving(6));
        cache.delete(&leaving(7));
        assert!(cache.apply_response(leaving(6)).is_empty());
        assert_eq!(cache.world.of(&REPLICA_SET).count(), 0);
        // A version that the watch has not delivered yet is applied.
        assert!(!cache.apply_response(set(9, 3)).is_empty());
        assert_eq!(replicas(&cache), Some(3));
    }

    #[test]
    fn an_owner_that_only_the_former_state_names_is_affected() {
        let mut cache = cache();
        cache.apply(set(5, 1));
        let pod = |version| versioned(apps::replica("a", "web-1", NOW), version);
        assert_eq!(names(&cache.apply(pod(6))), ["web-1"]);
        assert_eq!(names(&cache.delete(&pod(7))), ["web-1"]);
        assert_eq!(cache.world.of(&POD).count(), 0);
    }

    #[test]
    fn a_status_update_is_not_validated_again() {
        let whole = |replicas: i64, status: i64| {
            let object = apps::deployment(1, "web:v1").with("/spec/replicas", json!(replicas));
            object.with("/status/replicas", json!(status)).build()
        };
        assert!(is_status_update(&whole(1, 1), &whole(1, 2)));
        assert!(!is_status_update(&whole(1, 1), &whole(2, 1)));
        let labelled = apps::deployment(1, "web:v1").label("app", "other").build();
        assert!(!is_status_update(&apps::deployment(1, "web:v1").build(), &labelled));
    }

    #[test]
    fn refused_objects_hold_and_free_their_rollouts() {
        let mut cache = cache();
        let deployment = |version, replicas: i64| {
            let object = apps::deployment(1, "web:v1").with("/spec/replicas", json!(replicas));
            versioned(object, version)
        };
        cache.apply(deployment(1, -1));
        let rollout = Rollout { dialect: 0, key: DEPLOYMENT.key("shop", "web") };
        let now = NOW.parse().unwrap();
        let step = cache.decide(&rollout, now).unwrap();
        assert_eq!(step.verdict, convoy_plan::Verdict::Invalid);
        cache.apply(deployment(2, 1));
        let step = cache.decide(&rollout, now).unwrap();
        assert_ne!(step.verdict, convoy_plan::Verdict::Invalid);
        cache.mark_gone(&rollout.key);
        assert!(cache.decide(&rollout, now).is_none());
    }
}
