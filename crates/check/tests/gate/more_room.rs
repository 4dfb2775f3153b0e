//! A limit that is raised, or taken away, never lets fewer members start or go: every limit of
//! every dialect, at the beginning of rollouts and in the middle of them.

use std::collections::BTreeSet;

use convoy_api::karpenter::names::NODE_POOL;
use convoy_api::kinds::DEPLOYMENT;
use convoy_api::ocm::names::MANIFEST_WORK_REPLICA_SET;
use convoy_api::skyhook::SKYHOOK;
use convoy_api::{GroupKind, ObjectKey};
use convoy_check::Applier;
use convoy_plan::dialect::workloads::{DAEMON_SETS, JOBS, STATEFUL_SETS};
use convoy_plan::{Plan, Step, Verb, World, plan};
use convoy_testkit::{NOW, property};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::agents::{Agents, act};
use crate::kubelet::Kubelets;
use crate::workloads::{Scene, daemon_set, job, set_image, stateful_set};
use crate::{apps, evictions, fleet, karpenter, moves, ocm, skyhook, staged};

const PLACEMENT: GroupKind = fleet_kind("ClusterResourcePlacement");
const RUN: GroupKind = fleet_kind("ClusterStagedUpdateRun");
const EVICTION_BUDGET: GroupKind = fleet_kind("ClusterResourcePlacementDisruptionBudget");
const POLICY: GroupKind = GroupKind::new("skyhook.nvidia.com", "DeploymentPolicy");

const fn fleet_kind(kind: &'static str) -> GroupKind {
    GroupKind::new("placement.kubernetes-fleet.io", kind)
}

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

/// A share of the members is at most all of them.
fn raise_percent(raw: &mut Value, pointer: &str) {
    if let Some(percent) = raw.pointer_mut(pointer) {
        *percent = json!((percent.as_u64().expect("it is not negative") + 10).min(100));
    }
}

/// A world after so many rounds of plans, with `outside` acting after each.
fn after(world: World, rounds: usize, mut outside: impl FnMut(&mut Applier) -> bool) -> Applier {
    let mut applier = Applier::new(world, NOW.parse().expect("an instant"));
    for _ in 0..rounds {
        for step in &plan(applier.world(), applier.now()).steps {
            drop(applier.apply(step)); // a write that another step made stale is planned again
        }
        outside(&mut applier);
    }
    applier
}

/// What is planned for a world, and once `change` has raised limits of its objects of a kind.
fn plans(world: World, kind: &GroupKind, change: impl Fn(&mut Value)) -> [Plan; 2] {
    plans_of(after(world, 0, |_| false), kind, change)
}

fn plans_of(mut applier: Applier, kind: &GroupKind, change: impl Fn(&mut Value)) -> [Plan; 2] {
    let before = plan(applier.world(), applier.now());
    let keys: Vec<ObjectKey> = applier.world().of(kind).map(|it| it.key().clone()).collect();
    for key in keys {
        applier.edit(&key, &change);
    }
    [before, plan(applier.world(), applier.now())]
}

/// Fails if fewer members move in the second plan.
fn no_fewer([before, after]: &[Plan; 2]) -> Result<(), TestCaseError> {
    let (before, after) = (moved(before), moved(after));
    prop_assert!(after >= before, "{before}, and with more room {after}");
    Ok(())
}

/// How many members a plan starts, updates or removes.
fn moved(plan: &Plan) -> usize {
    let actions = plan.steps.iter().flat_map(|step| &step.actions);
    let members = actions.filter(|action| moves(action.verb)).map(|action| &action.target);
    members.collect::<BTreeSet<_>>().len()
}

fn moved_in(step: &Step) -> usize {
    step.actions.iter().filter(|action| moves(action.verb)).count()
}

fn started_in(step: &Step) -> usize {
    step.actions.iter().filter(|action| matches!(action.verb, Verb::Start(_))).count()
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
        no_fewer(&plans(world, &PLACEMENT, |raw| raise(raw, &pointer)))?;
    }

    #[test]
    fn of_replica_sets(case in ocm::cases(false), rounds in 0..4usize) {
        let strategy = "/spec/placementRefs/0/rolloutStrategy";
        let concurrency = |raw: &mut Value| {
            let pointer = format!("{strategy}/progressive/maxConcurrency");
            if !matches!(raw.pointer(&pointer), Some(most) if *most == 0 || *most == "0%") {
                raise(raw, &pointer); // none is no limit
            }
        };
        let failures = |raw: &mut Value| {
            for kind in ["all", "progressive", "progressivePerGroup"] {
                raise(raw, &format!("{strategy}/{kind}/maxFailures"));
            }
        };
        let later = || after(ocm::world(&case), rounds, |it| ocm::act(it, &case.clusters));
        no_fewer(&plans_of(later(), &MANIFEST_WORK_REPLICA_SET, concurrency))?;
        no_fewer(&plans_of(later(), &MANIFEST_WORK_REPLICA_SET, failures))?;
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
        no_fewer(&plans(world, &NODE_POOL, change))?;
    }

    #[test]
    fn of_skyhooks(case in skyhook::cases(), rounds in 0..6usize) {
        let (one_in, for_good) = case.failures;
        let kubelets = Kubelets::new(case.seed, u64::from(one_in), for_good);
        let later = || after(skyhook::world(&case), rounds, |applier| kubelets.act(applier));
        let legacy = |raw: &mut Value| raise(raw, "/spec/interruptionBudget/count");
        no_fewer(&plans_of(later(), &SKYHOOK, legacy))?;
        let terms = || (0..case.compartments.len()).map(|at| match at.checked_sub(1) {
            None => "/spec/default".to_owned(),
            Some(at) => format!("/spec/compartments/{at}"),
        });
        let budgets = |raw: &mut Value| for terms in terms() {
            raise(raw, &format!("{terms}/budget/count"));
            raise_percent(raw, &format!("{terms}/budget/percent"));
        };
        no_fewer(&plans_of(later(), &POLICY, budgets))?;
        for field in ["initialBatch", "failureThreshold"] {
            let strategies = |raw: &mut Value| for terms in terms() {
                for kind in ["fixed", "linear", "exponential"] {
                    raise(raw, &format!("{terms}/strategy/{kind}/{field}"));
                }
            };
            no_fewer(&plans_of(later(), &POLICY, strategies))?;
        }
    }

    /// A pause keeps rollouts where they are; taking it away never lets fewer start.
    #[test]
    fn of_paused_rollouts(case in skyhook::cases(), mut deployment in apps::cases(), rounds in 0..4usize) {
        let (one_in, for_good) = case.failures;
        let kubelets = Kubelets::new(case.seed, u64::from(one_in), for_good);
        let later = after(skyhook::world(&case), rounds, |applier| kubelets.act(applier));
        let pause = |raw: &mut Value| {
            raw["metadata"]["annotations"]["skyhook.nvidia.com/pause"] = json!("true");
        };
        let [going, paused] = plans_of(later, &SKYHOOK, pause);
        no_fewer(&[paused, going])?;
        // A paused Deployment still shares out its size, so all of it is in one ReplicaSet.
        deployment.sets.truncate(1);
        deployment.replicas = deployment.sets.iter().map(|set| set.1).sum();
        for set in &mut deployment.sets {
            set.3 = deployment.replicas;
        }
        let pause = |raw: &mut Value| raw["spec"]["paused"] = json!(true);
        let [_, paused] = plans(apps::world(&deployment), &DEPLOYMENT, pause);
        prop_assert_eq!(resized(&deployment, &paused), (0, 0));
    }

    #[test]
    fn of_staged_runs(share in prop::sample::select(vec!["1", "50%"]), rounds in 0..30usize) {
        let agents = Agents { pace: 2, approve: true, untracked: true };
        let later = after(staged(&json!(share)), rounds, |applier| act(applier, agents));
        let change = |raw: &mut Value| for at in 0..2 {
            // A run keeps the strategy that it began with.
            let kept = "/status/stagedUpdateStrategySnapshot";
            raise(raw, &format!("{kept}/stages/{at}/maxConcurrency"));
        };
        no_fewer(&plans_of(later, &RUN, change))?;
    }

    #[test]
    fn of_evictions(objects in fleet::middle(), count in 1..4usize, least in 1..6u32) {
        let world = objects.into_iter().chain(evictions(count, least)).collect();
        let change = |raw: &mut Value| raw["spec"]["minAvailable"] = json!(least - 1);
        no_fewer(&plans(world, &EVICTION_BUDGET, change))?;
    }

    #[test]
    fn of_daemon_sets(nodes in 1usize..7, down in 1i64..5, luck: u64) {
        let moved = |down: i64| {
            let strategy = json!({"maxUnavailable": down, "maxSurge": 0});
            let mut scene = Scene::new(&DAEMON_SETS, daemon_set(&strategy), nodes, luck);
            scene.settle(|_| {});
            set_image(&mut scene, "web:v2");
            moved_in(&scene.decide())
        };
        prop_assert!(moved(down + 1) >= moved(down));
    }

    #[test]
    fn of_stateful_sets(
        replicas in 1i64..6,
        ordered: bool,
        down in 1i64..4,
        partition in 1i64..6,
        luck: u64,
    ) {
        let policy = if ordered { "OrderedReady" } else { "Parallel" };
        let mut scene = Scene::new(&STATEFUL_SETS, stateful_set(replicas, policy), 1, luck);
        scene.settle(|_| {});
        set_image(&mut scene, "web:v2");
        let mut moved = |down: i64, partition: i64| {
            let key = scene.key.clone();
            scene.applier.edit(&key, |raw| {
                raw["spec"]["updateStrategy"] = json!({"type": "RollingUpdate",
                    "rollingUpdate": {"maxUnavailable": down, "partition": partition}});
            });
            moved_in(&scene.decide())
        };
        let before = moved(down, partition);
        prop_assert!(moved(down + 1, partition) >= before);
        prop_assert!(moved(down, partition - 1) >= before);
        prop_assert!(moved(replicas + 1, 0) > 0, "nothing limits it");
    }

    #[test]
    fn of_jobs(completions in 1i64..8, parallelism in 0i64..4, running in 0usize..4, luck: u64) {
        let mut scene = Scene::new(&JOBS, job(completions, parallelism, "NonIndexed"), 1, luck);
        let first = scene.decide();
        scene.applier.apply(&first).expect("nobody else writes");
        for pod in scene.pods().iter().skip(running) {
            scene.applier.remove(pod.key());
        }
        let mut started = |parallelism: i64, suspended: bool| {
            let key = scene.key.clone();
            scene.applier.edit(&key, |raw| {
                raw["spec"]["parallelism"] = json!(parallelism);
                raw["spec"]["suspend"] = json!(suspended);
            });
            started_in(&scene.decide())
        };
        let before = started(parallelism, false);
        prop_assert!(started(parallelism + 1, false) >= before);
        prop_assert!(before >= started(parallelism, true));
    }
}
