//! Random fleets, placements and strategies, and the agents of their clusters.

use convoy_api::Object;
use convoy_api::ocm::names::MANIFEST_WORK;
use convoy_check::Applier;
use convoy_plan::{World, condition};
use convoy_testkit::ocm::{
    bound_set, condition as report, managed_cluster, placement, replica_set,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// How a cluster's agent behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Agent {
    Succeeds,
    Fails,
    Silent,
}

/// One case: who is there, what is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Ring and agent of each cluster.
    pub(crate) clusters: Vec<(u8, Agent)>,
    pub(crate) placement: Value,
    pub(crate) strategy: Value,
}

pub(crate) fn agents(only_good: bool) -> impl Strategy<Value = Agent> {
    let bad = u32::from(!only_good);
    prop_oneof![
        8 => Just(Agent::Succeeds),
        bad => Just(Agent::Fails),
        bad => Just(Agent::Silent),
    ]
}

pub(crate) fn placements() -> impl Strategy<Value = Value> {
    let length =
        prop_oneof![Just(json!("100%")), (1..6i64).prop_map(|n| json!(n)), Just(json!("30%"))];
    (length, any::<bool>(), prop::option::of(1..12i64)).prop_map(|(length, canary, wanted)| {
        let named = json!([{"groupName": "canary",
            "groupClusterSelector": {"labelSelector": {"matchLabels": {"ring": "0"}}}}]);
        let mut spec = json!({"decisionStrategy": {"groupStrategy":
            {"clustersPerDecisionGroup": length, "decisionGroups": if canary { named } else { json!([]) }}}});
        if let Some(wanted) = wanted {
            spec["numberOfClusters"] = json!(wanted);
        }
        spec
    })
}

pub(crate) fn strategies() -> impl Strategy<Value = Value> {
    let size = || prop_oneof![(0..5i64).prop_map(|n| json!(n)), Just(json!("25%"))];
    let kind = prop_oneof![Just("All"), Just("Progressive"), Just("ProgressivePerGroup")];
    let seconds = || prop_oneof![Just("0s"), Just("30s"), Just("5m")];
    (kind, size(), size(), seconds(), prop::option::of(seconds()), any::<bool>()).prop_map(
        |(kind, concurrency, failures, soak, deadline, canary)| {
            let mut block = json!({"maxFailures": failures, "minSuccessTime": soak});
            if let Some(deadline) = deadline {
                block["progressDeadline"] = json!(deadline);
            }
            if canary && kind != "All" {
                block["mandatoryDecisionGroups"] = json!([{"groupName": "canary"}]);
            }
            let mut strategy = json!({"type": kind});
            let name = match kind {
                "All" => "all",
                "Progressive" => "progressive",
                _ => "progressivePerGroup",
            };
            if kind == "Progressive" {
                block["maxConcurrency"] = concurrency;
            }
            strategy[name] = block;
            strategy
        },
    )
}

pub(crate) fn cases(only_good: bool) -> impl Strategy<Value = Case> {
    let clusters = prop::collection::vec((0..3u8, agents(only_good)), 0..16);
    (clusters, placements(), strategies()).prop_map(|(clusters, placement, strategy)| Case {
        clusters,
        placement,
        strategy,
    })
}

pub(crate) fn name(index: usize) -> String {
    format!("c{index:02}")
}

pub(crate) fn cluster(index: usize, ring: u8) -> Object {
    managed_cluster(&name(index)).label("ring", &ring.to_string()).build()
}

pub(crate) fn world(case: &Case) -> World {
    let mut world: World = bound_set().map(convoy_testkit::Builder::build).into_iter().collect();
    for (index, (ring, _)) in case.clusters.iter().enumerate() {
        world.insert(cluster(index, *ring));
    }
    world.insert(placement("p", case.placement.clone()).build());
    let references = json!([{"name": "p", "rolloutStrategy": case.strategy}]);
    world.insert(replica_set("web", "v1", &references).build());
    world
}

/// Lets every agent report about a work that it has not reported on.
pub(crate) fn act(applier: &mut Applier, clusters: &[(u8, Agent)]) -> bool {
    let works: Vec<Object> = applier.world().of(&MANIFEST_WORK).cloned().collect();
    let mut changed = false;
    for work in works {
        let index = work.namespace().trim_start_matches('c').parse::<usize>().unwrap_or(0);
        let agent = clusters.get(index).map_or(Agent::Succeeds, |(_, agent)| *agent);
        let generation = work.generation();
        let spoken =
            work.condition("Applied").is_some_and(|c| c["observedGeneration"] == generation);
        if agent == Agent::Silent || spoken {
            continue;
        }
        let at = condition::instant(applier.now());
        let at = at.as_str().unwrap_or_default().to_owned();
        let available = if agent == Agent::Succeeds { "True" } else { "False" };
        applier.edit(work.key(), |raw| {
            raw["status"] = json!({"conditions": [
                report("Applied", available, generation, &at),
                report("Available", available, generation, &at)]});
        });
        changed = true;
    }
    changed
}
