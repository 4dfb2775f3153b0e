//! Skyhook rollouts over random fleets, policies and histories: no guarantee is broken in any
//! plan, whatever fails or crashes in between, and in the end nothing more is written.

#![expect(clippy::unwrap_used, reason = "a test stops where its own setup is wrong")]

use convoy_api::kinds::NODE;
use convoy_api::kinds::POD;
use convoy_api::skyhook::GROUP;
use convoy_api::{GroupKind, ObjectKey};
use convoy_check::{Applier, History, check, settle};
use convoy_plan::{Plan, Step, Verdict};
use convoy_testkit::{NOW, property};
use proptest::prelude::*;
use serde_json::json;

#[path = "skyhook/kubelet.rs"]
mod kubelet;
#[path = "skyhook/worlds.rs"]
mod worlds;

use kubelet::Kubelets;
use worlds::{Case, cases, packages, world};

const SKYHOOK: GroupKind = GroupKind::new(GROUP, "Skyhook");

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
