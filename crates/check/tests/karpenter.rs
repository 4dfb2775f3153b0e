//! Pools of nodes, planned and applied until nothing moves: within budget at every instant,
//! quiet at the end, and with a reason for every node that stays.

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

fn now() -> Timestamp {
    NOW.parse().expect("a constant")
}

fn with_condition(claim: &Object, condition: Value) -> Object {
    let mut raw = claim.raw().clone();
    raw["status"]["conditions"].as_array_mut().expect("claims have conditions").push(condition);
    claim.with_raw(raw)
}

/// A claim whose hash is of an earlier template.
fn outdated(pool: &str, name: &str) -> [Object; 2] {
    let claim = karpenter::claim(pool, name).annotation("karpenter.sh/nodepool-hash", "1").build();
    [claim, karpenter::node_of(pool, name).build()]
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

/// What a provider and kubelets do: machines come up, and go down when asked.
fn provider(applier: &mut Applier) -> bool {
    let claims: Vec<Object> = applier.world().of(&NODE_CLAIM).cloned().collect();
    let mut changed = false;
    for claim in claims {
        let terminates = claim.condition_status("InstanceTerminating") == Some("True");
        if terminates && claim.annotation("convoy.dev/instance-state").is_none() {
            applier.edit(claim.key(), |raw| {
                raw["metadata"]["annotations"]["convoy.dev/instance-state"] = json!("Terminated");
            });
            changed = true;
        }
        if claim.status().is_null() && !claim.is_deleting() {
            let pool =
                claim.label("karpenter.sh/nodepool").expect("claims name their pool").to_owned();
            let model = karpenter::claim(&pool, claim.name()).json();
            applier.edit(claim.key(), |raw| raw["status"] = model["status"].clone());
            applier.insert(karpenter::node_of(&pool, claim.name()).build());
            changed = true;
        }
    }
    changed
}

#[test]
fn drifted_nodes_are_replaced_within_the_budget_and_then_all_is_quiet() {
    let disruption = json!({"consolidateAfter": "Never", "budgets": [{"nodes": "3"}]});
    let mut world: World = (0..10).flat_map(|at| outdated("default", &format!("n{at}"))).collect();
    world.insert(karpenter::pool("default", &disruption).build());
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
    let waiting = plan(applier.world(), applier.now());
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

/// One node in the middle of anything.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is drawn on its own")]
struct Found {
    drifted: bool,
    ready: bool,
    initialized: bool,
    deleting: bool,
    disrupting: bool,
    tainted: bool,
    protected: bool,
    pods: u8,
    pool: u8,
}

fn found() -> impl Strategy<Value = Found> {
    let rarely = || prop::bool::weighted(0.15);
    let flags = (
        any::<bool>(),
        prop::bool::weighted(0.9),
        prop::bool::weighted(0.9),
        rarely(),
        rarely(),
        rarely(),
        rarely(),
    );
    (flags, 0..3u8, 0..2u8).prop_map(
        |((drifted, ready, initialized, deleting, disrupting, tainted, protected), pods, pool)| {
            Found {
                drifted,
                ready,
                initialized,
                deleting,
                disrupting,
                tainted,
                protected,
                pods,
                pool,
            }
        },
    )
}

fn budget() -> impl Strategy<Value = Value> {
    let nodes = prop_oneof![
        (0..6u32).prop_map(|count| count.to_string()),
        (0..=100u32).prop_map(|percent| format!("{percent}%")),
    ];
    let reasons = prop::sample::subsequence(vec!["Empty", "Drifted", "Underutilized"], 0..=3);
    let window = prop::option::of(prop::sample::select(vec![
        ("0 0 * * *", "1h"),
        ("30 23 * * *", "1h"),
        ("@hourly", "10m"),
        ("0 12 * * *", "2h"),
        ("0 0 30 2 *", "1h"),
        ("0 0 * * sat-sun", "1h"),
    ]));
    (nodes, reasons, window).prop_map(|(nodes, reasons, window)| {
        let mut budget = json!({"nodes": nodes});
        if !reasons.is_empty() {
            budget["reasons"] = json!(reasons);
        }
        if let Some((schedule, duration)) = window {
            budget["schedule"] = json!(schedule);
            budget["duration"] = json!(duration);
        }
        budget
    })
}

fn world_of(nodes: &[Found], budgets: &[Value], after: &str) -> World {
    let mut world = World::new();
    for pool in ["a", "b"] {
        let disruption = json!({"consolidateAfter": after, "budgets": budgets});
        world.insert(karpenter::pool(pool, &disruption).build());
    }
    for (at, found) in nodes.iter().enumerate() {
        let (name, pool) = (format!("n{at:02}"), if found.pool == 0 { "a" } else { "b" });
        let [mut claim, node] =
            if found.drifted { outdated(pool, &name) } else { karpenter::pair(pool, &name) };
        if found.disrupting {
            let reason = json!({"type": "DisruptionReason", "status": "True", "reason": "Drifted",
                "message": "Drifted", "lastTransitionTime": "2025-12-31T23:59:00Z"});
            claim = with_condition(&claim, reason);
        }
        let mut raw = node.raw().clone();
        if !found.ready {
            raw["status"]["conditions"][0]["status"] = json!("Unknown");
        }
        if !found.initialized {
            raw["metadata"]["labels"]["karpenter.sh/initialized"] = json!("false");
        }
        if found.tainted {
            raw["spec"]["taints"] = json!([{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}, {"key": "x", "effect": "NoSchedule"}]);
        }
        if found.protected {
            raw["metadata"]["annotations"] = json!({"karpenter.sh/do-not-disrupt": "true"});
        }
        let mut claim_raw = claim.raw().clone();
        if found.deleting {
            claim_raw["metadata"]["deletionTimestamp"] = json!("2025-12-31T23:58:00Z");
        }
        world.insert(claim.with_raw(claim_raw));
        world.insert(node.with_raw(raw));
        for pod in 0..found.pods {
            world.insert(karpenter::pod(&format!("p{at}-{pod}"), &name, "900m").build());
        }
    }
    world
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
