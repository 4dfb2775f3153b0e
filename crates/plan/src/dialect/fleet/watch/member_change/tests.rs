//! Who looks again after a member cluster changed.

use convoy_api::Object;
use convoy_testkit::{Builder, NOW, fleet, object};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::affected;
use crate::dialect::Dialect;
use crate::dialect::fleet::Fleet;
use crate::dialect::fleet::names as fleet_names;
use crate::world::{World, indexed_label};

const LATER: &str = "2026-01-01T00:01:00Z";

/// Two placements that read properties, one that does not, and one that reads namespaces.
fn world() -> World {
    let selector = json!({"matchExpressions": [
        {"name": "kubernetes-fleet.io/node-count", "operator": "Ge", "values": ["3"]}]});
    let required = json!({"clusterSelectorTerms": [{"propertySelector": selector}]});
    let sorter = json!({"name": "resources.kubernetes-fleet.io/available-cpu",
        "sortOrder": "Descending"});
    let preferred = json!([{"weight": 1, "preference": {"propertySorter": sorter}}]);
    let affinity = |field: &str, terms: &Value| json!({"clusterAffinity": {field: terms}});
    let required = affinity("requiredDuringSchedulingIgnoredDuringExecution", &required);
    let preferred = affinity("preferredDuringSchedulingIgnoredDuringExecution", &preferred);
    let inside = json!({"namespace": "fleet-member-a", "name": "a"});
    let namespaced = json!({"namespace": "shop", "name": "inside"});
    let objects = [
        fleet::placement("plain", json!({"placementType": "PickAll"})).build(),
        fleet::placement("filters", json!({"placementType": "PickAll", "affinity": required}))
            .build(),
        fleet::placement(
            "sorts",
            json!({"placementType": "PickN", "numberOfClusters": 1, "affinity": preferred}),
        )
        .build(),
        object("placement.kubernetes-fleet.io/v1beta1", "ResourcePlacement", "inside")
            .with("/metadata", namespaced)
            .spec(json!({"resourceSelectors": [], "policy": {"placementType": "PickAll"}}))
            .build(),
        object("cluster.kubernetes-fleet.io/v1beta1", "InternalMemberCluster", "a")
            .with("/metadata", inside)
            .build(),
        member(NOW).build(),
    ];
    objects.into_iter().collect()
}

/// A member that was heard at an instant.
fn member(heard_at: &str) -> Builder {
    let count = json!({"value": "3", "observationTime": heard_at});
    fleet::member("a", heard_at)
        .with("/metadata/resourceVersion", json!(heard_at))
        .with("/status/properties", json!({"kubernetes-fleet.io/node-count": count}))
        .with(
            "/status/resourceUsage",
            json!({"available": {"cpu": "4"}, "observationTime": heard_at}),
        )
        .with("/status/namespaces", json!({"shop": "work"}))
}

fn names(after: &Object, decided_after: SignedDuration) -> Option<Vec<String>> {
    let before = member(NOW).build();
    let now: Timestamp = NOW.parse().expect("an instant");
    let decided_at = now.checked_add(decided_after).expect("an instant");
    let found = affected(&world(), &before, after, decided_at)?;
    Some(found.iter().map(|key| key.name.to_string()).collect())
}

#[test]
fn a_heartbeat_concerns_no_placement() {
    let after = member(LATER).build();
    assert_eq!(names(&after, SignedDuration::from_secs(60)), Some(vec!["a".to_owned()]));
    assert_eq!(names(&after, SignedDuration::from_mins(5)), Some(vec!["a".to_owned()]));
}

#[test]
fn a_heartbeat_after_silence_concerns_all() {
    // A decision was made while the cluster counted as silent, whenever the heartbeat was sent.
    let decided_after = SignedDuration::from_secs(301);
    assert_eq!(names(&member(LATER).build(), decided_after), None);
    let never_heard = member(LATER).with("/status/agentStatus", json!([])).build();
    let after = member(LATER).build();
    assert_eq!(affected(&world(), &never_heard, &after, Timestamp::MIN), None);
}

#[test]
fn what_is_reported_concerns_those_who_read_it() {
    let nodes = json!({"kubernetes-fleet.io/node-count": {"value": "4", "observationTime": LATER}});
    let cases = [
        ("/status/properties", nodes, vec!["a", "filters", "sorts"]),
        ("/status/resourceUsage/available/cpu", json!("3"), vec!["a", "filters", "sorts"]),
        ("/status/namespaces", json!({"shop": "work", "new": ""}), vec!["a", "inside"]),
    ];
    for (path, value, expected) in cases {
        let found = names(&member(LATER).with(path, value).build(), SignedDuration::ZERO);
        assert_eq!(found.expect("they are few"), expected, "{path}");
    }
}

#[test]
fn everything_else_concerns_all() {
    let cases = [
        ("/metadata/labels/env", json!("prod")),
        ("/metadata/deletionTimestamp", json!(NOW)),
        ("/spec/taints", json!([{"key": "a", "value": "b", "effect": "NoSchedule"}])),
        ("/status/conditions", json!([{"type": "NamespaceCollectionSucceeded"}])),
    ];
    for (path, value) in cases {
        let after = member(LATER).with(path, value).build();
        assert_eq!(names(&after, SignedDuration::ZERO), None, "{path}");
    }
    let cases = [
        ("/status/agentStatus/0/conditions/1/status", "False"),
        ("/status/agentStatus/0/lastReceivedHeartbeat", "2025-12-31T00:00:00Z"),
    ];
    for (path, value) in cases {
        let mut after = member(LATER).json();
        *after.pointer_mut(path).expect("it is there") = json!(value);
        let after = Object::from_value(after).expect("an object");
        assert_eq!(names(&after, SignedDuration::ZERO), None, "{path}");
    }
}

#[test]
fn parts_of_a_placement_concern_no_other() {
    let mut world = world();
    let binding = fleet::binding("plain", "a", "Bound", "plain-0-snapshot").build();
    let key = binding.key().clone();
    assert_eq!(indexed_label(&key.kind), Some(fleet_names::PARENT));
    assert!(Fleet.affected(&world, &key).is_empty(), "it is not there yet");
    world.insert(binding);
    let found = Fleet.affected(&world, &key);
    let found: Vec<&str> = found.iter().map(|key| key.name.as_str()).collect();
    assert_eq!(found, ["plain-a", "plain"], "the binding for its Works, and the placement");
    world.remove(&key);
    assert!(Fleet.affected(&world, &key).is_empty(), "whom it concerned was known before");
}
