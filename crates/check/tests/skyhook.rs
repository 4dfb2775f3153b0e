//! Skyhook rollouts over random fleets, policies and histories: no guarantee is broken in any
//! plan, whatever fails or crashes in between, and in the end nothing more is written.

#![expect(clippy::unwrap_used, reason = "a test stops where its own setup is wrong")]

use convoy_api::kinds::NODE;
use convoy_api::kinds::POD;
use convoy_api::skyhook::GROUP;
use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_check::{Applier, History, check, settle};
use convoy_plan::{Plan, Step, Verdict, World};
use convoy_testkit::{NOW, node, object, property};
use proptest::prelude::*;
use serde_json::{Value, json};

#[path = "skyhook/kubelet.rs"]
mod kubelet;

use kubelet::Kubelets;

const SKYHOOK: GroupKind = GroupKind::new(GROUP, "Skyhook");

/// A fleet, its policy, its Skyhooks and what goes wrong, drawn at random.
#[derive(Clone, Debug)]
struct Case {
    /// Pool, taint and ignore label of each node.
    nodes: Vec<(u8, bool, bool)>,
    /// Strategy, budget and thresholds of each compartment; none: a legacy budget.
    compartments: Vec<(u8, u8, u8)>,
    /// Priority and packages of each Skyhook; a package is its kind.
    skyhooks: Vec<(u8, Vec<u8>)>,
    /// Nodes of which one in so many fails, and whether for good.
    failures: (u8, bool),
    seed: u64,
}

fn cases() -> impl Strategy<Value = Case> {
    let nodes = prop::collection::vec(
        (0..4u8, prop::bool::weighted(0.1), prop::bool::weighted(0.1)),
        1..12,
    );
    let compartments = prop::collection::vec((0..4u8, 1..101u8, 0..4u8), 0..4);
    let skyhooks = prop::collection::vec((1..3u8, prop::collection::vec(0..6u8, 0..4)), 1..3);
    let failures = (2..8u8, any::<bool>());
    (nodes, compartments, skyhooks, failures, any::<u64>()).prop_map(
        |(nodes, compartments, skyhooks, failures, seed)| Case {
            nodes,
            compartments,
            skyhooks,
            failures,
            seed,
        },
    )
}

fn strategy(kind: u8, threshold: u8) -> Value {
    let failures = (threshold > 0).then_some(threshold);
    match kind {
        0 => json!({"fixed": {"initialBatch": 2, "failureThreshold": failures}}),
        1 => json!({"linear": {"delta": 2, "failureThreshold": failures, "safetyLimit": 80}}),
        2 => json!({"exponential": {"failureThreshold": failures, "batchThreshold": 60}}),
        _ => Value::Null,
    }
}

/// The policy, if the case has one. The first compartment gives the default.
fn policy(case: &Case) -> Option<Object> {
    let terms = |(kind, budget, threshold): &(u8, u8, u8)| {
        let budget = if budget % 2 == 0 {
            json!({"percent": budget})
        } else {
            json!({"count": budget % 5 + 1})
        };
        let mut terms = json!({"budget": budget});
        let strategy = strategy(*kind, *threshold);
        if !strategy.is_null() {
            terms["strategy"] = strategy;
        }
        terms
    };
    let default = terms(case.compartments.first()?);
    let compartments: Vec<Value> = case.compartments[1..]
        .iter()
        .enumerate()
        .map(|(pool, compartment)| {
            let mut body = terms(compartment);
            body["name"] = json!(format!("pool-{pool}"));
            body["selector"] = json!({"matchLabels": {"pool": pool.to_string()}});
            body
        })
        .collect();
    let spec = json!({"default": default, "compartments": compartments});
    Some(object("skyhook.nvidia.com/v1alpha1", "DeploymentPolicy", "policy").spec(spec).build())
}

/// Packages by letter, each kind with what makes it special; later ones depend on the first.
fn packages(kinds: &[u8], version: &str) -> Value {
    let mut packages = serde_json::Map::new();
    for (index, kind) in kinds.iter().enumerate() {
        let name = format!("p{}", char::from(b'a' + u8::try_from(index).unwrap()));
        let mut body = json!({"version": version, "image": format!("example/{name}")});
        match kind {
            1 => body["interrupt"] = json!({"type": "reboot"}),
            2 => body["interrupt"] = json!({"type": "service", "services": [name]}),
            3 => {
                body["configMap"] = json!({"a.conf": version, "b.conf": "1"});
                body["configInterrupts"] = json!({"a.*": {"type": "noop"}});
            }
            4 if index > 0 => body["dependsOn"] = json!({"pa": version}),
            5 => body["env"] = json!([{"name": "MODE", "value": "x"}]),
            _ => {}
        }
        packages.insert(name, body);
    }
    Value::Object(packages)
}

fn world(case: &Case) -> World {
    let mut world = World::new();
    for (index, (pool, tainted, ignored)) in case.nodes.iter().enumerate() {
        let name = format!("n{index:02}");
        let mut builder = node(&name)
            .label("pool", &pool.to_string())
            .created_at(&format!("2025-12-{:02}T00:00:00Z", 28 - index))
            .with("/status/nodeInfo/bootID", json!("first"));
        if *tainted {
            let taint = json!([{"key": "broken", "effect": "NoSchedule"}]);
            builder = builder.with("/spec/taints", taint);
        }
        if *ignored {
            builder = builder.label("skyhook.nvidia.com/ignore", "true");
        }
        world.insert(builder.build());
        let workload = object("v1", "Pod", &format!("web-{index}"))
            .namespace("shop")
            .label("app", "web")
            .spec(json!({"nodeName": name}))
            .status(json!({"phase": "Running"}));
        world.insert(workload.build());
    }
    let budget = object("policy/v1", "PodDisruptionBudget", "web")
        .namespace("shop")
        .spec(json!({"selector": {"matchLabels": {"app": "web"}}}))
        .status(json!({"disruptionsAllowed": 1}));
    world.insert(budget.build());
    let policy = policy(case);
    for (index, (priority, kinds)) in case.skyhooks.iter().enumerate() {
        let mut spec = json!({"priority": priority, "packages": packages(kinds, "1.0.0")});
        if policy.is_some() {
            spec["deploymentPolicy"] = json!("policy");
        } else {
            spec["interruptionBudget"] = json!({"count": case.seed % 4});
        }
        let name = format!("s{index}");
        world.insert(object("skyhook.nvidia.com/v1alpha1", "Skyhook", &name).spec(spec).build());
    }
    if let Some(policy) = policy {
        world.insert(policy);
    }
    world
}

fn key(kind: &GroupKind, name: &str) -> ObjectKey {
    kind.key("", name)
}

fn applier(case: &Case) -> (Applier, Kubelets) {
    let (one_in, for_good) = case.failures;
    let applier = Applier::new(world(case), NOW.parse().unwrap());
    (applier, Kubelets::new(case.seed, u64::from(one_in), for_good))
}

/// Plans and applies until nothing happens any more; every plan keeps every promise.
fn come_to_rest(applier: &mut Applier, kubelets: &Kubelets) -> Result<Plan, TestCaseError> {
    let settled = settle(applier, 600, |applier| kubelets.act(applier));
    let settled = settled.map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(settled.history.findings(), &[]);
    Ok(settled.plan)
}

/// Where a rollout ends: done, or with every node that is not complete saying why.
fn ends_well(applier: &Applier, plan: &Plan, kubelets: &Kubelets) -> Result<(), TestCaseError> {
    for step in plan.steps.iter().filter(|step| step.dialect == "skyhook") {
        let held = step.holds.iter().filter_map(|hold| hold.member.as_deref());
        let held: Vec<&str> = held.collect();
        prop_assert_ne!(step.verdict, Verdict::Invalid);
        prop_assert!(step.verdict == Verdict::Done || !step.holds.is_empty());
        let status = format!("skyhook.nvidia.com/status_{}", step.rollout.name);
        for node in applier.world().of(&NODE) {
            let word = node.annotation(&status).unwrap_or("absent");
            let complete = word == "complete";
            prop_assert!(
                complete || held.contains(&node.name().as_str()),
                "{} {word}",
                node.name()
            );
            let cordoned = node.spec().get("unschedulable") == Some(&json!(true));
            let all_fine = !kubelets.has_failed_for_good();
            prop_assert!(!(complete && cordoned && all_fine && plan.steps.len() == 1));
            if word == "in_progress" {
                return Err(TestCaseError::fail(format!("{} is never finished", node.name())));
            }
        }
    }
    Ok(())
}

/// Carries out the first writes of a step, as a process does that dies in the middle.
fn crash_after(applier: &mut Applier, step: &Step, writes: usize) {
    let mut part = step.clone();
    part.actions.truncate(writes);
    part.status = None;
    // A refusal is what ends a real step as well.
    drop(applier.apply(&part));
}

/// Edits every Skyhook once its rollout has come to rest, by `next`: an upgrade, a downgrade, the
/// removal of all packages or a changed config.
fn change_after_rest(case: &Case, next: u8) -> Result<(), TestCaseError> {
    let (mut applier, kubelets) = applier(case);
    come_to_rest(&mut applier, &kubelets)?;
    for (index, (_, kinds)) in case.skyhooks.iter().enumerate() {
        applier.edit(&key(&SKYHOOK, &format!("s{index}")), |raw| match next {
            0 => raw["spec"]["packages"] = packages(kinds, "1.1.0"),
            1 => raw["spec"]["packages"] = packages(kinds, "0.9.0"),
            2 => raw["spec"]["packages"] = json!({}),
            _ => {
                let packages = raw["spec"]["packages"].as_object_mut().unwrap();
                for package in packages.values_mut().filter(|one| one["configMap"].is_object()) {
                    package["configMap"]["a.conf"] = json!("changed");
                }
            }
        });
    }
    let plan = come_to_rest(&mut applier, &kubelets)?;
    ends_well(&applier, &plan, &kubelets)?;
    if next == 2 && !kubelets.has_failed_for_good() {
        for node in applier
            .world()
            .of(&NODE)
            .filter(|node| node.annotation("skyhook.nvidia.com/status_s0") == Some("complete"))
        {
            prop_assert_eq!(
                node.annotation("skyhook.nvidia.com/nodeState_s0").unwrap_or("{}"),
                "{}"
            );
        }
    }
    Ok(())
}

#[test]
fn a_config_change_is_handed_on_past_a_compartment_that_failures_stopped() {
    let fleet = [0, 0, 2, 2, 0, 0, 2, 2];
    let case = Case {
        nodes: fleet.map(|pool| (pool, false, false)).to_vec(),
        compartments: vec![(1, 1, 2), (2, 1, 2)],
        skyhooks: vec![(1, vec![3, 0])],
        failures: (5, true),
        seed: 9_990_902_183_541_954_318,
    };
    change_after_rest(&case, 3).unwrap();
}

/// A process dies after so many writes of a round, round by round, and then no more.
fn crashes_after(case: &Case, cuts: &[usize]) -> Result<(), TestCaseError> {
    let (mut applier, kubelets) = applier(case);
    let mut history = History::new();
    for cut in cuts.iter().copied() {
        let plan = convoy_plan::plan(applier.world(), applier.now());
        history.observe(applier.world(), &plan);
        for step in &plan.steps {
            crash_after(&mut applier, step, cut);
        }
        kubelets.act(&mut applier);
    }
    prop_assert_eq!(history.findings(), &[]);
    let plan = come_to_rest(&mut applier, &kubelets)?;
    ends_well(&applier, &plan, &kubelets)?;
    Ok(())
}

#[test]
fn crashes_that_once_left_a_rollout_behind_change_nothing() {
    let case = Case {
        nodes: vec![(0, false, false); 9],
        compartments: vec![],
        skyhooks: vec![(1, vec![]), (1, vec![3, 1])],
        failures: (5, false),
        seed: 6_260_946_227_008_502_416,
    };
    let mut cuts = vec![11, 3, 3, 1];
    cuts.extend([0; 25]);
    cuts.extend([1, 19, 10, 37, 29, 0, 10, 20, 14, 14, 0, 19, 23, 0, 9, 17, 39, 17, 9, 21, 3, 9]);
    cuts.extend([1, 10, 6, 33, 33, 24, 39, 1, 26]);
    crashes_after(&case, &cuts).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 300, ..property::config(32) })]

    #[test]
    fn rollouts_end_and_keep_every_promise(case in cases()) {
        let (mut applier, kubelets) = applier(&case);
        let plan = come_to_rest(&mut applier, &kubelets)?;
        ends_well(&applier, &plan, &kubelets)?;
    }

    #[test]
    fn upgrades_downgrades_and_config_changes_end_too(case in cases(), next in 0..4u8) {
        change_after_rest(&case, next)?;
    }

    #[test]
    fn a_crash_between_any_two_writes_changes_nothing(case in cases(), cuts in prop::collection::vec(0..40usize, 60)) {
        crashes_after(&case, &cuts)?;
    }

    #[test]
    fn pausing_and_deleting_leave_nothing_behind(case in cases(), rounds in 1..12u32) {
        let (mut applier, kubelets) = applier(&case);
        for round in 0..rounds * 2 {
            let plan = convoy_plan::plan(applier.world(), applier.now());
            prop_assert_eq!(check(applier.world(), &plan), vec![]);
            for step in &plan.steps {
                drop(applier.apply(step));
            }
            kubelets.act(&mut applier);
            if round == rounds {
                pause(&mut applier, true);
            }
        }
        pause(&mut applier, false);
        for index in 0..case.skyhooks.len() {
            applier.edit(&key(&SKYHOOK, &format!("s{index}")), |raw| {
                raw["metadata"]["deletionTimestamp"] = json!(NOW);
            });
        }
        let plan = convoy_plan::plan(applier.world(), applier.now());
        prop_assert_eq!(check(applier.world(), &plan), vec![]);
        for _ in 0..3 {
            let plan = convoy_plan::plan(applier.world(), applier.now());
            for step in &plan.steps {
                drop(applier.apply(step));
            }
        }
        prop_assert_eq!(applier.world().of(&SKYHOOK).count(), 0);
        for node in applier.world().of(&NODE) {
            prop_assert_ne!(node.spec().get("unschedulable"), Some(&json!(true)));
        }
    }
}

fn pause(applier: &mut Applier, paused: bool) {
    let keys: Vec<ObjectKey> = applier.world().of(&SKYHOOK).map(|one| one.key().clone()).collect();
    for key in keys {
        applier.edit(&key, |raw| {
            raw["metadata"]["annotations"]["skyhook.nvidia.com/pause"] =
                json!(if paused { "true" } else { "false" });
        });
    }
}
