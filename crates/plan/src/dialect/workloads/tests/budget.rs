//! Budgets side by side with what kube-controller-manager computes for the same objects.

use convoy_api::Object;
use convoy_testkit::{Builder, NOW, object};
use serde_json::{Value, json};

use crate::dialect::workloads::PodDisruptionBudgets;
use crate::dialect::{Dialect, Need};
use crate::{Step, Verdict, World};

fn pdb(spec: &Value) -> Builder {
    let mut spec = spec.clone();
    if spec.get("selector").is_none() {
        spec["selector"] = json!({"matchLabels": {"app": "web"}});
    }
    object("policy/v1", "PodDisruptionBudget", "web")
        .namespace("default")
        .with("/metadata/generation", json!(3))
        .spec(spec)
}

fn pod(name: &str) -> Builder {
    object("v1", "Pod", name)
        .namespace("default")
        .label("app", "web")
        .status(json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}))
}

fn owned(builder: Builder, api_version: &str, kind: &str, name: &str) -> Builder {
    let owner = json!([{"apiVersion": api_version, "kind": kind, "name": name,
        "uid": format!("{kind}-{name}"), "controller": true}]);
    builder.with("/metadata/ownerReferences", owner)
}

fn scaled(api_version: &str, kind: &str, name: &str, replicas: i64) -> Builder {
    object(api_version, kind, name)
        .namespace("default")
        .with("/metadata/uid", json!(format!("{kind}-{name}")))
        .spec(json!({"replicas": replicas}))
}

fn set(name: &str, replicas: i64) -> Builder {
    scaled("apps/v1", "ReplicaSet", name, replicas)
}

fn of_set(name: &str, of: &str) -> Builder {
    owned(pod(name), "apps/v1", "ReplicaSet", of)
}

fn step(objects: impl IntoIterator<Item = Object>) -> Step {
    let world: World = objects.into_iter().collect();
    let budget = PodDisruptionBudgets.rollouts(&world)[0];
    PodDisruptionBudgets.step(&PodDisruptionBudgets.snapshot(&world, budget), NOW.parse().unwrap())
}

/// Allowed, healthy, desired and expected, as upstream's tests name them.
fn numbers(step: &Step) -> [i64; 4] {
    let fields = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
    let status = step.status.as_ref().expect("a status to write");
    fields.map(|field| status[field].as_i64().unwrap())
}

fn condition(step: &Step) -> [String; 4] {
    let entry = step.status.as_ref().unwrap()["conditions"][0].clone();
    let generation = entry["observedGeneration"].to_string();
    let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    [text("status"), text("reason"), text("message"), generation]
}

/// A name, a spec, the objects beside the budget, and the numbers.
type Case = (&'static str, Value, Vec<Object>, [i64; 4]);

/// So many pods of a ReplicaSet.
fn pods(count: usize, of: &str) -> Vec<Object> {
    (0..count).map(|at| of_set(&format!("{of}-{at}"), of).build()).collect()
}

/// The same with the ReplicaSet, and its scale.
fn scaled_pods(count: usize, of: &str, replicas: i64) -> Vec<Object> {
    pods(count, of).into_iter().chain([set(of, replicas).build()]).collect()
}

fn cases_of_counts() -> Vec<Case> {
    let nothing = json!({"minAvailable": 3, "selector": null});
    let everything = json!({"minAvailable": 3, "selector": {}});
    let naked = vec![pod("p").build(), pod("q").build()];
    let most = |count: i64| json!({"maxUnavailable": count});
    vec![
        ("no selector selects nothing", nothing, pods(4, "a"), [0, 0, 3, 0]),
        ("an empty selector selects everything", everything, pods(4, "a"), [1, 4, 3, 4]),
        ("an integer needs no controller", json!({"minAvailable": 1}), naked, [1, 2, 1, 2]),
        ("maxUnavailable is of the scale", most(1), scaled_pods(6, "a", 7), [0, 6, 6, 7]),
        ("more than there are", most(9), scaled_pods(2, "a", 7), [2, 2, 0, 7]),
        ("a scale of none", most(1), scaled_pods(1, "a", 0), [0, 1, 0, 0]),
        ("nothing is asked for", json!({}), pods(2, "a"), [0, 2, 0, 0]),
    ]
}

fn cases_of_shares() -> Vec<Case> {
    let least = || json!({"minAvailable": "28%"});
    let naked = || vec![pod("p").build()];
    let mixed = [scaled_pods(1, "a", 10), naked()].concat();
    let two = [scaled_pods(2, "a", 11), scaled_pods(3, "b", 11)].concat();
    let most = json!({"maxUnavailable": "30%"});
    vec![
        ("a share of naked pods is of nothing", least(), naked(), [0, 1, 0, 0]),
        ("naked pods are left out of the scale", least(), mixed, [0, 2, 3, 10]),
        ("30% of 7 is 2.1, and rounds up to 3", most, scaled_pods(7, "a", 7), [3, 7, 4, 7]),
        ("28% of 10 is 2.8, and rounds up to 3", least(), scaled_pods(4, "a", 10), [1, 4, 3, 10]),
        ("two controllers are added up", least(), two, [0, 5, 7, 22]),
    ]
}

#[test]
fn budgets_come_to_what_kube_controller_manager_computes() {
    for (case, spec, objects, expected) in cases_of_counts().into_iter().chain(cases_of_shares()) {
        let step = step(objects.into_iter().chain([pdb(&spec).build()]));
        assert_eq!(numbers(&step), expected, "{case}");
        assert_eq!(step.status.as_ref().unwrap()["observedGeneration"], 3, "{case}");
        let [status, reason] = if expected[0] > 0 {
            ["True", "SufficientPods"]
        } else {
            ["False", "InsufficientPods"]
        };
        assert_eq!(condition(&step), [status, reason, "", "3"], "{case}");
    }
}

#[test]
fn the_scale_is_that_of_the_controller_that_people_scale() {
    let deployment = scaled("apps/v1", "Deployment", "web", 20).build();
    let by_deployment = || owned(set("a", 5), "apps/v1", "Deployment", "web").build();
    let half = || pdb(&json!({"minAvailable": "50%"})).build();
    let of = |owner: Builder, kind: &str| {
        [
            half(),
            owned(pod("p"), owner.clone().build().api_version(), kind, "a").build(),
            owner.build(),
        ]
    };
    let cases: Vec<(&str, Vec<Object>, i64)> = vec![
        ("a Deployment", vec![half(), of_set("p", "a").build(), by_deployment(), deployment], 20),
        ("a Deployment that is gone", vec![half(), of_set("p", "a").build(), by_deployment()], 5),
        ("a ReplicaSet", of(set("a", 5), "ReplicaSet").into(), 5),
        ("a StatefulSet", of(scaled("apps/v1", "StatefulSet", "a", 4), "StatefulSet").into(), 4),
        (
            "a ReplicationController",
            of(scaled("v1", "ReplicationController", "a", 9), "ReplicationController").into(),
            9,
        ),
    ];
    for (case, objects, expected) in cases {
        assert_eq!(numbers(&step(objects))[3], expected, "{case}");
    }
}

fn definition(subresources: &Value) -> Object {
    object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "clones.test.dev")
        .spec(json!({"group": "test.dev", "names": {"kind": "Clone", "plural": "clones"},
            "versions": [{"name": "v1", "subresources": subresources}]}))
        .build()
}

#[test]
fn custom_controllers_are_asked_for_their_scale() {
    let scale = json!({"scale": {"specReplicasPath": ".spec.size.wanted"}});
    let clone = object("test.dev/v1", "Clone", "a")
        .namespace("default")
        .with("/metadata/uid", json!("Clone-a"))
        .spec(json!({"size": {"wanted": 8}}))
        .build();
    let pod = || owned(pod("p"), "test.dev/v1", "Clone", "a").build();
    let half = || pdb(&json!({"minAvailable": "50%"})).build();
    let objects = [half(), pod(), clone.clone(), definition(&scale)];
    let world: World = objects.iter().cloned().collect();
    let needs = PodDisruptionBudgets.needs(&world, &half());
    let [Need::Kind { collection, version }] = &needs[..] else { panic!("{needs:?}") };
    assert_eq!((collection.kind.kind.as_str(), version.as_str()), ("Clone", "v1"));
    assert_eq!(numbers(&step(objects)), [0, 1, 4, 8]);
    let without = [half(), pod(), clone, definition(&json!({}))];
    assert_eq!(
        condition(&step(without))[2],
        "clones.test.dev does not implement the scale subresource"
    );
}

#[test]
fn what_cannot_be_computed_allows_nothing_and_says_why() {
    let half = json!({"minAvailable": "50%"});
    let daemon = owned(pod("p"), "apps/v1", "DaemonSet", "a").build();
    let unknown = owned(pod("p"), "test.dev/v1", "Clone", "a").build();
    let operator = json!({"minAvailable": 1, "selector": {"matchExpressions":
        [{"key": "app", "operator": "Near", "values": ["web"]}]}});
    let cases: Vec<(Value, Vec<Object>, &str)> = vec![
        (half.clone(), vec![of_set("p", "a").build()], "found no controllers for pod \"p\""),
        (half.clone(), vec![daemon], "daemonsets.apps does not implement the scale subresource"),
        (half, vec![unknown], "no matches for kind \"Clone\" in version \"test.dev/v1\""),
        (operator, vec![pod("p").build()], "spec.selector.matchExpressions[0].operator"),
    ];
    for (spec, objects, why) in cases {
        let budget = pdb(&spec).status(json!({"disruptionsAllowed": 2, "observedGeneration": 2,
            "currentHealthy": 4, "desiredHealthy": 2, "expectedPods": 4}));
        let step = step(objects.into_iter().chain([budget.build()]));
        let [status, reason, message, generation] = condition(&step);
        assert_eq!([status.as_str(), &reason, &generation], ["False", "SyncFailed", "2"], "{why}");
        assert!(message.contains(why), "{message}");
        assert_eq!(numbers(&step), [0, 4, 2, 4], "{why}");
        assert_eq!(step.verdict, Verdict::Stopped);
        assert_eq!(step.events[0].reason, "CalculateExpectedPodCountFailed");
    }
}

#[test]
fn evicted_pods_do_not_count_until_they_are_overdue() {
    let at = |text: &str| json!(text);
    let budget = pdb(&json!({"minAvailable": 1})).status(json!({"disruptedPods": {
        "fresh": at("2025-12-31T23:59:00Z"), "late": at("2025-12-31T23:57:59Z"),
        "gone": at("2025-12-31T23:59:59Z"), "deleting": at("2025-12-31T23:59:59Z")}}));
    let deleting = pod("deleting").with("/metadata/deletionTimestamp", json!(NOW));
    let pods = [pod("fresh"), pod("late"), pod("plain"), deleting].map(Builder::build);
    let step = step(pods.into_iter().chain([budget.build()]));
    assert_eq!(numbers(&step), [1, 2, 1, 4], "the late and the plain one are healthy");
    let status = step.status.as_ref().unwrap();
    assert_eq!(status["disruptedPods"], json!({"fresh": "2025-12-31T23:59:00Z"}));
    assert_eq!(step.wake_at, Some("2026-01-01T00:01:00Z".parse().unwrap()));
    let told: Vec<(&str, &str)> =
        step.events.iter().map(|it| (it.regarding.name.as_str(), it.reason.as_str())).collect();
    assert_eq!(told, [("late", "NotDeleted")]);
}

#[test]
fn an_unchanged_world_writes_nothing_and_other_conditions_stay() {
    let other = json!({"type": "Custom", "status": "True", "reason": "R", "message": "",
        "lastTransitionTime": NOW});
    let first = pdb(&json!({"minAvailable": 1})).status(json!({"conditions": [other]})).build();
    let pods = || [pod("p").build(), pod("q").build()];
    let once = step(pods().into_iter().chain([first.clone()]));
    let status = once.status.clone().unwrap();
    assert_eq!(status["conditions"][0], other);
    assert_eq!(status["conditions"][1]["reason"], "SufficientPods");
    let mut raw = first.raw().clone();
    raw["status"] = status;
    let again = step(pods().into_iter().chain([first.with_raw(raw)]));
    assert_eq!((again.status, again.events.len()), (None, 0));
}

#[test]
fn a_change_concerns_the_budgets_that_look_at_it() {
    let budget = pdb(&json!({"minAvailable": 1})).build();
    let (mine, other) = (pod("p").build(), pod("q").label("app", "db").build());
    let world: World = [budget.clone(), mine.clone(), other.clone()].into_iter().collect();
    let affected = |object: &Object| PodDisruptionBudgets.affected(&world, object.key());
    assert_eq!(affected(&mine), [budget.key().clone()]);
    assert_eq!(affected(&other), []);
    assert_eq!(affected(&set("a", 1).build()), [budget.key().clone()]);
    let by = |before: &Object, after: &Object| {
        PodDisruptionBudgets.affected_by(&world, before, after, NOW.parse().unwrap())
    };
    let unready =
        pod("p").with("/status/conditions", json!([{"type": "Ready", "status": "False"}])).build();
    assert_eq!(by(&mine, &unready), None, "its readiness counts");
    let started = pod("p").with("/status/startTime", json!(NOW)).build();
    assert_eq!(by(&mine, &started), Some(Vec::new()));
    assert_eq!(by(&set("a", 1).build(), &set("a", 2).build()), None);
    assert_eq!(by(&set("a", 1).build(), &set("a", 1).build()), Some(Vec::new()));
}
