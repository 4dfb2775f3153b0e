//! Pools of nodes, planned and applied until nothing moves: within budget at every instant,
//! quiet at the end, and with a reason for every node that stays.

#[path = "karpenter/worlds.rs"]
mod worlds;

use convoy_api::karpenter::names::{NODE_CLAIM, NODE_POOL};
use convoy_api::kinds::NODE;
use convoy_api::kinds::POD;
use convoy_api::{Object, ObjectKey};
use convoy_check::{Applier, check, settle};
use convoy_plan::{Verdict, World, plan};
use convoy_testkit::{NOW, karpenter, property};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use worlds::{Found, budget, found, outdated, provider, world_of};

fn now() -> Timestamp {
    NOW.parse().expect("a constant")
}

/// Nodes that are down, as a budget counts them.
fn down(world: &World) -> usize {
    let claims = world.of(&NODE_CLAIM).filter(|claim| {
        let is = |kind: &str| claim.condition_status(kind) == Some("True");
        let node = world.find(&NODE, "", claim.name());
        let leaves = claim.is_deleting() || is("DisruptionReason");
        node.is_some_and(|node| node.label("karpenter.sh/initialized") == Some("true"))
            && !is("InstanceTerminating")
            && leaves
    });
    claims.count()
}

#[test]
fn drifted_nodes_are_replaced_within_the_budget_and_then_all_is_quiet() {
    let disruption = json!({"consolidateAfter": "Never", "budgets": [{"nodes": "3"}]});
    let mut world: World = (0..10).flat_map(|at| outdated("default", &format!("n{at}"))).collect();
    world.insert(karpenter::pool("default", &disruption).build());
    world.insert(karpenter::node_class().build());
    for at in 0..10 {
        world.insert(karpenter::pod(&format!("p{at}"), &format!("n{at}"), "3").build());
    }
    let mut applier = Applier::new(world, now());
    let mut most = 0;
    let settled = settle(&mut applier, 200, |applier| {
        most = most.max(down(applier.world()));
        provider(applier)
    })
    .unwrap();
    assert_eq!(settled.history.findings(), []);
    assert_eq!(settled.plan.steps[0].verdict, Verdict::Done);
    assert_eq!(most, 3);
    let old = applier.world().of(&NODE_CLAIM);
    assert!(
        old.into_iter().all(|claim| claim.annotation("karpenter.sh/nodepool-hash") != Some("1"))
    );
}

#[test]
fn empty_nodes_go_after_they_have_stayed_empty() {
    let disruption = json!({"consolidateAfter": "1m", "budgets": [{"nodes": "2"}]});
    let mut world: World =
        (0..5).flat_map(|at| karpenter::pair("default", &format!("n{at}"))).collect();
    let pool = karpenter::pool("default", &disruption).build();
    world.insert(pool);
    let mut applier = Applier::new(world, now());
    let first = plan(applier.world(), applier.now());
    assert_eq!(first.steps[0].decision["disrupt"].as_array().unwrap().len(), 2);
    assert!(first.steps[0].actions.iter().all(|action| action.target.kind != NODE));
    let mut most = 0;
    let settled = settle(&mut applier, 200, |applier| {
        most = most.max(down(applier.world()));
        provider(applier)
    })
    .unwrap();
    assert_eq!(settled.history.findings(), []);
    assert_eq!((applier.world().of(&NODE_CLAIM).count(), most), (0, 2));
}

#[test]
fn a_replacement_that_never_comes_up_undoes_the_disruption() {
    let disruption = json!({"consolidateAfter": "Never", "budgets": [{"nodes": "1"}]});
    let mut world: World = outdated("default", "n0").into_iter().collect();
    world.insert(karpenter::pool("default", &disruption).build());
    world.insert(karpenter::pod("p0", "n0", "3").build());
    let mut applier = Applier::new(world, now());
    for _ in 0..3 {
        let plan = plan(applier.world(), applier.now());
        assert_eq!(check(applier.world(), &plan), []);
        applier.apply(&plan.steps[0]).unwrap();
    }
    let claim = |world: &World| world.find(&NODE_CLAIM, "", "n0").unwrap().clone();
    assert_eq!(claim(applier.world()).condition_status("DisruptionReason"), Some("True"));
    // The replacement was made in the second in which the node began to leave; that it is enough is
    // known in the next one.
    applier.advance_to(now() + jiff::SignedDuration::from_secs(1));
    let waiting = plan(applier.world(), applier.now());
    assert_eq!(waiting.steps[0].actions, []);
    let late = waiting.steps[0].wake_at.unwrap();
    assert_eq!(late, now() + jiff::SignedDuration::from_mins(10));
    applier.advance_to(late);
    let undo = plan(applier.world(), applier.now());
    applier.apply(&undo.steps[0]).unwrap();
    assert_eq!(claim(applier.world()).condition("DisruptionReason"), None);
    let node = applier.world().find(&NODE, "", "n0").unwrap();
    assert_eq!(node.spec()["taints"], json!([]));
}

#[test]
fn a_static_pool_keeps_its_number_and_drifts_one_for_one() {
    let mut world: World = (0..3).flat_map(|at| outdated("fixed", &format!("n{at}"))).collect();
    let pool = karpenter::pool("fixed", &json!({"budgets": [{"nodes": "1"}]}))
        .with("/spec/replicas", json!(4));
    world.insert(pool.build());
    let mut applier = Applier::new(world, now());
    let settled = settle(&mut applier, 200, provider).unwrap();
    assert_eq!(settled.history.findings(), []);
    let claims: Vec<&Object> = applier.world().of(&NODE_CLAIM).collect();
    assert_eq!(claims.len(), 4);
    assert!(claims.iter().all(|claim| claim.annotation("karpenter.sh/nodepool-hash") != Some("1")));
}

proptest! {
    #![proptest_config(property::config(64))]

    #[test]
    fn plans_keep_every_promise(
        nodes in prop::collection::vec(found(), 0..14),
        budgets in prop::collection::vec(budget(), 0..5),
        after in prop::sample::select(vec!["0s", "1h", "30h", "Never"]),
    ) {
        let world = world_of(&nodes, &budgets, after);
        let plan = plan(&world, now());
        prop_assert_eq!(check(&world, &plan), vec![]);
        for step in &plan.steps {
            let pool = step.rollout.name.as_str();
            let allowed = step.decision["allowed"][pool].as_object().unwrap();
            let most = allowed.values().filter_map(Value::as_u64).max().unwrap_or(0);
            let started = step.decision["disrupt"].as_array().unwrap();
            // Nodes that are not ready count already; starting them takes no further room.
            let fresh = started.iter().filter(|name| {
                let name = name.as_str().unwrap();
                let node = world.find(&NODE, "", name).unwrap();
                node.condition_status("Ready") == Some("True")
            });
            prop_assert!(fresh.count() as u64 <= most, "{}", step.to_json());
            let members: usize = world.of(&NODE_CLAIM)
                .filter(|claim| claim.label("karpenter.sh/nodepool") == Some(pool)).count();
            prop_assert_eq!(step.groups[0].total as usize, members);
        }
    }

    #[test]
    fn applied_plans_come_to_rest(
        nodes in prop::collection::vec(found(), 0..8),
        count in 1..4u32,
    ) {
        // What others began before we looked may be over our budget.
        let nodes: Vec<Found> =
            nodes.into_iter().map(|found| Found { disrupting: false, ..found }).collect();
        let world = world_of(&nodes, &[json!({"nodes": count.to_string()})], "Never");
        let keys: Vec<ObjectKey> = world.of(&NODE_POOL).map(|pool| pool.key().clone()).collect();
        let mut applier = Applier::new(world, now());
        let settled = settle(&mut applier, 400, provider);
        let settled = settled.map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(settled.history.findings(), &[][..]);
        prop_assert_eq!(settled.plan.steps.len(), keys.len());
        let evicted = applier.world().of(&POD).filter(|pod| pod.is_deleting()).count();
        prop_assert_eq!(evicted, 0);
    }
}
