//! CronJobs: when a Job is due, what is in its way, and what is kept of those that ended.

use super::*;
use crate::Verdict;

/// Every five minutes; it is older than any test looks back.
fn cron_job(spec: &Value) -> Builder {
    let mut whole = json!({"schedule": "*/5 * * * *", "jobTemplate": {
        "metadata": {"labels": {"app": "web"}, "annotations": {"team": "shop"}},
        "spec": {"parallelism": 2, "template": apps::template("web:v1")}}});
    for (key, value) in spec.as_object().unwrap() {
        whole[key] = value.clone();
    }
    let made = json!("2025-12-31T23:58:00Z");
    let object = object("batch/v1", "CronJob", "web").namespace("shop").spec(whole);
    object.with("/metadata/creationTimestamp", made)
}

/// A Job of the CronJob that was due at `due`; `end` is its condition that is True.
fn job(due: &str, end: Option<&str>) -> Builder {
    let at: Timestamp = due.parse().unwrap();
    let conditions: Vec<Value> =
        end.iter().map(|end| json!({"type": end, "status": "True"})).collect();
    let completed = (end == Some("Complete")).then_some(due);
    object("batch/v1", "Job", &format!("web-{}", at.as_second() / 60))
        .namespace("shop")
        .with(
            "/metadata/ownerReferences",
            json!([{"apiVersion": "batch/v1", "kind": "CronJob", "name": "web", "controller": true,
                "uid": "uid-cronjob-web"}]),
        )
        .with(
            "/metadata/annotations",
            json!({"batch.kubernetes.io/cronjob-scheduled-timestamp": due}),
        )
        .status(json!({"startTime": due, "completionTime": completed, "conditions": conditions}))
}

fn at(objects: impl IntoIterator<Item = Builder>, now: &str) -> Step {
    step_at(&CRON_JOBS, objects, now)
}

/// What a step does, as verbs and names.
fn actions(step: &Step) -> Vec<(&'static str, &str)> {
    let actions = step.actions.iter();
    actions.map(|action| (action.verb.into(), action.target.name.as_str())).collect()
}

#[test]
fn a_job_is_made_when_it_is_due_and_once() {
    let early = at([cron_job(&json!({}))], "2025-12-31T23:59:59Z");
    assert_eq!((actions(&early), early.verdict), (vec![], Verdict::Done));
    assert_eq!(early.wake_at, Some("2026-01-01T00:00:00Z".parse().unwrap()));

    let due = at([cron_job(&json!({}))], "2026-01-01T00:00:02Z");
    assert_eq!(actions(&due), [("Start", "web-29453760")]);
    let Write::Create { object, .. } = &due.actions[0].write else { panic!("{:?}", due.actions) };
    let metadata = &object["metadata"];
    assert_eq!(
        metadata["annotations"],
        json!({"team": "shop",
            "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T00:00:00Z"})
    );
    assert_eq!(metadata["labels"], json!({"app": "web"}));
    assert_eq!(metadata["ownerReferences"][0]["kind"], json!("CronJob"));
    assert_eq!((&object["kind"], &object["spec"]["parallelism"]), (&json!("Job"), &json!(2)));
    assert_eq!(due.status.unwrap()["lastScheduleTime"], json!("2026-01-01T00:00:00Z"));

    // The status was not written; the Job itself says that it was made.
    let again =
        at([cron_job(&json!({})), job("2026-01-01T00:00:00Z", None)], "2026-01-01T00:00:03Z");
    assert_eq!(actions(&again), []);
    assert_eq!(again.status.unwrap()["active"][0]["name"], json!("web-29453760"));
}

#[test]
fn of_missed_times_only_the_last_is_made_up_for() {
    let step = at([cron_job(&json!({}))], "2026-01-01T01:02:00Z");
    assert_eq!(actions(&step), [("Start", "web-29453820")]);
    let late = cron_job(&json!({"startingDeadlineSeconds": 60}));
    let step = at([late], "2026-01-01T01:02:00Z");
    assert_eq!(actions(&step), [], "two minutes late, and one is allowed");
    let just = cron_job(&json!({"startingDeadlineSeconds": 120}));
    assert_eq!(actions(&at([just], "2026-01-01T01:02:00Z")), [("Start", "web-29453820")]);
}

#[test]
fn the_schedule_is_in_its_zone() {
    let spec = json!({"schedule": "30 1 * * *", "timeZone": "Asia/Tokyo"});
    let step = at([cron_job(&spec)], "2026-01-01T16:30:00Z");
    let Write::Create { object, .. } = &step.actions[0].write else { panic!("{:?}", step.actions) };
    let stamp = "batch.kubernetes.io/cronjob-scheduled-timestamp";
    assert_eq!(object["metadata"]["annotations"][stamp], json!("2026-01-02T01:30:00+09:00"));
    for (field, spec) in [
        ("spec.timeZone", json!({"timeZone": "Mars/Olympus"})),
        ("spec.schedule", json!({"schedule": "soon"})),
        ("spec.concurrencyPolicy", json!({"concurrencyPolicy": "Maybe"})),
    ] {
        let step = at([cron_job(&spec)], NOW);
        assert_eq!(step.verdict, Verdict::Invalid);
        assert!(holds(&step)[0].1.contains(field), "{:?}", holds(&step));
    }
}

#[test]
fn a_job_that_runs_is_in_the_way_or_goes_as_the_policy_says() {
    let running = || job("2026-01-01T00:00:00Z", None);
    let with = |policy: &str| cron_job(&json!({"concurrencyPolicy": policy}));
    let now = "2026-01-01T00:05:01Z";
    let allow = at([with("Allow"), running()], now);
    assert_eq!(actions(&allow), [("Start", "web-29453765")]);
    let forbid = at([with("Forbid"), running()], now);
    assert_eq!(actions(&forbid), []);
    let expected = "1 of 1 slots of concurrencyPolicy in use by web-29453760";
    assert!(holds(&forbid).contains(&(String::new(), expected.to_owned())), "{:?}", forbid.holds);
    let replace = at([with("Replace"), running()], now);
    assert_eq!(actions(&replace), [("Remove", "web-29453760"), ("Start", "web-29453765")]);
    assert_eq!(replace.status.unwrap().get("active"), None);
}

#[test]
fn a_suspended_one_makes_nothing_and_catches_up_later() {
    let step = at([cron_job(&json!({"suspend": true}))], "2026-01-01T00:05:01Z");
    assert_eq!((actions(&step), step.verdict, step.wake_at), (vec![], Verdict::Paused, None));
    assert_eq!(holds(&step).len(), 1);
}

#[test]
fn the_oldest_ended_jobs_go_and_the_last_success_is_recorded() {
    let ended = |minute: u32, end: &str| job(&format!("2026-01-01T00:{minute:02}:00Z"), Some(end));
    let limits = json!({"successfulJobsHistoryLimit": 2, "suspend": true});
    let jobs = [ended(0, "Complete"), ended(5, "Complete"), ended(10, "Complete")];
    let failed = [ended(15, "Failed"), ended(20, "Failed")];
    let recorded = json!({"active": [{"name": "web-29453770"}, {"name": "web-1"}]});
    let all = [cron_job(&limits).status(recorded)].into_iter().chain(jobs).chain(failed);
    let step = at(all, "2026-01-01T00:30:00Z");
    assert_eq!(actions(&step), [("Delete", "web-29453760"), ("Delete", "web-29453775")]);
    let told: Vec<&str> = step.events.iter().map(|event| event.message.as_str()).collect();
    assert_eq!(
        told,
        [
            "Active job went missing: web-1",
            "Saw completed job: web-29453770, condition: Complete",
            "Deleted job web-29453760",
            "Deleted job web-29453775",
        ]
    );
    let status = step.status.unwrap();
    assert_eq!(status["lastSuccessfulTime"], json!("2026-01-01T00:10:00Z"));
    assert_eq!(
        (status.get("active"), &status["lastScheduleTime"]),
        (None, &json!("2026-01-01T00:20:00Z"))
    );
}

#[test]
fn one_that_is_being_deleted_makes_nothing() {
    let gone = cron_job(&json!({})).with("/metadata/deletionTimestamp", json!(NOW));
    let ended: Vec<Builder> = (0..5)
        .map(|minute| job(&format!("2026-01-01T00:0{minute}:00Z"), Some("Complete")))
        .collect();
    let step = at([gone].into_iter().chain(ended), "2026-01-01T02:00:00Z");
    assert_eq!(actions(&step), []);
}
