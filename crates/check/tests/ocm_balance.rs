//! Placements that get out of each other's way: all of them decide at once, from the same
//! world, and still come to rest.

use convoy_api::Object;
use convoy_api::ocm::names::PLACEMENT_DECISION;
use convoy_check::{Applier, settle};
use convoy_plan::World;
use convoy_testkit::ocm::{bound_set, managed_cluster, placement};
use convoy_testkit::{Builder, NOW, property};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

fn wanting(clusters: usize, balance: i64, steady: i64) -> Value {
    let weighted = |name: &str, weight: i64| json!({"weight": weight, "scoreCoordinate": {"type": "BuiltIn", "builtIn": name}});
    json!({"numberOfClusters": clusters, "prioritizerPolicy": {"mode": "Exact",
        "configurations": [weighted("Balance", balance), weighted("Steady", steady)]}})
}

fn world(clusters: usize, placements: &[Value]) -> World {
    let placements = placements.iter().enumerate();
    let placements = placements.map(|(at, spec)| placement(&format!("p{at}"), spec.clone()));
    let clusters = (0..clusters).map(|at| managed_cluster(&format!("c{at}")));
    bound_set().into_iter().chain(clusters).chain(placements).map(Builder::build).collect()
}

fn clusters_of(decision: &Object) -> Vec<&str> {
    let decisions = decision.status()["decisions"].as_array();
    decisions.into_iter().flatten().filter_map(|entry| entry["clusterName"].as_str()).collect()
}

fn come_to_rest(world: World) -> Applier {
    let mut applier = Applier::new(world, NOW.parse().expect("an instant"));
    let settled = settle(&mut applier, 200, |_| false).expect("comes to rest");
    assert_eq!(settled.history.findings(), []);
    applier
}

#[test]
fn two_placements_that_meet_part_ways_once() {
    let applier = come_to_rest(world(2, &[wanting(1, 1, 1), wanting(1, 1, 1)]));
    let decided = applier.world().of(&PLACEMENT_DECISION);
    let mut clusters: Vec<&str> = decided.flat_map(clusters_of).collect();
    clusters.sort_unstable();
    assert_eq!(clusters, ["c0", "c1"]);
}

proptest! {
    #![proptest_config(property::config(96))]

    #[test]
    fn however_many_there_are_they_come_to_rest(
        clusters in 1..8usize,
        placements in vec((1..6usize, 0..4i64, 0..3i64), 1..7),
    ) {
        let placements: Vec<Value> = placements
            .into_iter()
            .map(|(wanted, balance, steady)| wanting(wanted, balance, steady))
            .collect();
        come_to_rest(world(clusters, &placements));
    }
}
