//! Jobs from their first step to their last, with pods that end as they are told to.

use std::collections::BTreeSet;

use convoy_api::kinds::{JOB, POD};
use jiff::{SignedDuration, Timestamp};

use super::job::job;
use super::*;
use crate::step::Action;

/// A Job, its pods and a kubelet.
struct Life {
    world: World,
    now: Timestamp,
    version: u64,
    /// Every name that was created.
    names: BTreeSet<String>,
}

impl Life {
    fn new(spec: &Value) -> Self {
        let world = [job(spec).build()].into_iter().collect();
        Self { world, now: NOW.parse().unwrap(), version: 1, names: BTreeSet::new() }
    }

    fn job(&self) -> &Object {
        self.world.find(&JOB, "shop", "web").unwrap()
    }

    /// Decides and lets `end` say how each pod ends, until the Job has ended and nothing moves.
    fn run(&mut self, end: impl Fn(&Object) -> Option<&'static str>) -> Value {
        for _ in 0..200 {
            let step = JOBS.step(&JOBS.snapshot(&self.world, self.job()), self.now);
            let is_quiet = step.actions.is_empty() && step.status.is_none();
            if is_quiet && step.verdict == crate::Verdict::Done {
                return self.job().status().clone();
            }
            for action in &step.actions {
                self.apply(action);
            }
            if let Some(status) = step.status {
                let key = self.job().key().clone();
                self.edit(&key, |raw| raw["status"] = status);
            }
            self.kubelet(&end);
            self.now = self.now.checked_add(SignedDuration::from_secs(60)).unwrap();
        }
        panic!("it does not end: {}", self.job().raw());
    }

    fn apply(&mut self, action: &Action) {
        match &action.write {
            Write::Create { object } => {
                let mut raw = object.clone();
                let name = action.target.name.to_string();
                raw["metadata"]["uid"] = json!(format!("uid-{name}"));
                raw["metadata"]["creationTimestamp"] = json!(self.now.to_string());
                assert!(self.names.insert(name), "used before: {}", action.target);
                self.world.insert(Object::from_value(raw).unwrap());
            }
            Write::Patch { patch, .. } => {
                let finalizers = patch["metadata"]["finalizers"].clone();
                self.edit(&action.target, |raw| raw["metadata"]["finalizers"] = finalizers);
            }
            Write::Delete { .. } => self.delete(&action.target),
            write => panic!("{write:?}"),
        }
    }

    fn delete(&mut self, key: &ObjectKey) {
        let now = json!(self.now.to_string());
        self.edit(key, |raw| raw["metadata"]["deletionTimestamp"] = now);
    }

    fn edit(&mut self, key: &ObjectKey, change: impl FnOnce(&mut Value)) {
        let object = self.world.get(key).unwrap();
        let mut raw = object.raw().clone();
        change(&mut raw);
        self.version += 1;
        raw["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let changed = object.with_raw(raw);
        self.world.insert(changed);
    }

    /// Pods end, and go for good once they are deleted and nothing holds them.
    fn kubelet(&mut self, end: impl Fn(&Object) -> Option<&'static str>) {
        let pods: Vec<Object> = self.world.of(&POD).cloned().collect();
        for pod in pods {
            let is_held = pod.metadata()["finalizers"].as_array().is_some_and(|it| !it.is_empty());
            let told = if pod.is_deleting() { Some("Failed") } else { end(&pod) };
            if pod.is_deleting() && crate::pods::is_finished(&pod) && !is_held {
                self.world.remove(pod.key());
            } else if let Some(phase) = told.filter(|_| !crate::pods::is_finished(&pod)) {
                let at = json!(self.now.to_string());
                let code = i64::from(phase == "Failed");
                self.edit(pod.key(), |raw| {
                    raw["spec"]["nodeName"] = json!("n1");
                    raw["status"] = json!({"phase": phase, "containerStatuses": [{"name": "main",
                        "state": {"terminated": {"exitCode": code, "finishedAt": at}}}]});
                });
            }
        }
    }

    fn is_anything_held(&self) -> bool {
        self.world.of(&POD).any(|pod| pod.has_finalizer("batch.kubernetes.io/job-tracking"))
    }
}

fn index(pod: &Object) -> &str {
    pod.annotation("batch.kubernetes.io/job-completion-index").unwrap()
}

fn tries(pod: &Object) -> &str {
    pod.annotation("batch.kubernetes.io/job-index-failure-count").unwrap_or("0")
}

#[test]
fn indexes_are_tried_as_often_as_they_may_be() {
    for policy in ["TerminatingOrFailed", "Failed"] {
        let spec = json!({"completionMode": "Indexed", "completions": 4, "parallelism": 3,
            "backoffLimitPerIndex": 2, "podReplacementPolicy": policy});
        let mut life = Life::new(&spec);
        let status = life.run(|pod| match (index(pod), tries(pod)) {
            ("1", _) | ("2", "0" | "1") => Some("Failed"),
            _ => Some("Succeeded"),
        });
        assert_eq!(
            (&status["failedIndexes"], &status["completedIndexes"]),
            (&json!("1"), &json!("0,2-3"))
        );
        assert_eq!((&status["failed"], &status["succeeded"]), (&json!(5), &json!(3)), "{policy}");
        let last = status["conditions"].as_array().unwrap().last().unwrap();
        assert_eq!((&last["type"], &last["reason"]), (&json!("Failed"), &json!("FailedIndexes")));
        assert_eq!((life.is_anything_held(), life.names.len()), (false, 8));
    }
}

#[test]
fn a_job_that_succeeds_early_gives_up_the_rest() {
    let rules = json!([{"succeededIndexes": "0"}]);
    let spec = json!({"completionMode": "Indexed", "completions": 5, "parallelism": 5,
        "successPolicy": {"rules": rules}});
    let mut life = Life::new(&spec);
    let status = life.run(|pod| (index(pod) == "0").then_some("Succeeded"));
    let last = status["conditions"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["type"], &last["reason"]), (&json!("Complete"), &json!("SuccessPolicy")));
    let counts = ["active", "ready", "terminating"].map(|name| status[name].as_i64());
    assert_eq!(counts, [Some(0); 3]);
    assert!(!life.is_anything_held());
}

#[test]
fn ignored_failures_cost_nothing() {
    let rules = json!([{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}}]);
    let spec = json!({"completions": 2, "parallelism": 2, "backoffLimit": 0,
        "podFailurePolicy": {"rules": rules}});
    let mut life = Life::new(&spec);
    let begun = life.now;
    let status = life.run(|pod| {
        let is_early = pod.created_at().unwrap() < begun + SignedDuration::from_mins(5);
        Some(if is_early { "Failed" } else { "Succeeded" })
    });
    assert_eq!((&status["failed"], &status["succeeded"]), (&json!(0), &json!(2)));
    assert!(life.names.len() > 2 && !life.is_anything_held());
}
