//! Random Deployments and histories: every plan keeps its promises, applying plans leads to
//! the wanted state whatever fails on the way, and there nothing more is written.

#[path = "apps/worlds.rs"]
mod worlds;

use convoy_api::apps::{DEPLOYMENT, POD, REPLICA_SET};
use convoy_api::{Object, ObjectKey};
use convoy_check::{Applier, History, settle};
use convoy_plan::{Plan, Step, Verdict, World};
use convoy_testkit::{NOW, apps, property};
use proptest::prelude::*;
use serde_json::{Value, json};
use worlds::{Case, cases, cluster_moves, number, world};

/// The wanted state: one set with every replica, the others empty, and at most as many kept
/// as the limit says.
fn assert_rolled_out(world: &World, plan: &Plan, case: &Case) {
    let sets: Vec<&Object> = world.of(&REPLICA_SET).collect();
    let sizes: Vec<i64> = sets.iter().map(|set| number(set, "/spec/replicas")).collect();
    assert_eq!(sizes.iter().sum::<i64>(), case.replicas, "{sizes:?}");
    assert!(sizes.iter().filter(|size| **size > 0).count() <= 1, "{sizes:?}");
    let image = json!(format!("web:v{}", case.image));
    for set in sets.iter().filter(|set| number(set, "/spec/replicas") > 0) {
        assert_eq!(set.raw().pointer("/spec/template/spec/containers/0/image"), Some(&image));
    }
    let kept = usize::try_from(case.history_limit).expect("not negative");
    assert!(sets.len() <= kept + 1, "{} sets, {kept} old ones to keep", sets.len());
    let step = decided(plan);
    assert_eq!(step.verdict, Verdict::Done, "{:?}", step.holds);
}

/// The one decision about a workload; other dialects may have a word on it too.
fn decided(plan: &Plan) -> &Step {
    plan.steps.iter().find(|step| step.dialect == "apps").expect("there is a workload")
}

fn assert_nothing_found(history: &History) {
    let findings: Vec<String> = history.findings().iter().map(ToString::to_string).collect();
    assert_eq!(findings, Vec::<String>::new());
}

fn ends_and_then_is_quiet(case: &Case) {
    let mut applier = Applier::new(world(case), NOW.parse().expect("an instant"));
    let mut luck = case.luck;
    let settled = settle(&mut applier, 400, |applier| cluster_moves(applier, &mut luck));
    let settled = settled.expect("comes to rest");
    assert_nothing_found(&settled.history);
    assert_rolled_out(applier.world(), &settled.plan, case);
}

fn survives_restarts(case: &Case) {
    let mut applier = Applier::new(world(case), NOW.parse().expect("an instant"));
    let (mut luck, mut history) = (case.luck, History::new());
    for round in 0..2_000u32 {
        let mut plan = convoy_plan::plan(applier.world(), applier.now());
        history.observe(applier.world(), &plan);
        plan.steps.retain(|step| step.dialect == "apps");
        let quiet = plan.steps[0].is_quiet();
        let step = &mut plan.steps[0];
        if !step.actions.is_empty() && round % 3 != 0 {
            step.actions.truncate(1);
            step.status = None;
        }
        applier.apply(step).expect("fenced by what was observed");
        let changed = round % 2 == 0 && cluster_moves(&mut applier, &mut luck);
        if quiet && !changed && round % 2 == 0 {
            break;
        }
    }
    assert_nothing_found(&history);
    let plan = convoy_plan::plan(applier.world(), applier.now());
    assert_rolled_out(applier.world(), &plan, case);
}

/// What random searches found once.
#[test]
fn rollouts_that_once_failed_end_too() {
    let case = |replicas, surge: Value, sets: &[i64], image, luck| Case {
        replicas,
        strategy: json!({"type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": surge, "maxUnavailable": 0}}),
        sets: sets.iter().map(|size| (0, *size, 0, 0)).collect(),
        image,
        history_limit: 0,
        luck,
    };
    let found = [
        case(0, json!(1), &[], 0, 0),
        case(4, json!("51%"), &[7, 6], 0, 0),
        case(5, json!(3), &[3, 2], 1, 3_668_219_287_531_431_668),
    ];
    for case in &found {
        ends_and_then_is_quiet(case);
        survives_restarts(case);
    }
}

proptest! {
    #![proptest_config(property::config(150))]

    #[test]
    fn rollouts_end_and_then_are_quiet(case in cases()) {
        ends_and_then_is_quiet(&case);
    }

    /// G5: the process dies after any write, and the next one starts from the objects alone.
    #[test]
    fn a_restart_between_any_two_writes_changes_nothing(case in cases()) {
        survives_restarts(&case);
    }

    #[test]
    fn equal_worlds_give_equal_bytes(case in cases()) {
        let now = NOW.parse().expect("an instant");
        let forwards = world(&case);
        let mut objects: Vec<Object> = forwards.iter().cloned().collect();
        objects.reverse();
        let backwards: World = objects.into_iter().collect();
        let json = |world: &World| convoy_plan::plan(world, now).to_json().to_string();
        prop_assert_eq!(json(&forwards), json(&backwards));
    }

    #[test]
    fn a_replica_set_gets_its_pods_and_then_is_quiet(
        wanted in 0usize..12,
        pods in 0usize..12,
        min_ready_secs in prop_oneof![Just(0), 1i64..100],
    ) {
        let set = apps::replica_set("web-1", "web:v1", i64::try_from(wanted).expect("small"), 3)
            .with("/spec/minReadySeconds", json!(min_ready_secs))
            .build();
        let pods = (0..pods).map(|pod| {
            apps::replica(&format!("p{pod}"), "web-1", "2025-12-31T23:59:30Z").build()
        });
        let world: World = pods.chain([set]).collect();
        let mut applier = Applier::new(world, NOW.parse().expect("an instant"));
        let settled = settle(&mut applier, 50, kubelets_move).expect("comes to rest");
        assert_nothing_found(&settled.history);
        prop_assert_eq!(decided(&settled.plan).verdict, Verdict::Done);
        prop_assert_eq!(applier.world().of(&POD).count(), wanted);
        let set = applier.world().of(&REPLICA_SET).next().expect("stays");
        prop_assert_eq!(number(set, "/status/availableReplicas"), i64::try_from(wanted).expect("small"));
    }
}

/// Pods that are new get a node and become ready.
fn kubelets_move(applier: &mut Applier) -> bool {
    let new: Vec<ObjectKey> = applier
        .world()
        .of(&POD)
        .filter(|pod| pod.status().get("phase").is_none())
        .map(|pod| pod.key().clone())
        .collect();
    let now = applier.now().to_string();
    for key in &new {
        applier.edit(key, |pod| {
            pod["spec"]["nodeName"] = json!("n1");
            pod["status"] = json!({"phase": "Running", "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": now},
            ]});
        });
    }
    !new.is_empty()
}

/// A rollout that stands still is rolled back once, and a second attempt is left to people.
#[test]
fn a_rollout_that_fails_goes_back_by_itself_once() {
    let broken = |set: &Object| {
        set.raw().pointer("/spec/template/spec/containers/0/image") == Some(&json!("web:bad"))
    };
    let cluster = |applier: &mut Applier| {
        let keys: Vec<ObjectKey> =
            applier.world().of(&REPLICA_SET).map(|set| set.key().clone()).collect();
        for key in keys {
            applier.edit(&key, |raw| {
                let wanted = raw["spec"]["replicas"].clone();
                let bad = raw["spec"]["template"]["spec"]["containers"][0]["image"] == "web:bad";
                let ready = if bad { json!(0) } else { wanted.clone() };
                let generation = raw["metadata"]["generation"].clone();
                raw["status"] = json!({"replicas": wanted, "readyReplicas": ready,
                    "availableReplicas": ready, "terminatingReplicas": 0,
                    "observedGeneration": generation});
            });
        }
        false
    };
    let deployment = apps::deployment(4, "web:good").annotation("convoy/auto-rollback", "deadline");
    let world: World = [deployment.build()].into_iter().collect();
    let mut applier = Applier::new(world, NOW.parse().unwrap());
    settle(&mut applier, 50, cluster).unwrap();
    let key = DEPLOYMENT.key("shop", "web");
    let image = "/spec/template/spec/containers/0/image";
    for attempt in 0..2 {
        applier.edit(&key, |raw| *raw.pointer_mut(image).unwrap() = json!("web:bad"));
        let settled = settle(&mut applier, 200, cluster).unwrap();
        assert_nothing_found(&settled.history);
        let deployment = applier.world().get(&key).unwrap();
        let now_runs = deployment.raw().pointer(image).unwrap().clone();
        if attempt == 0 {
            assert_eq!(now_runs, "web:good");
            assert_eq!(decided(&settled.plan).verdict, Verdict::Done);
            assert_eq!(deployment.condition_status("RolledBack"), Some("True"));
        } else {
            assert_eq!(now_runs, "web:bad", "a second attempt is left as it is");
            assert_eq!(decided(&settled.plan).verdict, Verdict::Stopped);
        }
    }
    assert!(applier.world().of(&REPLICA_SET).any(broken));
}
