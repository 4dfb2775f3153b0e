//! Policies of Jobs: limits of failures for each index, failures that mean something else, and
//! success before the end.

use super::job::{job, pod, verbs};
use super::*;
use crate::dialect::workloads::names::{INDEX_FAILURES, INDEX_IGNORED_FAILURES};

const LATER: &str = "2026-01-01T01:00:00Z";

/// A pod of an index that ended with a code, after so many failures of the index.
fn failed(name: &str, index: usize, failures: usize, code: i64) -> Builder {
    numbered(name, index, failures).status(json!({"phase": "Failed", "containerStatuses": [
        {"name": "main", "state": {"terminated": {"exitCode": code, "finishedAt": NOW}}}]}))
}

fn numbered(name: &str, index: usize, failures: usize) -> Builder {
    pod(name)
        .annotation("batch.kubernetes.io/job-completion-index", &index.to_string())
        .annotation(INDEX_FAILURES, &failures.to_string())
}

fn indexed(more: &Value) -> Value {
    let mut spec = json!({"completionMode": "Indexed", "completions": 3, "parallelism": 3});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    spec
}

/// The end that a status announces: the reason and the message.
fn end(step: &Step) -> Option<(String, String)> {
    let status = step.status.as_ref()?;
    let conditions = status["conditions"].as_array()?;
    let announced = conditions.iter().find(|entry| {
        ["FailureTarget", "SuccessCriteriaMet"].contains(&entry["type"].as_str().unwrap())
    })?;
    let word = |name: &str| announced[name].as_str().unwrap().to_owned();
    Some((word("reason"), word("message")))
}

/// The index of each pod that is created, and how often it failed, counted and not.
fn created(step: &Step) -> Vec<(Value, Value, Value)> {
    let bodies = step.actions.iter().filter_map(|action| match &action.write {
        Write::Create { object } => Some(&object["metadata"]["annotations"]),
        _ => None,
    });
    let index = "batch.kubernetes.io/job-completion-index";
    let of = |notes: &Value| {
        [index, INDEX_FAILURES, INDEX_IGNORED_FAILURES].map(|key| notes[key].clone()).into()
    };
    bodies.map(of).collect()
}

#[test]
fn an_index_that_fails_too_often_is_not_tried_again() {
    let spec = indexed(&json!({"backoffLimitPerIndex": 1}));
    let decide = |status: Value, pods: Vec<Builder>, now: &str| {
        step_at(&JOBS, [job(&spec).status(status)].into_iter().chain(pods), now)
    };
    let pods = || vec![failed("web-a", 0, 0, 1), failed("web-b", 1, 1, 1), numbered("web-c", 2, 0)];
    let first = decide(json!({"startTime": NOW}), pods(), LATER);
    assert_eq!(created(&first), []);
    let status = first.status.unwrap();
    assert_eq!(status["failedIndexes"], "1");
    let then = decide(status.clone(), pods(), LATER);
    assert_eq!(created(&then), [(json!("0"), json!("1"), json!("0"))]);
    // The pod of index 0 tells how often it was tried, until another pod does.
    assert_eq!(verbs(&then)[..1], [("patch", "web-b".to_owned())]);
    let early = decide(status, pods(), "2026-01-01T00:00:05Z");
    assert_eq!(created(&early), []);
    let until = early.holds.iter().find(|hold| hold.member.as_deref() == Some("index 0"));
    assert_eq!(until.unwrap().until.unwrap().to_string(), "2026-01-01T00:00:10Z");
}

#[test]
fn failed_indexes_end_a_job() {
    let told = |more: Value, status: Value| {
        let mut spec = indexed(&json!({"backoffLimitPerIndex": 0}));
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        end(&step_at(&JOBS, [job(&spec).status(status)], LATER)).map(|(reason, _)| reason)
    };
    let reason = |text: &str| Some(text.to_owned());
    let some = || json!({"startTime": NOW, "failedIndexes": "1", "completedIndexes": "0"});
    let all = json!({"startTime": NOW, "failedIndexes": "1", "completedIndexes": "0,2"});
    assert_eq!(told(json!({}), some()), None);
    assert_eq!(told(json!({}), all), reason("FailedIndexes"));
    let most = json!({"maxFailedIndexes": 0});
    assert_eq!(told(most, some()), reason("MaxFailedIndexesExceeded"));
}

#[test]
fn a_failure_may_be_ignored_or_end_the_job() {
    let rules = json!([
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [9]}},
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]);
    let spec = json!({"completions": 1, "backoffLimit": 0, "podFailurePolicy": {"rules": rules}});
    let decide = |code: i64| {
        let pod = failed("web-a", 0, 0, code);
        step_at(&JOBS, [job(&spec).status(json!({"startTime": NOW})), pod], LATER)
    };
    let ignored = decide(9);
    let words: Vec<&str> = verbs(&ignored).iter().map(|(verb, _)| *verb).collect();
    assert_eq!((words, end(&ignored)), (vec!["patch", "create"], None));
    assert_eq!(ignored.status.unwrap()["failed"], 0);
    let message = "Container main for pod shop/web-a failed with exit code 42 matching FailJob \
                   rule at index 1";
    assert_eq!(end(&decide(42)), Some(("PodFailurePolicy".to_owned(), message.to_owned())));
    let reason = end(&decide(1)).map(|(reason, _)| reason);
    assert_eq!(reason, Some("BackoffLimitExceeded".to_owned()));
}

#[test]
fn enough_successes_end_a_job() {
    let rules = json!([{"succeededIndexes": "0"}, {"succeededCount": 2}]);
    let spec = indexed(&json!({"successPolicy": {"rules": rules}}));
    let decide = |completed: &str| {
        let status = json!({"startTime": NOW, "completedIndexes": completed});
        step_at(&JOBS, [job(&spec).status(status), numbered("web-c", 2, 0)], LATER)
    };
    assert_eq!(end(&decide("1")), None);
    let met = decide("0");
    let told =
        |rule: usize| Some(("SuccessPolicy".to_owned(), format!("Matched rules at index {rule}")));
    assert_eq!((end(&met), verbs(&met)), (told(0), vec![("delete", "web-c".to_owned())]));
    assert_eq!(end(&decide("1,5")), told(1));
}

#[test]
fn restarts_in_place_count_against_the_limit() {
    let restarted = |policy: &str, count: i64| {
        let mut template = apps::template("web:v1");
        template["spec"]["restartPolicy"] = json!(policy);
        let spec = json!({"backoffLimit": 2, "template": template});
        let pod = pod("web-a").with("/status/containerStatuses", json!([{"restartCount": count}]));
        end(&step(&JOBS, [job(&spec), pod])).map(|(reason, _)| reason)
    };
    assert_eq!(restarted("OnFailure", 1), None);
    assert_eq!(restarted("OnFailure", 2), Some("BackoffLimitExceeded".to_owned()));
    assert_eq!(restarted("Never", 2), None);
}
