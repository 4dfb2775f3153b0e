//! DaemonSets, StatefulSets and Jobs with a small kubelet beside them: whatever the order in which
//! pods get ready, end and go, each gets where it should, keeps its limits on the way, and then
//! writes nothing more.

#[path = "workloads/worlds.rs"]
mod worlds;

use convoy_api::kinds::CONTROLLER_REVISION;
use convoy_api::{GroupKind, Object};
use convoy_plan::Verdict;
use convoy_plan::dialect::workloads::{DAEMON_SETS, JOBS, STATEFUL_SETS};
use convoy_testkit::property;
use proptest::prelude::*;
use serde_json::{Value, json};
use worlds::{Scene, daemon_set, job, set_image, stateful_set};

fn is_available(pod: &Object) -> bool {
    !pod.is_deleting() && pod.condition_status("Ready") == Some("True")
}

fn images(scene: &Scene) -> Vec<Value> {
    scene.pods().iter().map(|pod| pod.spec()["containers"][0]["image"].clone()).collect()
}

proptest! {
    #![proptest_config(property::config(60))]

    #[test]
    fn a_daemon_set_rolls_within_its_budget(nodes in 1usize..7, down in 0i64..4, surge in 0i64..3, luck: u64) {
        let strategy = json!({"maxUnavailable": down, "maxSurge": if down > 0 { 0 } else { surge }});
        let mut scene = Scene::new(&DAEMON_SETS, daemon_set(&strategy), nodes, luck);
        scene.settle(|_| {});
        prop_assert_eq!(images(&scene), vec![json!("web:v1"); nodes]);
        set_image(&mut scene, "web:v2");
        let least = if down == 0 && surge > 0 { nodes } else {
            nodes.saturating_sub(usize::try_from(down.max(1)).unwrap()) };
        let most = nodes + if down == 0 { usize::try_from(surge).unwrap() } else { 0 };
        let step = scene.settle(|scene| {
            let pods = scene.pods();
            assert!(pods.iter().filter(|pod| is_available(pod)).count() >= least, "{pods:#?}");
            assert!(pods.iter().filter(|pod| !pod.is_deleting()).count() <= most);
        });
        prop_assert_eq!(step.verdict, Verdict::Done);
        prop_assert_eq!(images(&scene), vec![json!("web:v2"); nodes]);
        prop_assert_eq!(scene.owner().status()["updatedNumberScheduled"].clone(), json!(nodes));
        prop_assert_eq!(scene.owner().status()["numberUnavailable"].clone(), json!(0));
        prop_assert_eq!(scene.applier.world().of(&CONTROLLER_REVISION).count(), 2);
    }

    #[test]
    fn a_stateful_set_keeps_its_order(replicas in 0i64..6, ordered: bool, luck: u64) {
        let policy = if ordered { "OrderedReady" } else { "Parallel" };
        let mut scene = Scene::new(&STATEFUL_SETS, stateful_set(replicas, policy), 1, luck);
        let in_order = move |scene: &Scene| {
            let pods = scene.pods();
            let not_ready = pods.iter().filter(|pod| !is_available(pod)).count();
            assert!(!ordered || not_ready <= 1, "{pods:#?}");
        };
        scene.settle(in_order);
        let count = usize::try_from(replicas).unwrap();
        prop_assert_eq!(images(&scene), vec![json!("web:v1"); count]);
        set_image(&mut scene, "web:v2");
        let step = scene.settle(move |scene| {
            let available = scene.pods().iter().filter(|pod| is_available(pod)).count();
            assert!(available + 1 >= count);
        });
        prop_assert_eq!(step.verdict, Verdict::Done);
        prop_assert_eq!(images(&scene), vec![json!("web:v2"); count]);
        let status = scene.owner().status().clone();
        prop_assert_eq!(&status["currentRevision"], &status["updateRevision"]);
        prop_assert_eq!(&status["updatedReplicas"], &json!(replicas));
        let claims = GroupKind::new("", "PersistentVolumeClaim");
        prop_assert_eq!(scene.applier.world().of(&claims).count(), count);
    }

    #[test]
    fn a_job_counts_every_pod_once(completions in 1i64..6, parallelism in 1i64..4, indexed: bool, luck: u64) {
        let mode = if indexed { "Indexed" } else { "NonIndexed" };
        let mut scene = Scene::new(&JOBS, job(completions, parallelism, mode), 1, luck);
        scene.ends = |luck| match luck % 5 {
            0 => Some("Failed"),
            1 | 2 => Some("Succeeded"),
            _ => None,
        };
        let most = usize::try_from(parallelism).unwrap();
        let running = |pod: &&Object| !["Succeeded", "Failed"].contains(&pod.status_text("phase"));
        scene.settle(|scene| assert!(scene.pods().iter().filter(running).count() <= most));
        let owner = scene.owner();
        prop_assert_eq!(owner.condition_status("Complete"), Some("True"), "{}", owner.raw());
        let ended = |phase: &str| scene.pods().iter().filter(|pod| pod.status_text("phase") == phase).count();
        prop_assert_eq!(&owner.status()["succeeded"], &json!(completions));
        prop_assert_eq!(&owner.status()["failed"], &json!(ended("Failed")));
        let finalizers = scene.pods().iter().any(|pod| pod.has_finalizer("batch.kubernetes.io/job-tracking"));
        prop_assert!(!finalizers);
        if indexed {
            let all = if completions == 1 { "0".to_owned() } else { format!("0-{}", completions - 1) };
            prop_assert_eq!(&owner.status()["completedIndexes"], &json!(all));
        } else {
            prop_assert_eq!(ended("Succeeded"), usize::try_from(completions).unwrap());
        }
    }
}

#[test]
fn a_job_that_fails_too_often_fails() {
    let rollout = job(3, 2, "NonIndexed").with("/spec/backoffLimit", json!(2));
    let mut scene = Scene::new(&JOBS, rollout, 1, 7);
    scene.ends = |_| Some("Failed");
    scene.settle(|_| {});
    let owner = scene.owner();
    assert_eq!(owner.condition_status("Failed"), Some("True"), "{}", owner.raw());
    assert_eq!(owner.condition("Failed").unwrap()["reason"], "BackoffLimitExceeded");
    assert!(owner.condition("Complete").is_none());
}

#[test]
fn taints_and_labels_decide_where_daemons_run() {
    let mut scene = Scene::new(&DAEMON_SETS, daemon_set(&json!({"maxUnavailable": 1})), 4, 1);
    let taint = |scene: &mut Scene, node: &str, effect: &str| {
        let key = GroupKind::new("", "Node").key("", node);
        let taints = json!([{"key": "gpu", "effect": effect}]);
        scene.applier.edit(&key, |raw| raw["spec"] = json!({"taints": taints}));
    };
    taint(&mut scene, "n0", "NoSchedule");
    scene.settle(|_| {});
    assert_eq!(scene.pods().len(), 3);
    taint(&mut scene, "n1", "NoSchedule");
    taint(&mut scene, "n2", "NoExecute");
    let key = GroupKind::new("", "Node").key("", "n3");
    scene.applier.edit(&key, |raw| raw["spec"] = json!({"unschedulable": true}));
    let step = scene.settle(|_| {});
    let on: Vec<&str> = scene
        .pods()
        .iter()
        .map(|pod| pod.spec()["nodeName"].as_str().unwrap().to_owned())
        .map(|name| match name.as_str() {
            "n1" => "n1",
            "n3" => "n3",
            _ => "other",
        })
        .collect();
    assert_eq!(on.len(), 2, "{on:?}"); // what is on n1 may stay; a cordon is nothing to a daemon
    assert!(!on.contains(&"other"));
    assert_eq!(step.status, None);
    assert_eq!(scene.owner().status()["numberMisscheduled"], 1);
}

#[test]
fn going_back_uses_the_revision_that_is_there() {
    let mut scene = Scene::new(&STATEFUL_SETS, stateful_set(2, "Parallel"), 1, 3);
    for image in ["web:v1", "web:v2", "web:v1"] {
        set_image(&mut scene, image);
        scene.settle(|_| {});
    }
    let revisions: Vec<i64> = scene
        .applier
        .world()
        .of(&CONTROLLER_REVISION)
        .map(|revision| revision.raw()["revision"].as_i64().unwrap())
        .collect();
    assert_eq!(revisions.len(), 2);
    assert_eq!(revisions.iter().max(), Some(&3));
    assert_eq!(images(&scene), vec![json!("web:v1"); 2]);
}
