//! Fleet rollouts, planned and applied until nothing moves: within budget all the way, quiet
//! at the end, and the same whatever order the objects came in.

#[path = "fleet/agents.rs"]
mod agents;

use agents::{Agents, BINDING, act, decision, instant, namespace};
use convoy_api::Object;
use convoy_check::{Applier, check, settle};
use convoy_plan::{Verdict, World, plan};
use convoy_testkit::{NOW, fleet, property};
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn a_placement_reaches_its_clusters_from_nothing() {
    let policy = json!({"placementType": "PickN", "numberOfClusters": 3});
    let mut world: World =
        (1..=5).map(|at| fleet::member(&format!("c{at}"), NOW).build()).collect();
    world.insert(namespace());
    world.insert(fleet::placement("web", policy).build());
    let mut applier = Applier::new(world, instant());
    let agents = Agents { pace: 1, approve: false, untracked: false };
    let settled = settle(&mut applier, 60, |it| act(it, agents)).unwrap();
    assert_eq!(settled.history.findings(), []);
    let step = decision(&settled.plan, "ClusterResourcePlacement");
    assert_eq!(step.verdict, Verdict::Done, "{}", step.to_json());
    let bound = applier.world().of(&BINDING).filter(|it| it.spec()["state"] == "Bound");
    assert_eq!(bound.count(), 3);
}

/// A binding in the middle of anything.
#[derive(Clone, Debug)]
struct Found {
    state: &'static str,
    current: bool,
    deleting: bool,
    health: u8,
}

fn found() -> impl Strategy<Value = Found> {
    let state = prop_oneof![3 => Just("Bound"), 1 => Just("Scheduled"), 1 => Just("Unscheduled")];
    (state, any::<bool>(), prop::bool::weighted(0.15), 0..6u8)
        .prop_map(|(state, current, deleting, health)| Found { state, current, deleting, health })
}

fn share() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0..4u32).prop_map(|count| json!(count)),
        (0..=100u32).prop_map(|percent| json!(format!("{percent}%"))),
    ]
}

fn built(name: &str, found: &Found) -> Object {
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

fn resource(version: u32) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "shop"}, "data": {"version": version.to_string()}})
}

prop_compose! {
    /// A rollout in the middle: bindings of two versions in all states, no clusters, so that
    /// the scheduler leaves them alone.
    fn middle()(
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

proptest! {
    #![proptest_config(property::config(64))]

    #[test]
    fn every_plan_keeps_the_promises(objects in middle()) {
        let world: World = objects.into_iter().collect();
        let plan = plan(&world, instant());
        let findings = check(&world, &plan);
        prop_assert!(findings.is_empty(), "{findings:?}\n{}", plan.to_json());
    }

    #[test]
    fn order_means_nothing(objects in middle(), seed in any::<prop::sample::Index>()) {
        let forward: World = objects.iter().cloned().collect();
        let middle = seed.index(objects.len());
        let turned: World =
            objects[middle..].iter().chain(&objects[..middle]).rev().cloned().collect();
        let [one, two] = [forward, turned].map(|world| plan(&world, instant()).to_json().to_string());
        prop_assert_eq!(one, two);
    }

    #[test]
    fn every_rollout_comes_to_rest(objects in middle(), pace in 1..4usize, untracked in any::<bool>()) {
        let world: World = objects.into_iter().collect();
        let mut applier = Applier::new(world, instant());
        let agents = Agents { pace, approve: false, untracked };
        let settled = settle(&mut applier, 120, |it| act(it, agents));
        let settled = settled.map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert!(settled.history.findings().is_empty(), "{:?}", settled.history.findings());
        // Whatever is bound and serves has the newest resources, unless the budget for good
        // keeps it from being touched, which then says so.
        let step = decision(&settled.plan, "ClusterResourcePlacement");
        prop_assert!(step.verdict == Verdict::Done || !step.holds.is_empty(), "{}", step.to_json());
    }
}
