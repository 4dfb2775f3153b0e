//! Pods of Jobs: when they are let go, and what the status says of them.

use convoy_api::kinds::{JOB, POD};

use super::*;
use crate::dialect::workloads::names::JOB_TRACKING;
use crate::step::{Action, Denial};

const DELETED: &str = "/metadata/deletionTimestamp";

pub(super) fn job(spec: &Value) -> Builder {
    owner("batch/v1", "Job", spec)
}

/// A pod of the Job that runs and is ready, with the finalizer.
pub(super) fn pod(name: &str) -> Builder {
    object("v1", "Pod", name)
        .namespace("shop")
        .label("app", "web")
        .with("/metadata/finalizers", json!(["example.com/other", JOB_TRACKING]))
        .with(
            "/metadata/ownerReferences",
            json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "web", "controller": true,
                "uid": "uid-job-web"}]),
        )
        .spec(json!({"nodeName": "n1"}))
        .status(json!({"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": NOW}]}))
}

fn failed(name: &str) -> Builder {
    pod(name).status(json!({"phase": "Failed"}))
}

pub(super) fn verbs(step: &Step) -> Vec<(&'static str, String)> {
    let verb = |action: &Action| match &action.write {
        Write::Create { .. } => "create",
        Write::Delete { .. } => "delete",
        Write::Patch { .. } => "patch",
        _ => "other",
    };
    step.actions.iter().map(|action| (verb(action), action.target.name.to_string())).collect()
}

fn releases(step: &Step) -> Vec<(String, Value)> {
    let patches = step.actions.iter().filter_map(|action| match &action.write {
        Write::Patch { patch, .. } if action.verb == Verb::Release => {
            Some((action.target.name.to_string(), patch["metadata"]["finalizers"].clone()))
        }
        _ => None,
    });
    patches.collect()
}

#[test]
fn a_job_that_is_being_deleted_lets_its_pods_go() {
    let going = job(&json!({"parallelism": 2})).with(DELETED, json!(NOW));
    let step = step(&JOBS, [going, pod("web-a"), failed("web-b")]);
    let rest = json!(["example.com/other"]);
    let expected = ["web-a", "web-b"].map(|name| (name.to_owned(), rest.clone()));
    assert_eq!(releases(&step), expected);
    assert_eq!(step.actions.len(), 2);
}

#[test]
fn pods_whose_job_is_gone_are_let_go() {
    let of = |kind: &str, name: &str| {
        let reference = json!({"apiVersion": "batch/v1", "kind": kind, "name": "web",
            "controller": true, "uid": "uid-job-web"});
        pod(name).with("/metadata/ownerReferences", json!([reference])).build()
    };
    let stranger = of("Workflow", "web-c");
    let alone = pod("web-b").with("/metadata/ownerReferences", json!([])).build();
    let counted = pod("web-d").with("/metadata/finalizers", json!([])).build();
    let job = job(&json!({})).build();
    let pods = [of("Job", "web-a"), alone, stranger, counted];
    let mut world: World = pods.into_iter().chain([job.clone()]).collect();
    let named = |world: &World| -> Vec<String> {
        JOBS.rollouts(world).iter().map(|object| object.name().to_string()).collect()
    };
    assert_eq!(named(&world), ["web"], "the Job looks after its own, and may adopt the other");
    world.remove(job.key());
    assert_eq!(named(&world), ["web-a", "web-b"]);
    let affected = JOBS.affected(&world, job.key());
    let keys = ["web-a", "web-b"].map(|name| POD.key("shop", name));
    assert_eq!(affected[..2], keys);
    for key in keys {
        assert_eq!(JOBS.affected(&world, &key), vec![key.clone()]);
        let pod = world.get(&key).unwrap();
        assert!(JOBS.is_rollout(&world, pod));
        let step = JOBS.step(&JOBS.snapshot(&world, pod), NOW.parse().unwrap());
        assert_eq!(releases(&step), [(key.name.to_string(), json!(["example.com/other"]))]);
    }
    // Another Job of the same name did not create them.
    world.insert(
        object("batch/v1", "Job", "web")
            .namespace("shop")
            .with("/metadata/uid", json!("new"))
            .build(),
    );
    assert!(JOBS.is_rollout(&world, world.get(&POD.key("shop", "web-a")).unwrap()));
    assert!(!STATEFUL_SETS.is_rollout(&world, world.get(&POD.key("shop", "web-a")).unwrap()));
}

#[test]
fn an_adopted_pod_is_counted_from_then_on() {
    let orphan = pod("web-a")
        .with("/metadata/ownerReferences", json!([]))
        .with("/metadata/finalizers", json!([]));
    let step = step(&JOBS, [job(&json!({})), orphan]);
    let patches: Vec<Value> = step
        .actions
        .iter()
        .filter_map(|action| match &action.write {
            Write::Patch { patch, .. } => Some(patch["metadata"].clone()),
            _ => None,
        })
        .collect();
    assert_eq!(patches[0], Value::Null, "the Job is confirmed");
    assert_eq!(patches[1]["ownerReferences"][0]["uid"], "uid-job-web");
    assert_eq!(patches[2]["finalizers"], json!([JOB_TRACKING]));
    assert_eq!(patches.len(), 3);
}

/// A denied create ends the step, in which the status is written last.
#[test]
fn pods_are_recorded_and_let_go_before_others_are_created() {
    let spec = json!({"completions": 2, "parallelism": 2});
    let at = "2026-01-01T01:00:00Z";
    let decide = |status: Value, pod: Builder| {
        step_at(&JOBS, [job(&spec).status(status), pod.created_at(NOW)], at)
    };
    let started = json!({"startTime": NOW, "active": 1, "ready": 1});
    let unrecorded = decide(started.clone(), failed("web-a"));
    assert_eq!(verbs(&unrecorded), []);
    let waits = "waits for its status to record how its pods ended".to_owned();
    assert_eq!(holds(&unrecorded), [("next pod".to_owned(), waits)]);
    assert_eq!(unrecorded.verdict, crate::Verdict::Held);
    let recorded = unrecorded.status.unwrap();
    assert_eq!(recorded["uncountedTerminatedPods"], json!({"failed": ["uid-pod-web-a"]}));
    let next = decide(recorded.clone(), failed("web-a"));
    let verbs_then: Vec<&str> = verbs(&next).iter().map(|(verb, _)| *verb).collect();
    assert_eq!(verbs_then, ["patch", "create", "create"]);
    let freed = failed("web-a").with("/metadata/finalizers", json!([]));
    let counted = decide(recorded, freed);
    assert_eq!(verbs(&counted), [], "first the count");
    assert_eq!(counted.status.unwrap()["failed"], 1);
}

/// What a denied create is reported with.
#[test]
fn a_denied_create_leaves_the_status_current() {
    let world: World =
        [job(&json!({"parallelism": 2})), pod("web-a")].into_iter().map(Builder::build).collect();
    let snapshot = JOBS.snapshot(&world, world.get(&JOB.key("shop", "web")).unwrap());
    let denial = |verb| Denial {
        target: POD.key("shop", "web-b"),
        verb,
        message: "because it is being terminated".to_owned(),
    };
    let told = |verb| JOBS.complaint(&snapshot, &denial(verb), NOW.parse().unwrap());
    assert_eq!(told("create").status.unwrap()["active"], 1);
    assert_eq!(told("create").event.reason, "FailedCreate");
    assert_eq!(told("delete").status, None);
}

#[test]
fn a_job_of_another_controller_is_left_alone() {
    let theirs = |status: Value, now: &str| {
        let spec = json!({"managedBy": "example.com/queue", "ttlSecondsAfterFinished": 60});
        let job = job(&spec).status(status);
        step_at(&JOBS, [job, failed("web-a"), pod("web-b")], now)
    };
    let running = theirs(json!({}), NOW);
    assert_eq!((running.actions.len(), &running.status, running.events.len()), (0, &None, 0));
    let on = "waits for example.com/queue, the controller in spec.managedBy".to_owned();
    assert_eq!(holds(&running), [(String::new(), on)]);
    let finished = json!({"conditions": [
        {"type": "Complete", "status": "True", "lastTransitionTime": NOW}]});
    let step = theirs(finished.clone(), NOW);
    assert_eq!((step.actions.len(), step.wake_at.is_some()), (0, true));
    assert_eq!(verbs(&theirs(finished, "2026-01-01T00:01:00Z")), [("delete", "web".to_owned())]);
    let ours = job(&json!({"managedBy": "kubernetes.io/job-controller"}));
    assert_eq!(step_of_one(ours).actions.len(), 1);
}

fn step_of_one(job: Builder) -> Step {
    step(&JOBS, [job])
}

#[test]
fn a_job_past_its_deadline_has_no_ready_pods() {
    let spec = json!({"activeDeadlineSeconds": 10, "parallelism": 3});
    let job = job(&spec).status(json!({"startTime": NOW, "active": 2, "ready": 2}));
    let leaving = pod("web-c").with(DELETED, json!(NOW));
    let over = failed("web-d").with(DELETED, json!(NOW));
    let objects = [job, pod("web-a"), pod("web-b"), leaving, over];
    let step = step_at(&JOBS, objects, "2026-01-01T00:00:10Z");
    let deleted = ["web-a", "web-b"].map(|name| ("delete", name.to_owned()));
    assert_eq!(verbs(&step), deleted);
    let status = step.status.unwrap();
    let counts = ["active", "ready", "terminating"].map(|name| status[name].as_i64());
    assert_eq!(counts, [Some(0), Some(0), Some(3)]);
    assert_eq!(status["conditions"][0]["type"], "FailureTarget");
}

#[test]
fn pods_are_replaced_when_they_fail_or_when_they_terminate() {
    let replaced = |policy: Value, pod: Builder| {
        let spec = json!({"podReplacementPolicy": policy, "completions": 1});
        let uncounted = json!({"uncountedTerminatedPods": {"failed": ["uid-pod-web-a"]}});
        let status = if policy == "Failed" { json!({}) } else { uncounted };
        let step = step_at(&JOBS, [job(&spec).status(status), pod], "2026-01-01T01:00:00Z");
        let creates = verbs(&step).iter().filter(|(verb, _)| *verb == "create").count();
        (creates, step.verdict)
    };
    let leaving = || pod("web-a").with(DELETED, json!(NOW));
    assert_eq!(replaced(Value::Null, leaving()).0, 1);
    assert_eq!(replaced(json!("TerminatingOrFailed"), leaving()).0, 1);
    assert_eq!(replaced(json!("Failed"), leaving()), (0, crate::Verdict::Moving));
}
