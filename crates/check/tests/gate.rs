//! What plans say about limits is true, in every step of random worlds of all dialects: a hold
//! names a limit that is really full, no member both starts and waits, no group starts more
//! members than its ceiling, and none that serves goes beyond its budget.

#[expect(dead_code, reason = "other tests use more of it")]
#[path = "fleet/agents.rs"]
mod agents;
#[path = "apps/worlds.rs"]
mod apps;
#[path = "fleet/worlds.rs"]
mod fleet;
#[path = "gate/full.rs"]
mod full;
#[path = "karpenter/worlds.rs"]
mod karpenter;
#[expect(dead_code, reason = "other tests use more of it")]
#[path = "skyhook/kubelet.rs"]
mod kubelet;
#[path = "gate/more_room.rs"]
mod more_room;
#[path = "ocm/worlds.rs"]
mod ocm;
#[path = "skyhook/worlds.rs"]
mod skyhook;
#[expect(dead_code, reason = "other tests use more of it")]
#[path = "workloads/worlds.rs"]
mod workloads;

use std::collections::BTreeSet;

use agents::{Agents, act};
use full::Claim;

use convoy_api::kinds::{JOB, POD};
use convoy_api::{Object, ObjectKey};
use convoy_check::{Applier, Guarantee, check};
use convoy_plan::dialect::apps::ReplicaSets;
use convoy_plan::dialect::workloads::{CRON_JOBS, DAEMON_SETS, JOBS, STATEFUL_SETS};
use convoy_plan::{Action, Dialect, Hold, HoldReason, Step, Verb, World, Write, plan};
use convoy_testkit::{Builder, NOW, fleet as testkit_fleet, object, property};
use jiff::Timestamp;
use kubelet::Kubelets;
use proptest::prelude::*;
use serde_json::{Value, json};
use workloads::{Scene, daemon_set, job, set_image, stateful_set};

/// What a step says about limits and is not so.
fn contradictions(world: &World, step: &Step, now: Timestamp) -> Vec<String> {
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
        if !(Claim { world, step, hold, now, starts }).is_true() {
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
            let found = contradictions(applier.world(), step, applier.now());
            prop_assert!(found.is_empty(), "{found:#?}\n{}", step.to_json());
        }
        // Removals and new sizes, counted from the objects, and one hold for each that waits.
        let mut over = check(applier.world(), &plan);
        over.retain(|finding| matches!(finding.guarantee, Guarantee::G1 | Guarantee::G4));
        prop_assert!(over.is_empty(), "{over:#?}");
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

/// Whether an action starts, changes or removes a member.
fn moves(verb: Verb) -> bool {
    let removes = matches!(verb, Verb::Remove(_) | Verb::DeleteMember(_));
    removes || matches!(verb, Verb::Start(_) | Verb::Retry(_) | Verb::Update(_))
}

/// The pods that a step removes though they serve, unless another one that `replaces` them does.
fn disturbed(world: &World, step: &Step, replaces: fn(&Object, &Object) -> bool) -> usize {
    let removes = |action: &&Action| matches!(action.verb, Verb::Remove(_));
    let removed: BTreeSet<&ObjectKey> =
        step.actions.iter().filter(removes).map(|action| &action.target).collect();
    let serve = |pod: &&Object| !pod.is_deleting() && pod.condition_status("Ready") == Some("True");
    let (going, staying): (Vec<&Object>, Vec<&Object>) =
        world.of(&POD).filter(serve).partition(|pod| removed.contains(pod.key()));
    going.iter().filter(|pod| !staying.iter().any(|other| replaces(other, pod))).count()
}

/// Lets a scene come to rest; every step on the way is checked, and takes no more than `most`
/// pods that serve.
fn rest(scene: &mut Scene, most: usize, replaces: fn(&Object, &Object) -> bool) {
    scene.settle(|scene| {
        let (world, step) = (scene.applier.world(), scene.decide());
        let found = contradictions(world, &step, scene.applier.now());
        assert_eq!(found, Vec::<String>::new(), "{}", step.to_json());
        assert!(disturbed(world, &step, replaces) <= most, "{}", step.to_json());
    });
}

fn on_the_same_node(one: &Object, other: &Object) -> bool {
    one.spec()["nodeName"] == other.spec()["nodeName"]
}

fn nobody(_: &Object, _: &Object) -> bool {
    false
}

/// Six clusters in two rings, and a run that goes through them.
fn staged(concurrency: &Value) -> World {
    let names: Vec<String> = (1..=6).map(|at| format!("c{at}")).collect();
    let ring = |at: usize| if at < 2 { "canary" } else { "prod" };
    let members = names.iter().enumerate();
    let members =
        members.map(|(at, name)| testkit_fleet::member(name, NOW).label("ring", ring(at)));
    let policy = json!({"placementType": "PickFixed", "clusterNames": names});
    let external =
        testkit_fleet::placement("web", policy).with("/spec/strategy/type", json!("External"));
    let stage = |name: &str| {
        json!({"name": name, "labelSelector": {"matchLabels": {"ring": name}},
            "maxConcurrency": concurrency})
    };
    let strategy = testkit_fleet::strategy("rings", json!([stage("canary"), stage("prod")]));
    let run = testkit_fleet::run("release", "web", "rings", "");
    let objects = members.chain([external, strategy, run]).map(Builder::build);
    objects.chain([agents::namespace()]).collect()
}

/// Evictions of the first clusters of placement `web`, and its disruption budget.
fn evictions(count: usize, least: u32) -> impl Iterator<Item = Object> {
    let version = "placement.kubernetes-fleet.io/v1beta1";
    let budget = object(version, "ClusterResourcePlacementDisruptionBudget", "web")
        .spec(json!({"minAvailable": least}));
    let evictions = (0..count).map(move |at| {
        let eviction = object(version, "ClusterResourcePlacementEviction", &format!("evict-{at}"));
        eviction.spec(json!({"placementName": "web", "clusterName": format!("c{at:02}")}))
    });
    evictions.chain([budget]).map(Builder::build)
}

/// Pods that the scheduler found no node for, and pools that may make nodes.
fn with_waiting_pods(mut world: World, pods: u8) -> World {
    let pools: Vec<Object> = world.of(&convoy_api::karpenter::names::NODE_POOL).cloned().collect();
    for pool in pools {
        let mut raw = pool.raw().clone();
        raw["status"] = json!({"conditions": [convoy_testkit::karpenter::is("Ready")]});
        world.insert(pool.with_raw(raw));
    }
    for at in 0..pods {
        let pod = convoy_testkit::karpenter::pod(&format!("waits-{at}"), "", "900m")
            .with("/spec/nodeName", Value::Null)
            .status(json!({"phase": "Pending", "conditions": [{"type": "PodScheduled",
                "status": "False", "reason": "Unschedulable",
                "lastTransitionTime": "2025-12-31T23:59:00Z"}]}));
        world.insert(pod.build());
    }
    world
}

/// Runs a CronJob for some hours, with Jobs that end at random.
fn run_cron_job(concurrency: &str, mut luck: u64) {
    let rollout = object("batch/v1", "CronJob", "web").namespace("shop").spec(json!({
        "schedule": "*/5 * * * *", "concurrencyPolicy": concurrency,
        "jobTemplate": {"spec": {"template": convoy_testkit::apps::template("web:v1")}}}));
    let mut scene = Scene::new(&CRON_JOBS, rollout, 0, luck);
    for _ in 0..60 {
        let step = scene.decide();
        let world = scene.applier.world();
        let found = contradictions(world, &step, scene.applier.now());
        assert_eq!(found, Vec::<String>::new(), "{}", step.to_json());
        let count =
            |verb: fn(&Verb) -> bool| step.actions.iter().filter(|it| verb(&it.verb)).count();
        let (started, removed) =
            (count(|it| matches!(it, Verb::Start(_))), count(|it| matches!(it, Verb::Remove(_))));
        let is_over = |job: &Object| job.condition_status("Complete") == Some("True");
        let running = world.of(&JOB).filter(|job| !is_over(job) && !job.is_deleting()).count();
        let most = if concurrency == "Allow" { usize::MAX } else { 1 };
        assert!(started == 0 || running + started - removed <= most, "{}", step.to_json());
        scene.applier.apply(&step).expect("nobody else writes");
        let jobs: Vec<Object> = scene.applier.world().of(&JOB).cloned().collect();
        for job in jobs {
            luck = luck.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            if luck >> 62 == 0 && !is_over(&job) {
                let now = scene.applier.now().to_string();
                scene.applier.edit(job.key(), |raw| {
                    raw["status"] = json!({"completionTime": now,
                        "conditions": [{"type": "Complete", "status": "True"}]});
                });
            }
        }
        if let Some(at) = step.wake_at.filter(|at| *at > scene.applier.now()) {
            scene.applier.advance_to(at);
        }
    }
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
        let most = if surge > 0 { 0 } else { usize::try_from(down.max(1)).unwrap() };
        let mut scene = Scene::new(&DAEMON_SETS, daemon_set(&strategy), nodes, luck);
        rest(&mut scene, most, on_the_same_node);
        set_image(&mut scene, "web:v2");
        rest(&mut scene, most, on_the_same_node);
    }

    #[test]
    fn stateful_sets(replicas in 0i64..6, ordered: bool, luck: u64) {
        let policy = if ordered { "OrderedReady" } else { "Parallel" };
        let mut scene = Scene::new(&STATEFUL_SETS, stateful_set(replicas, policy), 1, luck);
        rest(&mut scene, 1, nobody);
        set_image(&mut scene, "web:v2");
        rest(&mut scene, 1, nobody);
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
        rest(&mut scene, 0, nobody);
    }

    #[test]
    fn cron_jobs(
        concurrency in prop::sample::select(vec!["Allow", "Forbid", "Replace"]),
        luck: u64,
    ) {
        run_cron_job(concurrency, luck);
    }

    #[test]
    fn replica_sets(size in 0i64..6, pods in 0usize..9) {
        let set = convoy_testkit::apps::replica_set("web-1", "web:v1", size, size).build();
        let key = set.key().clone();
        let pods = (0..pods).map(|at| {
            convoy_testkit::apps::replica(&format!("web-1-{at}"), "web-1", NOW).build()
        });
        let world: World = pods.chain([set]).collect();
        let have = i64::try_from(world.of(&POD).count()).unwrap();
        let rollout = world.get(&key).expect("it was inserted");
        let now = NOW.parse().unwrap();
        let step = ReplicaSets.step(&ReplicaSets.snapshot(&world, rollout), now);
        prop_assert_eq!(contradictions(&world, &step, now), Vec::<String>::new());
        let count = |verb: fn(&Verb) -> bool| {
            i64::try_from(step.actions.iter().filter(|it| verb(&it.verb)).count()).unwrap()
        };
        prop_assert_eq!(count(|it| matches!(it, Verb::Start(_))), (size - have).max(0));
        prop_assert_eq!(count(|it| matches!(it, Verb::Remove(_))), (have - size).max(0));
    }

    #[test]
    fn staged_runs(concurrency in prop::sample::select(vec!["1", "50%", "100%"]), pace in 1..4usize) {
        let agents = Agents { pace, approve: true, untracked: true };
        let world = staged(&json!(concurrency));
        holds_at_every_step(world, 80, |applier| act(applier, agents))?;
    }

    #[test]
    fn evicted_clusters(objects in fleet::middle(), count in 1..4usize, least in 0..6u32) {
        let agents = Agents { pace: 2, approve: false, untracked: false };
        let world = objects.into_iter().chain(evictions(count, least)).collect();
        holds_at_every_step(world, 40, |applier| act(applier, agents))?;
    }

    #[test]
    fn provisioning(
        nodes in prop::collection::vec(karpenter::found(), 0..6),
        pods in 0..9u8,
    ) {
        let world = karpenter::world_of(&nodes, &[json!({"nodes": "1"})], "1h");
        holds_at_every_step(with_waiting_pods(world, pods), 20, karpenter::provider)?;
    }
}
