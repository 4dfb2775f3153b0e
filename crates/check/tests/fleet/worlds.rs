//! Random placements in the middle of a rollout.

use convoy_api::Object;
use convoy_testkit::fleet;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A binding in the middle of anything.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) state: &'static str,
    pub(crate) current: bool,
    pub(crate) deleting: bool,
    pub(crate) health: u8,
}

pub(crate) fn found() -> impl Strategy<Value = Found> {
    let state = prop_oneof![3 => Just("Bound"), 1 => Just("Scheduled"), 1 => Just("Unscheduled")];
    (state, any::<bool>(), prop::bool::weighted(0.15), 0..6u8)
        .prop_map(|(state, current, deleting, health)| Found { state, current, deleting, health })
}

pub(crate) fn share() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0..4u32).prop_map(|count| json!(count)),
        (0..=100u32).prop_map(|percent| json!(format!("{percent}%"))),
    ]
}

pub(crate) fn built(name: &str, found: &Found) -> Object {
    let snapshot = match (found.state, found.current) {
        ("Scheduled", _) => "",
        (_, true) => "web-1-snapshot",
        (_, false) => "web-0-snapshot",
    };
    let since = "2025-12-31T23:59:30Z";
    let available = match found.health {
        0 | 1 => Some(("True", "AllWorkAreAvailable", 1)),
        2 => Some(("True", "NotAllWorkAreAvailabilityTrackable", 1)),
        3 => Some(("False", "NotAllWorkAreAvailable", 1)),
        4 => Some(("True", "AllWorkAreAvailable", 0)),
        _ => None,
    };
    let mut builder = fleet::binding("web", name, found.state, snapshot);
    if let (Some((status, reason, generation)), true) = (available, found.state != "Scheduled") {
        let condition = fleet::condition("Available", status, reason, generation, since);
        builder = builder.status(json!({"conditions": [condition]}));
    }
    if found.state == "Unscheduled" {
        builder = builder.annotation("kubernetes-fleet.io/previous-binding-state", "Bound");
    }
    if found.deleting && found.state != "Scheduled" {
        builder = builder.with("/metadata/deletionTimestamp", json!(since));
    }
    builder.build()
}

pub(crate) fn resource(version: u32) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "shop"}, "data": {"version": version.to_string()}})
}

prop_compose! {
    /// A rollout in the middle: bindings of two versions in all states, no clusters, so that
    /// the scheduler leaves them alone.
    pub(crate) fn middle()(
        bindings in prop::collection::vec(found(), 0..12),
        number in 0..10u32,
        all in any::<bool>(),
        unavailable in share(),
        surge in share(),
        period in 0..90i64,
    ) -> Vec<Object> {
        let policy = if all {
            json!({"placementType": "PickAll"})
        } else {
            json!({"placementType": "PickN", "numberOfClusters": number})
        };
        let rolling = json!({"maxUnavailable": unavailable, "maxSurge": surge,
            "unavailablePeriodSeconds": period});
        let placement = fleet::placement("web", policy)
            .with("/spec/strategy", json!({"type": "RollingUpdate", "rollingUpdate": rolling}));
        let mut objects = vec![
            placement.build(),
            fleet::resource_snapshot("web", 0, false, &[resource(1)]).build(),
            fleet::resource_snapshot("web", 1, true, &[resource(2)]).build(),
        ];
        for (at, found) in bindings.iter().enumerate() {
            objects.push(built(&format!("c{at:02}"), found));
        }
        objects
    }
}
