//! What the dialect looks at, and which decisions it takes beyond the vectors.

mod document;

use convoy_testkit::{Builder, NOW, apps, object};

use convoy_api::apps::{DEPLOYMENT, POD, REPLICA_SET};
use convoy_api::{GroupKind, ObjectKey};
use serde_json::{Value, json};

use super::*;
use crate::hold::HoldReason;
use crate::step::Write;

fn world(objects: impl IntoIterator<Item = Builder>) -> World {
    objects.into_iter().map(Builder::build).collect()
}

fn decide(world: &World) -> Step {
    decide_at(world, NOW)
}

fn decide_at(world: &World, now: &str) -> Step {
    let rollout = Apps.rollouts(world)[0];
    Apps.step(&Apps.snapshot(world, rollout), now.parse().unwrap())
}

fn names(keys: &[ObjectKey]) -> Vec<String> {
    keys.iter().map(ToString::to_string).collect()
}

#[test]
fn a_set_that_a_deployment_looks_after_is_no_rollout() {
    let owned = apps::replica_set("web-1", "web:v1", 1, 1);
    let orphan =
        apps::replica_set("web-2", "web:v2", 1, 1).with("/metadata/ownerReferences", json!([]));
    let apart = orphan.clone().with("/metadata/name", json!("api")).label("app", "api");
    let bag = world([apps::deployment(1, "web:v1"), owned, orphan, apart]);
    let rollouts = Apps.rollouts(&bag);
    let keys: Vec<ObjectKey> = rollouts.iter().map(|rollout| rollout.key().clone()).collect();
    assert_eq!(names(&keys), ["apps/Deployment/shop/web", "apps/ReplicaSet/shop/api"]);
}

/// Clients wait for the name of a pod that they deleted to be gone.
#[test]
fn a_replacement_never_has_the_name_of_the_pod_before() {
    let set = |version: &str, status: serde_json::Value| {
        apps::replica_set("web-1", "web:v1", 1, 1)
            .with("/metadata/resourceVersion", json!(version))
            .status(status)
    };
    let created = |world: &World| {
        let set = world.find(&REPLICA_SET, "shop", "web-1").unwrap();
        let step = ReplicaSets.step(&ReplicaSets.snapshot(world, set), NOW.parse().unwrap());
        let [action] = &step.actions[..] else { panic!("{:?}", step.actions) };
        assert!(matches!(action.write, Write::Create { .. }));
        action.target.name.to_string()
    };
    let counted = || json!({"replicas": 1, "observedGeneration": 1});
    let first = created(&world([set("1", json!({"replicas": 0}))]));
    let dying = apps::replica(&first, "web-1", NOW).with("/metadata/deletionTimestamp", json!(NOW));
    let second = created(&world([set("3", counted()), dying.clone()]));
    assert_eq!(created(&world([set("3", counted()), dying])), second, "the same decision");
    let gone = created(&world([set("3", counted())]));
    assert_ne!(gone, first, "without a trace of it");
    let third = created(&world([set("6", counted())]));
    assert!(![&first, &second].contains(&&third));
}

#[test]
fn a_change_reaches_the_rollouts_that_look_at_it() {
    let owned = apps::replica_set("web-1", "web:v1", 1, 1);
    let pod = apps::replica("web-1-a", "web-1", NOW);
    let deployment = apps::deployment(1, "web:v1");
    let rolling = world([deployment.clone(), owned.clone(), pod.clone()]);
    let recreating = world([deployment.with("/spec/strategy/type", json!("Recreate")), owned, pod]);
    let web = ["apps/Deployment/shop/web"];
    let affected = |world: &World, kind: &GroupKind, name: &str| {
        names(&Apps.affected(world, &kind.key("shop", name)))
    };
    assert_eq!(affected(&rolling, &REPLICA_SET, "web-1"), web);
    assert_eq!(affected(&rolling, &REPLICA_SET, "gone"), web);
    assert_eq!(affected(&rolling, &DEPLOYMENT, "web"), web);
    assert!(affected(&rolling, &POD, "web-1-a").is_empty());
    assert_eq!(affected(&recreating, &POD, "web-1-a"), web);
    assert!(names(&Apps.affected(&rolling, &REPLICA_SET.key("other", "web-1"))).is_empty());
}

#[test]
fn an_outdated_record_of_the_size_does_not_block_the_rollout() {
    // Cut to 4 for a surge of 0, then scaled to 4: the size fits, the record does not.
    let old = apps::replica_set("web-1", "web:v1", 4, 5);
    let new = apps::replica_set("web-2", "web:v2", 0, 5).created_at("2025-12-02T00:00:00Z");
    let step = decide(&world([apps::deployment(4, "web:v2"), old, new]));
    let refreshed = step.actions.iter().find(|action| action.target.name == "web-1").unwrap();
    let Write::Patch { patch, .. } = &refreshed.write else { panic!("{refreshed:?}") };
    let desired = patch.pointer("/metadata/annotations/deployment.kubernetes.io~1desired-replicas");
    assert_eq!(desired, Some(&json!("4")));
    assert_eq!(patch.pointer("/spec/replicas"), None);
}

#[test]
fn a_set_that_grows_waits_for_those_that_shrink() {
    let sized = |name: &str, image: &str, size: i64, most: &str| {
        let set = apps::replica_set(name, image, size, 10);
        set.annotation("deployment.kubernetes.io/max-replicas", most)
    };
    let rolling = json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}});
    let step = decide(&world([
        apps::deployment(5, "web:v2").with("/spec/strategy", rolling),
        sized("web-1", "web:v1", 8, "10"),
        sized("web-2", "web:v2", 2, "2"),
    ]));
    assert_eq!(step.decision["scale"], json!({"web-1": 2}));
    let hold = step.holds.iter().find(|hold| hold.group.as_deref() == Some("web-2")).unwrap();
    let on = "web-1, which shrinks first".to_owned();
    assert_eq!(hold.reason, HoldReason::Depends { on });
}

#[test]
fn recreate_goes_on_though_two_sets_are_active_and_the_size_changed() {
    let sets = [
        apps::replica_set("web-1", "web:v1", 2, 5),
        apps::replica_set("web-2", "web:v2", 3, 5).created_at("2025-12-02T00:00:00Z"),
    ];
    let deployment = apps::deployment(4, "web:v2").with("/spec/strategy/type", json!("Recreate"));
    let step = decide(&world(sets.into_iter().chain([deployment])));
    assert_eq!(step.decision["scale"], json!({"web-1": 0}));
}

/// The set may be heard of before its pods: what it reports as leaving counts.
#[test]
fn recreate_waits_for_pods_that_only_their_set_tells_of() {
    let deployment = apps::deployment(4, "web:v2").with("/spec/strategy/type", json!("Recreate"));
    let creates = |terminating: i64, pods: &[Builder]| {
        let old = apps::replica_set("web-1", "web:v1", 0, 4)
            .with("/status/terminatingReplicas", json!(terminating));
        let step = decide(&world([deployment.clone(), old].into_iter().chain(pods.to_vec())));
        step.actions.iter().any(|action| matches!(action.write, Write::Create { .. }))
    };
    assert!(creates(0, &[]));
    assert!(!creates(1, &[]));
    let leaving =
        apps::replica("web-1-a", "web-1", NOW).with("/metadata/deletionTimestamp", json!(NOW));
    assert!(!creates(1, std::slice::from_ref(&leaving)));
    // One that has run to its end counts for nobody, however long it stays.
    assert!(creates(0, &[leaving.with("/status/phase", json!("Succeeded"))]));
}

#[test]
fn holds_carry_the_numbers() {
    let old = apps::replica_set("web-1", "web:v1", 8, 10);
    let new = apps::replica_set("web-2", "web:v2", 5, 10)
        .created_at("2025-12-02T00:00:00Z")
        .with("/status/readyReplicas", json!(0))
        .with("/status/availableReplicas", json!(0));
    let step = decide(&world([apps::deployment(10, "web:v2"), old, new]));
    let held: Vec<String> = step.holds.iter().map(|hold| hold.reason.to_string()).collect();
    let spent = ["3 of 3 slots of maxSurge in use", "2 of 2 slots of maxUnavailable in use"];
    assert_eq!(held[..2], spent);
    assert_eq!(held[2..], ["not available: 5 of 5 pods are not ready"]);
    assert!(step.wake_at.is_some(), "the deadline");
}

/// `lastTransitionTime` has whole seconds: a pod that turned ready at 00:00:00.7 says 00:00:00.
#[test]
fn a_pod_never_counts_before_its_seconds_have_passed() {
    let set = apps::replica_set("web-1", "web:v1", 1, 1)
        .with("/metadata/ownerReferences", json!([]))
        .with("/spec/minReadySeconds", json!(1));
    let objects = |since: &str| world([set.clone(), apps::replica("web-1-a", "web-1", since)]);
    let available = |world: &World, now: &str| {
        let status = &decide_at(world, now).decision["status"];
        status["availableReplicas"].as_i64().unwrap_or(0)
    };
    let whole = objects("2026-01-01T00:00:00Z");
    for now in ["2026-01-01T00:00:01Z", "2026-01-01T00:00:01.999Z"] {
        assert_eq!(available(&whole, now), 0, "{now}");
        let step = decide_at(&whole, now);
        let until = step.holds[0].until.map(|until| until.to_string());
        assert_eq!(until.as_deref(), Some("2026-01-01T00:00:02Z"));
        assert_eq!(step.wake_at, step.holds[0].until, "the timer and the count are one instant");
    }
    let now = "2026-01-01T00:00:02Z";
    assert_eq!((available(&whole, now), decide_at(&whole, now).wake_at), (1, None));
    // An instant with a fraction is exact.
    let exact = objects("2026-01-01T00:00:00.700000Z");
    assert_eq!(available(&exact, "2026-01-01T00:00:01.699Z"), 0);
    assert_eq!(available(&exact, "2026-01-01T00:00:01.700Z"), 1);
}

/// A rollout is not late while its last pod may still count: the deadline has to be only a second
/// longer than `minReadySeconds`.
#[test]
fn the_deadline_never_passes_before_the_last_pod_counts() {
    let progressing = json!([{"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated",
        "message": "", "lastUpdateTime": NOW, "lastTransitionTime": NOW}]);
    let deployment = apps::deployment(1, "web:v1")
        .with("/spec/minReadySeconds", json!(9))
        .with("/spec/progressDeadlineSeconds", json!(10))
        .status(json!({"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1,
            "unavailableReplicas": 1, "observedGeneration": 1, "conditions": progressing}));
    let set = apps::replica_set("web-1", "web:v1", 1, 1)
        .with("/spec/minReadySeconds", json!(9))
        .with("/status/availableReplicas", json!(0));
    let world = world([deployment, set, apps::replica("web-1-a", "web-1", NOW)]);
    let decided = |now: &str| {
        let step = decide_at(&world, now);
        let woken = step.wake_at.map(|at| at.to_string()).unwrap_or_default();
        (step.decision["conditions"]["Progressing"].clone(), woken)
    };
    let (moving, late) = (json!("True/ReplicaSetUpdated"), json!("False/ProgressDeadlineExceeded"));
    assert_eq!(decided(NOW), (moving.clone(), "2026-01-01T00:00:10Z".to_owned()));
    let after = "2026-01-01T00:00:10.500Z";
    assert_eq!(decided(after), (moving, "2026-01-01T00:00:11Z".to_owned()));
    assert_eq!(decided("2026-01-01T00:00:11Z").0, late);
}

#[test]
fn changes_follow_references_to_the_controllers() {
    let orphan = apps::replica("loose", "web-1", NOW).with("/metadata/ownerReferences", json!([]));
    let objects = [
        apps::deployment(1, "web:v1").with("/spec/minReadySeconds", json!(5)),
        apps::replica_set("web-1", "web:v1", 1, 1),
        apps::replica_set("web-2", "web:v2", 1, 1),
        apps::replica("web-1-a", "web-1", NOW),
        orphan,
    ];
    let world = world(objects);
    let affected = |dialect: &dyn Dialect, kind: &GroupKind, name: &str| -> Vec<String> {
        let keys = dialect.affected(&world, &kind.key("shop", name));
        keys.iter().map(|key| key.name.to_string()).collect()
    };
    assert_eq!(affected(&Deployments, &REPLICA_SET, "web-2"), ["web"]);
    assert_eq!(affected(&Deployments, &POD, "web-1-a"), ["web"]);
    assert_eq!(affected(&ReplicaSets, &POD, "web-1-a"), ["web-1"]);
    assert_eq!(affected(&ReplicaSets, &POD, "loose"), ["web-1"]);
    assert_eq!(affected(&ReplicaSets, &REPLICA_SET, "gone"), ["gone"]);
    assert!(affected(&ReplicaSets, &POD, "gone").is_empty());
    assert_eq!(ReplicaSets.rollouts(&world).len(), 2);
}

#[test]
fn a_replication_controller_keeps_its_pods_by_a_map_of_labels() {
    let template = apps::template("web:v1");
    let controller =
        |spec: Value| object("v1", "ReplicationController", "web").namespace("shop").spec(spec);
    let orphan = object("v1", "Pod", "stray").namespace("shop").label("app", "web");
    let step = |spec: Value| {
        let world: World = [controller(spec).build(), orphan.clone().build()].into_iter().collect();
        let rollout = ReplicationControllers.rollouts(&world)[0];
        let snapshot = ReplicationControllers.snapshot(&world, rollout);
        let affected = ReplicationControllers.affected(&world, &POD.key("shop", "stray"));
        (ReplicationControllers.step(&snapshot, NOW.parse().unwrap()), affected.len())
    };
    let selector = json!({"app": "web"});
    for spec in [
        json!({"replicas": 3, "selector": selector, "template": template}),
        json!({"replicas": 3, "template": template}),
    ] {
        let (step, affected) = step(spec);
        let verbs: Vec<&str> = step.actions.iter().map(|action| action.verb.into()).collect();
        assert_eq!((verbs, affected), (vec!["Record", "Adopt", "Start", "Start"], 1));
        let status = step.status.unwrap();
        assert_eq!(status["replicas"], json!(1));
        assert_eq!(status.get("terminatingReplicas"), None, "it has no such field");
    }
    let (other, affected) =
        step(json!({"replicas": 0, "selector": {"app": "other"}, "template": template}));
    assert_eq!((other.actions.len(), affected), (0, 0));
}
