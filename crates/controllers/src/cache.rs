//! The world as it is known here: what watches told, and our own writes as soon as they are
//! answered. Whatever order these arrive in, an older state never replaces a newer one, so no
//! decision is made from a world older than our own last write (G2).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_plan::{Complaint, Denial, Dialect, Step, World};
use jiff::Timestamp;
use serde_json::Value;

use crate::refused::Refused;

/// Which rollout of which of the dialects that run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rollout {
    /// Its place among the dialects of the cache.
    pub dialect: usize,
    pub key: ObjectKey,
}

/// Objects, what is wrong with them, and who has to look again when one changes.
pub struct Cache {
    dialects: Vec<&'static dyn Dialect>,
    world: World,
    refused: Vec<Refused>,
    /// The uids of objects that our own writes deleted, until a watch says so too.
    tombstones: BTreeMap<ObjectKey, String>,
    /// The newest version seen of each kind.
    versions: BTreeMap<GroupKind, u64>,
    /// How far watches and lists have told of each kind: everything up to there is known.
    told: BTreeMap<GroupKind, u64>,
}

impl Cache {
    pub fn new(dialects: Vec<&'static dyn Dialect>) -> Self {
        let refused = dialects.iter().map(|_| Refused::default()).collect();
        let (world, tombstones) = (World::new(), BTreeMap::new());
        let (versions, told) = (BTreeMap::new(), BTreeMap::new());
        Self { dialects, world, refused, tombstones, versions, told }
    }

    pub fn world(&self) -> &World {
        &self.world
    }

    pub fn dialect(&self, rollout: &Rollout) -> &'static dyn Dialect {
        self.dialects[rollout.dialect]
    }

    /// The newest version seen of each kind: what decisions are made from.
    pub fn versions(&self) -> &BTreeMap<GroupKind, u64> {
        &self.versions
    }

    /// Every rollout there is.
    pub fn rollouts(&self) -> Vec<Rollout> {
        let all = self.dialects.iter().enumerate().flat_map(|(dialect, with)| {
            let found = with.rollouts(&self.world).into_iter();
            found.map(move |object| Rollout { dialect, key: object.key().clone() })
        });
        all.collect()
    }

    /// What `rollout` does next; none if it is gone.
    pub fn decide(&self, rollout: &Rollout, now: Timestamp) -> Option<Step> {
        let refused = self.refused[rollout.dialect].list();
        convoy_plan::decide(self.dialect(rollout), &self.world, refused, &rollout.key, now)
    }

    /// What is told about `rollout` when a write of its step is denied; none if it is gone.
    pub fn complain(
        &self,
        rollout: &Rollout,
        denial: &Denial,
        now: Timestamp,
    ) -> Option<Complaint> {
        let (dialect, refused) = (self.dialect(rollout), self.refused[rollout.dialect].list());
        convoy_plan::complain(dialect, &self.world, refused, &rollout.key, denial, now)
    }

    /// An object as a watch shows it. Gives back who has to look again: nobody if this is not
    /// news.
    pub fn put(&mut self, object: Object) -> BTreeSet<Rollout> {
        self.note_told(object.kind(), version(&object));
        self.insert(object)
    }

    /// An object as the answer to a request of our own shows it. A watch may have told of its
    /// end before the answer arrived: one that is not there although the watch is further than
    /// this state is gone, and must not come back.
    pub fn put_answer(&mut self, object: Object) -> BTreeSet<Rollout> {
        let told = self.told.get(object.kind()).copied();
        let is_past = version(&object).is_some_and(|at| told.is_some_and(|told| at <= told));
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
        // One that is on its way out is still there; others of this uid are memories.
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

    /// A watch shows that an object is gone; this is its last state.
    pub fn remove(&mut self, last: &Object) -> BTreeSet<Rollout> {
        let key = last.key();
        self.note_version(last);
        self.note_told(last.kind(), version(last));
        if self.tombstones.get(key).map(String::as_str) == last.uid() {
            self.tombstones.remove(key);
        }
        match self.world.get(key) {
            // Made again since, by a write of ours that was answered before this arrived.
            Some(known) if known.uid() != last.uid() && is_newer(known, last) => BTreeSet::new(),
            Some(_) => self.change(key, |world| _ = world.remove(key)),
            None => BTreeSet::new(),
        }
    }

    /// Our own write deleted the object, or found it gone.
    pub fn forget(&mut self, key: &ObjectKey) -> BTreeSet<Rollout> {
        let Some(known) = self.world.get(key) else { return BTreeSet::new() };
        if let Some(uid) = known.uid() {
            self.tombstones.insert(key.clone(), uid.to_owned());
        }
        self.change(key, |world| _ = world.remove(key))
    }

    /// A list of all objects of a kind, as of `version`. What it lacks is gone, unless it was
    /// written after the list was made.
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
        self.note_told(kind, version);
        affected
    }

    /// Makes a change to the world, and finds who has to look again: an owner may be known
    /// only from the state before, or only from the one after.
    fn change(&mut self, key: &ObjectKey, change: impl FnOnce(&mut World)) -> BTreeSet<Rollout> {
        let mut affected = BTreeSet::new();
        self.affected(key, &mut affected);
        let before = self.world.get(key).cloned();
        change(&mut self.world);
        for (dialect, refused) in self.refused.iter_mut().enumerate() {
            let with = self.dialects[dialect];
            if !with.validates(&key.kind) {
                continue;
            }
            let after = self.world.get(key);
            let reported = before.as_ref().zip(after).is_some_and(|(one, two)| is_report(one, two));
            if reported && !refused.contains(key) {
                continue;
            }
            for other in refused.review(with, &self.world, key) {
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

    fn note_told(&mut self, kind: &GroupKind, version: Option<u64>) {
        let Some(version) = version else { return };
        let told = self.told.entry(kind.clone()).or_default();
        *told = version.max(*told);
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

/// Versions of one kind are comparable numbers; one that is none says nothing.
fn version(object: &Object) -> Option<u64> {
    object.resource_version()?.parse().ok()
}

/// Whether nothing but the status is another. What a status may say is for the server to check,
/// and those of large fleets are long.
fn is_report(before: &Object, after: &Object) -> bool {
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
        assert_eq!(names(&cache.put(set(5, 1))), ["web-1"]);
        cache.put(versioned(apps::deployment(1, "web:v1"), 4));
        assert_eq!(names(&cache.put(set(9, 3))), ["web", "web-1"]);
        assert!(cache.put(set(7, 2)).is_empty());
        assert!(cache.put(set(9, 3)).is_empty(), "the echo of our own write is no news");
        assert_eq!(replicas(&cache), Some(3));
        assert_eq!(cache.versions()[&REPLICA_SET], 9);
    }

    #[test]
    fn what_we_deleted_stays_deleted_until_it_is_made_again() {
        let mut cache = cache();
        cache.put(set(5, 1));
        let key = REPLICA_SET.key("shop", "web-1");
        assert_eq!(names(&cache.forget(&key)), ["web-1"]);
        assert!(cache.put(set(7, 2)).is_empty(), "a memory of the deleted one");
        let again = apps::replica_set("web-1", "web:v1", 4, 5).with("/metadata/uid", json!("new"));
        cache.put(versioned(again, 12));
        assert!(cache.remove(&set(8, 1)).is_empty(), "the end of the former one comes late");
        assert_eq!(replicas(&cache), Some(4));
    }

    #[test]
    fn one_that_is_still_on_its_way_out_comes_back() {
        let mut cache = cache();
        cache.put(set(5, 1));
        cache.forget(&REPLICA_SET.key("shop", "web-1"));
        let going = apps::replica_set("web-1", "web:v1", 1, 5)
            .with("/metadata/deletionTimestamp", json!(NOW));
        assert!(!cache.put(versioned(going, 8)).is_empty());
        assert_eq!(replicas(&cache), Some(1));
    }

    #[test]
    fn a_list_removes_what_it_lacks_unless_that_is_newer() {
        let mut cache = cache();
        cache.put(set(5, 1));
        let made = versioned(apps::replica_set("web-2", "web:v2", 1, 5), 20);
        cache.put(made);
        let affected = cache.replace(&REPLICA_SET, Some(10), Vec::new());
        assert_eq!(names(&affected), ["web-1"]);
        assert_eq!(cache.world.of(&REPLICA_SET).count(), 1);
        cache.replace(&REPLICA_SET, Some(21), vec![set(15, 2)]);
        assert_eq!(replicas(&cache), Some(2));
        assert_eq!(cache.world.of(&REPLICA_SET).count(), 1);
    }

    #[test]
    fn an_answer_that_a_watch_has_overtaken_brings_nothing_back() {
        let mut cache = cache();
        cache.put(set(5, 1));
        // Asked to go, and gone: the watch tells both before the answer to our own delete comes.
        let leaving = |version| {
            let object = apps::replica_set("web-1", "web:v1", 1, 1)
                .with("/metadata/deletionTimestamp", json!(NOW));
            versioned(object, version)
        };
        cache.put(leaving(6));
        cache.remove(&leaving(7));
        assert!(cache.put_answer(leaving(6)).is_empty());
        assert_eq!(cache.world.of(&REPLICA_SET).count(), 0);
        // What the watch has not come to yet is news.
        assert!(!cache.put_answer(set(9, 3)).is_empty());
        assert_eq!(replicas(&cache), Some(3));
    }

    #[test]
    fn the_owner_that_only_the_former_state_names_looks_again() {
        let mut cache = cache();
        cache.put(set(5, 1));
        let pod = |version| versioned(apps::replica("a", "web-1", NOW), version);
        assert_eq!(names(&cache.put(pod(6))), ["web-1"]);
        assert_eq!(names(&cache.remove(&pod(7))), ["web-1"]);
        assert_eq!(cache.world.of(&POD).count(), 0);
    }

    #[test]
    fn a_status_is_no_reason_to_judge_again() {
        let whole = |replicas: i64, status: i64| {
            let object = apps::deployment(1, "web:v1").with("/spec/replicas", json!(replicas));
            object.with("/status/replicas", json!(status)).build()
        };
        assert!(is_report(&whole(1, 1), &whole(1, 2)));
        assert!(!is_report(&whole(1, 1), &whole(2, 1)));
        let labelled = apps::deployment(1, "web:v1").label("app", "other").build();
        assert!(!is_report(&apps::deployment(1, "web:v1").build(), &labelled));
    }

    #[test]
    fn refused_objects_hold_and_free_their_rollouts() {
        let mut cache = cache();
        let deployment = |version, replicas: i64| {
            let object = apps::deployment(1, "web:v1").with("/spec/replicas", json!(replicas));
            versioned(object, version)
        };
        cache.put(deployment(1, -1));
        let rollout = Rollout { dialect: 0, key: DEPLOYMENT.key("shop", "web") };
        let now = NOW.parse().unwrap();
        let step = cache.decide(&rollout, now).unwrap();
        assert_eq!(step.verdict, convoy_plan::Verdict::Invalid);
        cache.put(deployment(2, 1));
        let step = cache.decide(&rollout, now).unwrap();
        assert_ne!(step.verdict, convoy_plan::Verdict::Invalid);
        cache.forget(&rollout.key);
        assert!(cache.decide(&rollout, now).is_none());
    }
}
