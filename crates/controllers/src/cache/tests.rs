//! What the cache keeps, in whatever order events and responses arrive.

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
    assert_eq!(cache.versions()[&REPLICA_SET.in_cluster("")], 9);
}

#[test]
fn an_object_we_deleted_stays_deleted_until_it_is_created_again() {
    let mut cache = cache();
    cache.apply(set(5, 1));
    let key = REPLICA_SET.key("shop", "web-1");
    assert_eq!(names(&cache.mark_gone(&key, None)), ["web-1"]);
    assert!(cache.apply(set(7, 2)).is_empty(), "an outdated state of the deleted one");
    let again = apps::replica_set("web-1", "web:v1", 4, 5).with("/metadata/uid", json!("new"));
    cache.apply(versioned(again, 12));
    assert!(cache.delete(&set(8, 1)).is_empty(), "the deletion of the former one arrives late");
    assert_eq!(replicas(&cache), Some(4));
}

#[test]
fn an_object_that_was_created_since_is_not_the_one_that_is_gone() {
    let mut cache = cache();
    let again = apps::replica_set("web-1", "web:v1", 4, 5).with("/metadata/uid", json!("new"));
    cache.apply(versioned(again, 12));
    let key = REPLICA_SET.key("shop", "web-1");
    assert!(cache.mark_gone(&key, Some("former")).is_empty());
    assert_eq!(replicas(&cache), Some(4));
    assert_eq!(names(&cache.mark_gone(&key, Some("new"))), ["web-1"]);
}

#[test]
fn an_object_that_is_still_being_deleted_comes_back() {
    let mut cache = cache();
    cache.apply(set(5, 1));
    cache.mark_gone(&REPLICA_SET.key("shop", "web-1"), None);
    let going =
        apps::replica_set("web-1", "web:v1", 1, 5).with("/metadata/deletionTimestamp", json!(NOW));
    assert!(!cache.apply(versioned(going, 8)).is_empty());
    assert_eq!(replicas(&cache), Some(1));
}

#[test]
fn a_list_removes_absent_objects_unless_they_are_newer() {
    let mut cache = cache();
    cache.apply(set(5, 1));
    let made = versioned(apps::replica_set("web-2", "web:v2", 1, 5), 20);
    cache.apply(made);
    let affected = cache.replace(&REPLICA_SET.in_cluster(""), Some(10), Vec::new());
    assert_eq!(names(&affected), ["web-1"]);
    assert_eq!(cache.world.of(&REPLICA_SET).count(), 1);
    cache.replace(&REPLICA_SET.in_cluster(""), Some(21), vec![set(15, 2)]);
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
    for reads_metadata in [true, false] {
        assert!(is_status_update(&whole(1, 1), &whole(1, 2), reads_metadata));
        assert!(!is_status_update(&whole(1, 1), &whole(2, 1), reads_metadata));
        let labelled = apps::deployment(1, "web:v1").label("app", "other").build();
        let plain = apps::deployment(1, "web:v1").build();
        assert_eq!(is_status_update(&plain, &labelled, reads_metadata), !reads_metadata);
    }
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
    cache.mark_gone(&rollout.key, None);
    assert!(cache.decide(&rollout, now).is_none());
}
