//! What plans say about limits is true, in every step of random worlds of all dialects: a hold
//! names a limit that is really full, no member both starts and waits, and no group starts more
//! members than its ceiling.

#[expect(dead_code, reason = "other tests use more of it")]
#[path = "fleet/agents.rs"]
mod agents;
#[path = "apps/worlds.rs"]
mod apps;
#[path = "fleet/worlds.rs"]
mod fleet;
#[path = "karpenter/worlds.rs"]
mod karpenter;
#[expect(dead_code, reason = "other tests use more of it")]
#[path = "skyhook/kubelet.rs"]
mod kubelet;
#[path = "ocm/worlds.rs"]
mod ocm;
#[path = "skyhook/worlds.rs"]
mod skyhook;
#[expect(dead_code, reason = "other tests use more of it")]
#[path = "workloads/worlds.rs"]
mod workloads;

use std::collections::BTreeSet;

use agents::{Agents, act};
use convoy_api::kinds::POD;
use convoy_check::Applier;
use convoy_plan::dialect::workloads::{DAEMON_SETS, JOBS, STATEFUL_SETS};
use convoy_plan::{Action, Hold, HoldReason, Step, Verb, World, Write, plan};
use convoy_testkit::{NOW, property};
use jiff::Timestamp;
use kubelet::Kubelets;
use proptest::prelude::*;
use serde_json::{Value, json};
use workloads::{Scene, daemon_set, job, set_image, stateful_set};

/// What a step says about limits and is not so.
fn contradictions(world: &World, step: &Step) -> Vec<String> {
    let started: BTreeSet<String> = step
        .actions
        .iter()
        .filter(|action| matches!(action.verb, Verb::Start(_) | Verb::Retry(_) | Verb::Update(_)))
        .filter(|action| !is_replacement(step, action))
        .map(|action| member(world, step, action))
        .collect();
    let groups = starts_by_group(step, &started);
    let mut found = Vec::new();
    let mut held = BTreeSet::new();
    for hold in &step.holds {
        if hold.member.is_some() && !held.insert((hold.group.clone(), hold.member.clone())) {
            found.push(format!("a second hold: {hold:?}"));
        }
        let starts = hold.member.as_deref().is_some_and(|member| started.contains(member));
        if starts && !is_under_way(hold) {
            found.push(format!("starts and waits: {hold:?}"));
        }
        let group = groups.iter().find(|group| Some(&*group.name) == hold.group.as_deref());
        let starts = group.map_or(started.len(), |group| group.count);
        if !is_full(hold, starts) {
            found.push(format!("there is room: {hold:?}, {starts} start"));
        }
    }
    for Starts { name, ceiling, count } in groups.iter().filter(|it| it.count > it.ceiling) {
        found.push(format!("{name:?} starts {count}, more than its ceiling {ceiling}"));
    }
    found
}

/// Whether a claim is launched for others that go: it takes no slot of the disruption budget.
fn is_replacement(step: &Step, action: &Action) -> bool {
    step.dialect == "karpenter" && matches!(action.write, Write::Create { .. })
}

/// The member that an action is about, as holds name it.
fn member(world: &World, step: &Step, action: &Action) -> String {
    let target = &action.target;
    match step.dialect {
        "ocm" => target.namespace.to_string(),
        "fleet" => {
            let binding = world.get(target).map_or(&Value::Null, |binding| binding.spec());
            binding["targetCluster"].as_str().unwrap_or(&target.name).to_owned()
        }
        _ => target.name.to_string(),
    }
}

/// Whether a hold tells of a member that has its slot what its own work is waiting for.
fn is_under_way(hold: &Hold) -> bool {
    matches!(
        hold.reason,
        HoldReason::Settling { .. }
            | HoldReason::NotAvailable { .. }
            | HoldReason::Depends { .. }
            | HoldReason::Draining { .. }
            | HoldReason::PodDisruptionBudget { .. }
            | HoldReason::PodProtected { .. }
    )
}

/// Whether the limit that a hold names leaves no room, once `starts` members of its group, or
/// of the step, have started.
fn is_full(hold: &Hold, starts: usize) -> bool {
    match &hold.reason {
        HoldReason::BudgetSpent { in_flight, ceiling, .. } => in_flight >= ceiling,
        HoldReason::AvailabilityFloor { available, required, .. } => available <= required,
        HoldReason::BatchFull { size, .. } => *size as usize >= starts,
        HoldReason::BatchRunning { unfinished, .. } | HoldReason::GroupOrder { unfinished, .. } => {
            *unfinished > 0
        }
        HoldReason::FailureStop { value, failures, .. } => failures >= value,
        _ => true,
    }
}

/// A group with a ceiling, and how many of its members start.
struct Starts {
    /// Empty for the rollout as a whole.
    name: String,
    ceiling: usize,
    count: usize,
}

fn starts_by_group(step: &Step, started: &BTreeSet<String>) -> Vec<Starts> {
    let ceilings: Vec<(&String, usize)> =
        step.groups.iter().filter_map(|it| Some((&it.name, it.ceiling? as usize))).collect();
    if let Some(compartments) = step.decision.get("compartments") {
        let of_compartment = |(name, ceiling): &(&String, usize)| {
            let members = compartments[name.as_str()]["members"].as_array();
            let members = members.into_iter().flatten().filter_map(Value::as_str);
            let count = members.filter(|name| started.contains(*name)).count();
            // A budget of zero lets one node through, as upstream does.
            Starts { name: (*name).clone(), ceiling: (*ceiling).max(1), count }
        };
        return ceilings.iter().map(of_compartment).collect();
    }
    // Other steps do not tell whose a started member is. Decision groups share their ceiling, and
    // of stages only one starts members, so that the largest ceiling is a bound.
    let largest = ceilings.iter().map(|(_, ceiling)| *ceiling).max();
    let largest = largest.filter(|_| ceilings.len() == step.groups.len()).into_iter();
    let count = started.len();
    largest.map(|ceiling| Starts { name: String::new(), ceiling, count }).collect()
}

/// Plans, checks and applies, with `outside` acting after every round, until nothing happens.
fn holds_at_every_step(
    world: World,
    rounds: usize,
    mut outside: impl FnMut(&mut Applier) -> bool,
) -> Result<(), TestCaseError> {
    let mut applier = Applier::new(world, NOW.parse().expect("an instant"));
    for _ in 0..rounds {
        let plan = plan(applier.world(), applier.now());
        for step in &plan.steps {
            let found = contradictions(applier.world(), step);
            prop_assert!(found.is_empty(), "{found:#?}\n{}", step.to_json());
        }
        let quiet = plan.steps.iter().all(Step::is_quiet);
        for step in &plan.steps {
            // A write that another step of this round made stale is planned again.
            drop(applier.apply(step));
        }
        if outside(&mut applier) || !quiet {
            continue;
        }
        let later = |at: &Timestamp| *at > applier.now();
        match plan.steps.iter().filter_map(|step| step.wake_at).filter(later).min() {
            Some(at) => applier.advance_to(at),
            None => break,
        }
    }
    Ok(())
}

/// Lets a scene come to rest; every step on the way is checked.
fn rest(scene: &mut Scene) {
    scene.settle(|scene| {
        let (world, step) = (scene.applier.world(), scene.decide());
        assert_eq!(contradictions(world, &step), Vec::<String>::new(), "{}", step.to_json());
    });
}

proptest! {
    #![proptest_config(property::config(32))]

    #[test]
    fn skyhooks(case in skyhook::cases()) {
        let (one_in, for_good) = case.failures;
        let kubelets = Kubelets::new(case.seed, u64::from(one_in), for_good);
        holds_at_every_step(skyhook::world(&case), 60, |applier| kubelets.act(applier))?;
    }

    #[test]
    fn fleet_placements(objects in fleet::middle(), pace in 1..4usize, untracked: bool) {
        let agents = Agents { pace, approve: false, untracked };
        let world = objects.into_iter().collect();
        holds_at_every_step(world, 40, |applier| act(applier, agents))?;
    }

    #[test]
    fn deployments(case in apps::cases()) {
        let mut luck = case.luck;
        holds_at_every_step(apps::world(&case), 60, |it| apps::cluster_moves(it, &mut luck))?;
    }

    #[test]
    fn node_pools(
        nodes in prop::collection::vec(karpenter::found(), 0..12),
        budgets in prop::collection::vec(karpenter::budget(), 0..5),
        after in prop::sample::select(vec!["0s", "1h", "30h", "Never"]),
    ) {
        let world = karpenter::world_of(&nodes, &budgets, after);
        holds_at_every_step(world, 20, karpenter::provider)?;
    }

    #[test]
    fn manifest_work_replica_sets(case in ocm::cases(false)) {
        holds_at_every_step(ocm::world(&case), 60, |it| ocm::act(it, &case.clusters))?;
    }

    #[test]
    fn daemon_sets(nodes in 1usize..7, down in 0i64..4, surge in 0i64..3, luck: u64) {
        let surge = if down > 0 { 0 } else { surge };
        let strategy = json!({"maxUnavailable": down, "maxSurge": surge});
        let mut scene = Scene::new(&DAEMON_SETS, daemon_set(&strategy), nodes, luck);
        rest(&mut scene);
        set_image(&mut scene, "web:v2");
        rest(&mut scene);
    }

    #[test]
    fn stateful_sets(replicas in 0i64..6, ordered: bool, luck: u64) {
        let policy = if ordered { "OrderedReady" } else { "Parallel" };
        let mut scene = Scene::new(&STATEFUL_SETS, stateful_set(replicas, policy), 1, luck);
        rest(&mut scene);
        set_image(&mut scene, "web:v2");
        rest(&mut scene);
    }

    #[test]
    fn jobs(completions in 1i64..6, parallelism in 1i64..4, indexed: bool, luck: u64) {
        let mode = if indexed { "Indexed" } else { "NonIndexed" };
        let mut scene = Scene::new(&JOBS, job(completions, parallelism, mode), 1, luck);
        scene.ends = |luck| match luck % 3 {
            0 => Some("Failed"),
            1 => Some("Succeeded"),
            _ => None,
        };
        rest(&mut scene);
    }
}
