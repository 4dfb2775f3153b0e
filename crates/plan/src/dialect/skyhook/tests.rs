//! Which rollouts a change concerns. Limits, orphaned package pods and the safety limit are tested
//! below.

mod limits;
mod orphan;
mod safety;

use convoy_api::Object;
use convoy_testkit::{Builder, node, object};
use serde_json::json;

use crate::dialect::Dialect;
use crate::dialect::skyhook::Skyhook;
use crate::dialect::skyhook::names::{NAME, PAUSE, VERSION};
use crate::world::World;

fn skyhook(name: &str) -> Builder {
    object("skyhook.nvidia.com/v1alpha1", "Skyhook", name).spec(json!({"priority": 1}))
}

fn pod(owner: &str) -> Object {
    let pod = object("v1", "Pod", "p").namespace("skyhook").spec(json!({"nodeName": "worker"}));
    if owner.is_empty() { pod.build() } else { pod.label(NAME, owner).build() }
}

#[test]
fn a_pod_concerns_its_skyhook_and_those_that_cordoned_its_node() {
    let affected = |owner: &str| {
        let mut world = World::new();
        let worker = node("worker").annotation("skyhook.nvidia.com/cordon_b", "true");
        let skyhooks = ["a", "b", "c"].map(|name| skyhook(name).build());
        for object in skyhooks.into_iter().chain([worker.build(), pod(owner)]) {
            world.insert(object);
        }
        let key = pod(owner).key().clone();
        let names = |world: &World| -> Vec<String> {
            let keys = Skyhook::new().affected(world, &key).into_iter();
            keys.map(|key| key.name.to_string()).collect()
        };
        let found = names(&world);
        world.remove(&key);
        assert!(names(&world).is_empty(), "whom it concerned was known before");
        found
    };
    assert_eq!(affected("a"), ["a", "b"]);
    assert_eq!(affected("b"), ["b"]);
    assert_eq!(affected(""), ["b"]);
}

#[test]
fn others_look_again_unless_a_skyhook_only_tells_how_far_it_is() {
    let before = skyhook("a").status(json!({"completeNodes": "0/1"})).build();
    let cases = [
        (true, skyhook("a").status(json!({"completeNodes": "1/1"}))),
        (true, skyhook("a").annotation(VERSION, "v1")),
        (false, skyhook("a").annotation(PAUSE, "true")),
        (false, skyhook("a").spec(json!({"priority": 2}))),
        (false, skyhook("a").status(json!({"configUpdates": {"tuning": ["a.conf"]}}))),
        (false, skyhook("a").with("/metadata/deletionTimestamp", json!(convoy_testkit::NOW))),
    ];
    for (is_own, after) in cases {
        let after = after.build();
        let affected =
            Skyhook::new().affected_by(&World::new(), &before, &after, jiff::Timestamp::MIN);
        let own = is_own.then(|| vec![after.key().clone()]);
        assert_eq!(affected, own, "{after:?}");
    }
}
