//! Fleet rollouts, planned and applied until nothing moves: within budget all the way, quiet
//! at the end, and the same whatever order the objects came in.

#[path = "fleet/agents.rs"]
mod agents;
#[path = "fleet/worlds.rs"]
mod worlds;

use agents::{Agents, BINDING, act, decision, instant, namespace};
use convoy_check::{Applier, check, settle};
use convoy_plan::{Verdict, World, plan};
use convoy_testkit::{NOW, fleet, property};
use proptest::prelude::*;
use serde_json::json;
use worlds::middle;

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
