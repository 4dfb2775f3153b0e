//! A budget that is raised never lets fewer members start or go.

use std::collections::BTreeSet;

use convoy_api::karpenter::names::NODE_POOL;
use convoy_api::kinds::DEPLOYMENT;
use convoy_api::ocm::names::MANIFEST_WORK_REPLICA_SET;
use convoy_api::skyhook::SKYHOOK;
use convoy_api::{GroupKind, ObjectKey};
use convoy_check::Applier;
use convoy_plan::dialect::workloads::DAEMON_SETS;
use convoy_plan::{Plan, World, plan};
use convoy_testkit::{NOW, property};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::workloads::{Scene, daemon_set, set_image};
use crate::{apps, fleet, karpenter, moves, ocm, skyhook};

const PLACEMENT: GroupKind =
    GroupKind::new("placement.kubernetes-fleet.io", "ClusterResourcePlacement");

/// A budget with room for more: one more, or ten percent.
fn raised(budget: &Value) -> Value {
    let percent = |text: &str| text.strip_suffix('%').and_then(|it| it.parse::<u32>().ok());
    match budget {
        Value::Number(count) => json!(count.as_u64().expect("budgets are not negative") + 1),
        Value::String(text) => match (percent(text), text.parse::<u32>()) {
            (Some(percent), _) => json!(format!("{}%", (percent + 10).min(100))),
            (None, Ok(count)) => json!((count + 1).to_string()),
            (None, Err(_)) => budget.clone(),
        },
        _ => budget.clone(),
    }
}

fn raise(raw: &mut Value, pointer: &str) {
    if let Some(budget) = raw.pointer_mut(pointer) {
        *budget = raised(budget);
    }
}

/// What is planned for a world, and once `change` has raised budgets of its rollouts.
fn plans(world: World, kind: &GroupKind, change: impl Fn(&mut Value)) -> [Plan; 2] {
    let mut applier = Applier::new(world, NOW.parse().expect("an instant"));
    let before = plan(applier.world(), applier.now());
    let keys: Vec<ObjectKey> = applier.world().of(kind).map(|it| it.key().clone()).collect();
    for key in keys {
        applier.edit(&key, &change);
    }
    [before, plan(applier.world(), applier.now())]
}

/// How many members a plan starts, updates or removes.
fn moved(plan: &Plan) -> usize {
    let actions = plan.steps.iter().flat_map(|step| &step.actions);
    let members = actions.filter(|action| moves(action.verb)).map(|action| &action.target);
    members.collect::<BTreeSet<_>>().len()
}

/// How many replicas a plan adds, and how many it takes.
fn resized(case: &apps::Case, plan: &Plan) -> (i64, i64) {
    let decision = &plan.steps[0].decision;
    let (mut added, mut taken) = (decision["create"]["replicas"].as_i64().unwrap_or(0), 0);
    for (at, (_, size, ..)) in case.sets.iter().enumerate() {
        let wanted = decision["scale"][format!("web-{at}")].as_i64().unwrap_or(*size);
        added += (wanted - size).max(0);
        taken += (size - wanted).max(0);
    }
    (added, taken)
}

proptest! {
    #![proptest_config(property::config(32))]

    #[test]
    fn of_deployments(mut case in apps::cases()) {
        for set in &mut case.sets {
            set.3 = case.replicas; // shares of a new size are in proportion, whatever the room
        }
        let change = |raw: &mut Value| raise(raw, "/spec/strategy/rollingUpdate/maxSurge");
        let [before, after] = plans(apps::world(&case), &DEPLOYMENT, change);
        prop_assert!(resized(&case, &after).0 >= resized(&case, &before).0);
        let change = |raw: &mut Value| raise(raw, "/spec/strategy/rollingUpdate/maxUnavailable");
        let [before, after] = plans(apps::world(&case), &DEPLOYMENT, change);
        prop_assert!(resized(&case, &after).1 >= resized(&case, &before).1);
    }

    #[test]
    fn of_placements(objects in fleet::middle(), surge: bool) {
        let field = if surge { "maxSurge" } else { "maxUnavailable" };
        let pointer = format!("/spec/strategy/rollingUpdate/{field}");
        let world = objects.into_iter().collect();
        let [before, after] = plans(world, &PLACEMENT, |raw| raise(raw, &pointer));
        prop_assert!(moved(&after) >= moved(&before), "{} then {}", moved(&before), moved(&after));
    }

    #[test]
    fn of_replica_sets(case in ocm::cases(false)) {
        let change = |raw: &mut Value| {
            let pointer = "/spec/placementRefs/0/rolloutStrategy/progressive/maxConcurrency";
            if !matches!(raw.pointer(pointer), Some(most) if *most == 0 || *most == "0%") {
                raise(raw, pointer); // none is no limit
            }
        };
        let [before, after] = plans(ocm::world(&case), &MANIFEST_WORK_REPLICA_SET, change);
        prop_assert!(moved(&after) >= moved(&before), "{} then {}", moved(&before), moved(&after));
    }

    #[test]
    fn of_node_pools(
        nodes in prop::collection::vec(karpenter::found(), 0..12),
        budgets in prop::collection::vec(karpenter::budget(), 0..5),
    ) {
        let change = |raw: &mut Value| {
            for at in 0..budgets.len() {
                raise(raw, &format!("/spec/disruption/budgets/{at}/nodes"));
            }
        };
        let world = karpenter::world_of(&nodes, &budgets, "Never");
        let [before, after] = plans(world, &NODE_POOL, change);
        prop_assert!(moved(&after) >= moved(&before), "{} then {}", moved(&before), moved(&after));
    }

    #[test]
    fn of_skyhooks(case in skyhook::cases()) {
        let change = |raw: &mut Value| raise(raw, "/spec/interruptionBudget/count");
        let [before, after] = plans(skyhook::world(&case), &SKYHOOK, change);
        prop_assert!(moved(&after) >= moved(&before), "{} then {}", moved(&before), moved(&after));
    }

    #[test]
    fn of_daemon_sets(nodes in 1usize..7, down in 1i64..5, luck: u64) {
        let moved = |down: i64| {
            let strategy = json!({"maxUnavailable": down, "maxSurge": 0});
            let mut scene = Scene::new(&DAEMON_SETS, daemon_set(&strategy), nodes, luck);
            scene.settle(|_| {});
            set_image(&mut scene, "web:v2");
            scene.decide().actions.iter().filter(|action| moves(action.verb)).count()
        };
        prop_assert!(moved(down + 1) >= moved(down));
    }
}
