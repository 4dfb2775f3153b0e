//! What the controllers decide beside limits that are full. Histories are in `convoy-check`.

mod budget;
mod cron_job;
mod job;
mod job_life;
mod job_policies;
mod names;
mod stateful_set;

use convoy_testkit::{Builder, NOW, apps, node, object};
use serde_json::{Value, json};

use super::*;
use crate::step::{Verb, Write};

fn step(dialect: &Workloads, objects: impl IntoIterator<Item = Builder>) -> Step {
    step_at(dialect, objects, NOW)
}

fn step_at(dialect: &Workloads, objects: impl IntoIterator<Item = Builder>, now: &str) -> Step {
    let world: World = objects.into_iter().map(Builder::build).collect();
    let rollout = dialect.rollouts(&world)[0];
    dialect.step(&dialect.snapshot(&world, rollout), now.parse().unwrap())
}

fn owner(version: &str, kind: &str, spec: &Value) -> Builder {
    let mut whole = json!({"selector": {"matchLabels": {"app": "web"}},
        "template": apps::template("web:v1")});
    for (key, value) in spec.as_object().unwrap() {
        whole[key] = value.clone();
    }
    object(version, kind, "web").namespace("shop").spec(whole)
}

/// A pod of `kind` that is ready, of a revision that is no longer the template's.
fn outdated(kind: &str, name: &str, node: &str) -> Builder {
    object("v1", "Pod", name)
        .namespace("shop")
        .label("app", "web")
        .label("controller-revision-hash", "old")
        .with(
            "/metadata/ownerReferences",
            json!([{"apiVersion": "apps/v1", "kind": kind, "name": "web", "controller": true,
                "uid": format!("uid-{}-web", kind.to_lowercase())}]),
        )
        .spec(json!({"nodeName": node}))
        .status(json!({"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": NOW}]}))
}

fn holds(step: &Step) -> Vec<(String, String)> {
    let held = step.holds.iter().map(|hold| {
        (hold.member.as_deref().unwrap_or_default().to_owned(), hold.reason.to_string())
    });
    held.collect()
}

#[test]
fn a_daemon_set_starts_and_removes_within_its_budget() {
    let strategy = |rolling: Value| {
        owner("apps/v1", "DaemonSet", &json!({"updateStrategy": {"rollingUpdate": rolling}}))
    };
    let world = |set: Builder| {
        let nodes = ["n1", "n2", "n3"].map(node);
        let pods = ["n1", "n2", "n3"].map(|on| outdated("DaemonSet", &format!("web-{on}"), on));
        nodes.into_iter().chain(pods).chain([set])
    };
    let replaced = step(&DAEMON_SETS, world(strategy(json!({"maxUnavailable": 1}))));
    assert_eq!(replaced.dialect, "daemonsets");
    assert_eq!(replaced.decision["deletePods"], json!(["web-n1"]));
    let spent = "1 of 1 slots of maxUnavailable in use by n1".to_owned();
    assert_eq!(holds(&replaced), [("n2".to_owned(), spent.clone()), ("n3".to_owned(), spent)]);
    let removes = replaced.actions.iter().filter(|action| matches!(action.verb, Verb::Remove(_)));
    assert_eq!(removes.count(), 1);
    let surge = json!({"maxUnavailable": 0, "maxSurge": 2});
    let surged = step(&DAEMON_SETS, world(strategy(surge)));
    assert_eq!(
        (&surged.decision["createPods"], &surged.decision["deletePods"]),
        (&json!(2), &json!([]))
    );
    let spent = "2 of 2 slots of maxSurge in use by n1, n2".to_owned();
    assert_eq!(holds(&surged), [("n3".to_owned(), spent)]);
}

#[test]
fn a_pod_that_may_have_settled_within_this_second_is_not_taken_for_lost() {
    let created = |secs: i64| {
        let spec = json!({"minReadySeconds": 10,
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}});
        let nodes = ["n1", "n2", "n3"].map(node);
        let pods = ["n1", "n2", "n3"].map(|on| outdated("DaemonSet", &format!("web-{on}"), on));
        let set = owner("apps/v1", "DaemonSet", &spec);
        let now: jiff::Timestamp = NOW.parse().unwrap();
        let now = now.checked_add(jiff::SignedDuration::from_secs(secs)).unwrap().to_string();
        let objects = nodes.into_iter().chain(pods).chain([set]);
        step_at(&DAEMON_SETS, objects, &now).decision["createPods"].clone()
    };
    // Not available yet, by any count; perhaps available; available.
    assert_eq!([created(9), created(10), created(11)], [json!(3), json!(1), json!(1)]);
}

#[test]
fn a_surge_goes_on_when_its_pod_has_settled() {
    let spec = json!({"minReadySeconds": 10,
        "updateStrategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}});
    let world = |hash: &str| {
        let fresh = outdated("DaemonSet", "web-new", "n1").label("controller-revision-hash", hash);
        let long_ago = "2020-01-01T00:00:00Z";
        let ready = json!([{"type": "Ready", "status": "True", "lastTransitionTime": long_ago}]);
        let old = outdated("DaemonSet", "web-old", "n1")
            .with("/metadata/creationTimestamp", json!(long_ago))
            .status(json!({"phase": "Running", "conditions": ready}));
        [node("n1"), owner("apps/v1", "DaemonSet", &spec), old, fresh]
    };
    let first = step(&DAEMON_SETS, world("other"));
    let hash = first.actions.iter().find_map(|action| match &action.write {
        Write::Create { object } if object["kind"] == "ControllerRevision" => {
            object["metadata"]["labels"]["controller-revision-hash"].as_str()
        }
        _ => None,
    });
    let hash = hash.expect("the template has a revision");
    // Nothing else may ever happen on the node: the time alone has to bring the next decision.
    let settling = step(&DAEMON_SETS, world(hash));
    assert_eq!(settling.decision["deletePods"], json!([]));
    let until = settling.holds.iter().filter_map(|hold| hold.until).min().unwrap();
    let settled = step_at(&DAEMON_SETS, world(hash), &until.to_string());
    assert_eq!(settled.decision["deletePods"], json!(["web-old"]));
}

#[test]
fn on_delete_waits_for_somebody() {
    let strategy = json!({"updateStrategy": {"type": "OnDelete"}});
    let objects = [
        owner("apps/v1", "DaemonSet", &strategy),
        node("n1"),
        outdated("DaemonSet", "web-a", "n1"),
    ];
    let step = step(&DAEMON_SETS, objects);
    assert_eq!(step.decision["deletePods"], json!([]));
    let [(member, reason)] = &holds(&step)[..] else { panic!("{:?}", step.holds) };
    assert_eq!(member, "n1");
    assert!(reason.contains("OnDelete"), "{reason}");
}

#[test]
fn ordinals_wait_for_the_one_whose_turn_it_is() {
    let set = |policy: &str| {
        owner("apps/v1", "StatefulSet", &json!({"replicas": 3, "podManagementPolicy": policy}))
    };
    let starts = |step: &Step| {
        let pods = step.actions.iter().filter(|action| matches!(action.verb, Verb::Start(_)));
        pods.map(|action| action.target.name.to_string()).collect::<Vec<_>>()
    };
    let ordered = step(&STATEFUL_SETS, [set("OrderedReady")]);
    assert_eq!(starts(&ordered), ["web-0"]);
    let behind = "waits for web-0".to_owned();
    let expected = [("web-1".to_owned(), behind.clone()), ("web-2".to_owned(), behind)];
    assert_eq!(holds(&ordered), expected);
    let parallel = step(&STATEFUL_SETS, [set("Parallel")]);
    assert_eq!(starts(&parallel), ["web-0", "web-1", "web-2"]);
    assert_eq!(holds(&parallel), []);
}

/// As for ReplicaSets: the instant of a condition has whole seconds, and the pod may have turned
/// ready up to a second later.
#[test]
fn a_pod_never_counts_before_its_seconds_have_passed() {
    let spec = json!({"minReadySeconds": 1, "replicas": 1});
    let hash = "/metadata/labels/controller-revision-hash";
    let kinds = [
        (&DAEMON_SETS, "DaemonSet", "web-n1", "numberAvailable", hash),
        (&STATEFUL_SETS, "StatefulSet", "web-0", "availableReplicas", "/metadata/name"),
    ];
    for (dialect, kind, pod, counter, revision) in kinds {
        let set = owner("apps/v1", kind, &spec);
        let first = step(dialect, [set.clone(), node("n1")]).actions;
        let mut created = first.iter().filter_map(|action| match &action.write {
            Write::Create { object } if object["kind"] == "ControllerRevision" => Some(object),
            _ => None,
        });
        let revision = created.find_map(|object| object.pointer(revision)?.as_str());
        let pod = outdated(kind, pod, "n1").label("controller-revision-hash", revision.unwrap());
        let decided = |now: &str| {
            let objects = [set.clone(), node("n1"), pod.clone()];
            let step = step_at(dialect, objects, now);
            let status = step.status.unwrap_or_default();
            (status[counter].as_i64().unwrap_or(0), step.wake_at.map(|at| at.to_string()))
        };
        let early = decided("2026-01-01T00:00:01Z");
        assert_eq!(early, (0, Some("2026-01-01T00:00:02Z".to_owned())), "{kind}");
        assert_eq!(decided("2026-01-01T00:00:02Z"), (1, None), "{kind}");
    }
}

#[test]
fn a_job_starts_as_many_pods_as_its_parallelism() {
    let spec = json!({"completions": 5, "parallelism": 2});
    let running = step(&JOBS, [owner("batch/v1", "Job", &spec)]);
    assert_eq!(running.groups[0].moving, 2);
    assert_eq!(holds(&running), [(String::new(), "2 of 2 slots of parallelism in use".to_owned())]);
    let spec = json!({"completions": 5, "parallelism": 2, "suspend": true});
    let suspended = step(&JOBS, [owner("batch/v1", "Job", &spec)]);
    assert_eq!(suspended.groups[0].moving, 0);
    assert_eq!(holds(&suspended), [(String::new(), "paused".to_owned())]);
}

#[test]
fn a_field_that_cannot_be_read_stops_the_step() {
    let step = step(&JOBS, [owner("batch/v1", "Job", &json!({"parallelism": "two"}))]);
    assert_eq!(step.verdict, crate::Verdict::Invalid);
    assert_eq!(holds(&step), [(String::new(), "invalid: spec.parallelism".to_owned())]);
}

#[test]
fn a_revision_has_the_bytes_that_kubernetes_compares() {
    let container = json!({"name": "c", "image": "web:v1", "env": [{"value": "1", "name": "A"}]});
    let template =
        json!({"spec": {"containers": [container]}, "metadata": {"labels": {"app": "web"}}});
    for (dialect, kind) in [(&DAEMON_SETS, "DaemonSet"), (&STATEFUL_SETS, "StatefulSet")] {
        let set = owner("apps/v1", kind, &json!({"template": template}));
        let actions = step(dialect, [set]).actions;
        let data = actions.iter().find_map(|action| match &action.write {
            Write::Create { object } if object["kind"] == "ControllerRevision" => {
                Some(object["data"].to_string())
            }
            _ => None,
        });
        let expected = r#"{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"env":[{"name":"A","value":"1"}],"image":"web:v1","name":"c"}]}}}}"#;
        assert_eq!(data.as_deref(), Some(expected), "{kind}");
    }
}
