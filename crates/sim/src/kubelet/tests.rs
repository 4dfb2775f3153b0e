//! The story of a pod, instant by instant, with latencies of whole seconds.

use serde_json::json;

use super::*;

fn at(millis: i64) -> Timestamp {
    after("2026-01-01T00:00:00Z".parse().unwrap(), SignedDuration::from_millis(millis))
}

/// Pull 1 s, start 1 s, ready 1 s, stop 2 s, init 1 s: everything on the second.
fn scenario(more: &str) -> Scenario {
    let latencies = "latencies: {pull: 1s, start: 1s, ready: 1s, stop: 2s, init: 1s}";
    Scenario::from_yaml(&format!("{latencies}\n{more}")).unwrap()
}

fn pod() -> Value {
    json!({"metadata": {"name": "web", "namespace": "shop", "uid": "u1"},
        "spec": {"nodeName": "node-1", "restartPolicy": "Always",
            "containers": [{"name": "c", "image": "nginx:1"}]},
        "status": {"phase": "Pending"}})
}

/// What there is to say about a pod at an instant.
struct Report {
    status: Value,
    is_over: bool,
    next: Option<Timestamp>,
    reboots: Option<SignedDuration>,
}

fn report(
    scenario: &Scenario,
    pod: &Value,
    lifetime: &Lifetime,
    addresses: &Addresses,
    now: Timestamp,
) -> Report {
    let progress = progress(scenario, pod, &Value::Null, lifetime, now);
    let status = progress.status(pod, lifetime, addresses, now);
    let Progress { is_over, next, reboots, .. } = progress;
    Report { status, is_over, next, reboots }
}

fn report_at(
    scenario: &Scenario,
    pod: &Value,
    ending: Option<Timestamp>,
    now: Timestamp,
) -> Report {
    let lifetime = Lifetime { begun: at(0), ending, reboots: Vec::new() };
    let addresses = Addresses { host: "172.16.0.1".to_owned(), pod: "10.0.0.1".to_owned() };
    report(scenario, pod, &lifetime, &addresses, now)
}

fn condition<'r>(report: &'r Report, kind: &str) -> &'r Value {
    let conditions = report.status["conditions"].as_array().unwrap();
    conditions.iter().find(|condition| condition["type"] == kind).unwrap()
}

/// What a kubelet would write from one report to the next until `until`: phase, state, ready,
/// restarts, each with its second.
fn story(scenario: &Scenario, pod: &Value, until: i64) -> Vec<String> {
    let mut told = Vec::new();
    let mut now = at(0);
    loop {
        let report = report_at(scenario, pod, None, now);
        let container = &report.status["containerStatuses"][0];
        let (state, detail) = container["state"].as_object().unwrap().iter().next().unwrap();
        let reason = detail["reason"].as_str().unwrap_or(state);
        let phase = report.status["phase"].as_str().unwrap();
        let ready = condition(&report, "Ready")["status"] == "True";
        let restarts = &container["restartCount"];
        let second = now.duration_since(at(0)).as_secs();
        told.push(format!("{second}s {phase} {reason} ready={ready} restarts={restarts}"));
        match report.next {
            Some(next) if next <= at(until * 1_000) => now = next,
            _ => return told,
        }
    }
}

#[test]
fn a_pod_starts_and_becomes_ready() {
    assert_eq!(
        story(&scenario(""), &pod(), 1_000),
        [
            "0s Pending ContainerCreating ready=false restarts=0",
            "1s Pending ContainerCreating ready=false restarts=0",
            "2s Running running ready=false restarts=0",
            "3s Running running ready=true restarts=0",
        ]
    );
}

#[test]
fn a_readiness_probe_begins_after_its_delay() {
    let mut pod = pod();
    pod["spec"]["containers"][0]["readinessProbe"] = json!({"initialDelaySeconds": 20});
    assert_eq!(
        story(&scenario(""), &pod, 1_000)[2..],
        ["2s Running running ready=false restarts=0", "23s Running running ready=true restarts=0",]
    );
}

#[test]
fn a_pod_fails_that_runs_for_longer_than_it_may() {
    let mut pod = pod();
    pod["spec"]["activeDeadlineSeconds"] = json!(5);
    let told = story(&scenario(""), &pod, 1_000);
    assert_eq!(told.last().unwrap(), "5s Failed Error ready=false restarts=0");
    let report = report_at(&scenario(""), &pod, None, at(60_000));
    assert_eq!(report.status["reason"], "DeadlineExceeded");
    assert_eq!(report.status["containerStatuses"][0]["state"]["terminated"]["exitCode"], 137);
    assert_eq!(report.next, None);
    // The kubelet wrote when it began, perhaps before this process did.
    pod["status"]["startTime"] = json!("2025-12-31T23:59:57Z");
    assert_eq!(report_at(&scenario(""), &pod, None, at(1_000)).next, Some(at(2_000)));
    let ended = scenario("rules: [{when: {image: 'nginx:*'}, then: {completes: 1s}}]");
    pod["spec"]["restartPolicy"] = json!("Never");
    pod["spec"]["activeDeadlineSeconds"] = json!(60);
    let report = report_at(&ended, &pod, None, at(600_000));
    assert_eq!(
        (&report.status["phase"], &report.status["reason"]),
        (&json!("Succeeded"), &Value::Null)
    );
}

#[test]
fn containers_behind_init_containers_wait_for_them() {
    let mut pod = pod();
    pod["spec"]["initContainers"] = json!([{"name": "i", "image": "init:1"}]);
    let told = story(&scenario(""), &pod, 1_000);
    let mut waits = told.iter().filter(|line| line.contains("Pending"));
    assert!(waits.clone().count() > 1, "{told:?}");
    assert!(waits.all(|line| line.contains("PodInitializing")), "{told:?}");
}

#[test]
fn a_crash_loop_backs_off() {
    let scenario = scenario("rules: [{when: {image: 'nginx:*'}, then: {fails: crash, after: 1s}}]");
    assert_eq!(
        story(&scenario, &pod(), 42)[2..],
        [
            "2s Running running ready=false restarts=0",
            "3s Running Error ready=false restarts=0",
            "4s Running running ready=false restarts=1",
            "5s Running CrashLoopBackOff ready=false restarts=1",
            "16s Running running ready=false restarts=2",
            "17s Running CrashLoopBackOff ready=false restarts=2",
            "38s Running running ready=false restarts=3",
            "39s Running CrashLoopBackOff ready=false restarts=3",
        ]
    );
    let waiting = report_at(&scenario, &pod(), None, at(6_000));
    let container = &waiting.status["containerStatuses"][0];
    assert_eq!(
        container["state"]["waiting"]["message"],
        "back-off 10s restarting failed container=c pod=web_shop(u1)"
    );
    assert_eq!(container["lastState"]["terminated"]["exitCode"], 1);
}

#[test]
fn a_crash_that_happens_twice_is_survived() {
    let scenario = scenario("rules: [{when: {}, then: {fails: crash, times: 1}}]");
    let told = story(&scenario, &pod(), 1_000);
    assert_eq!(told.last().unwrap(), "5s Running running ready=true restarts=1");
}

#[test]
fn an_image_that_cannot_be_pulled_backs_off() {
    let scenario = scenario("rules: [{when: {}, then: {fails: image-pull-error, times: 2}}]");
    assert_eq!(
        story(&scenario, &pod(), 1_000)[1..],
        [
            "1s Pending ErrImagePull ready=false restarts=0",
            "3s Pending ImagePullBackOff ready=false restarts=0",
            "11s Pending ImagePullBackOff ready=false restarts=0",
            "12s Pending ErrImagePull ready=false restarts=0",
            "14s Pending ImagePullBackOff ready=false restarts=0",
            "32s Pending ImagePullBackOff ready=false restarts=0",
            "33s Pending ContainerCreating ready=false restarts=0",
            "34s Running running ready=false restarts=0",
            "35s Running running ready=true restarts=0",
        ]
    );
}

#[test]
fn never_ready_means_running_without_end() {
    let scenario = scenario("rules: [{when: {labels: {}}, then: {fails: never-ready}}]");
    let told = story(&scenario, &pod(), 100_000);
    assert_eq!(told.last().unwrap(), "2s Running running ready=false restarts=0");
    let report = report_at(&scenario, &pod(), None, at(9_000));
    let ready = condition(&report, "Ready");
    assert_eq!(ready["reason"], "ContainersNotReady");
    assert_eq!(ready["message"], "containers with unready status: [c]");
}

#[test]
fn completions_end_a_pod_by_its_restart_policy() {
    let complete = scenario("rules: [{when: {}, then: {completes: 5s}}]");
    let crash = scenario("rules: [{when: {}, then: {fails: crash, after: 5s, exitCode: 3}}]");
    let cases = [
        (&complete, "Never", "7s Succeeded Completed ready=false restarts=0"),
        (&complete, "OnFailure", "7s Succeeded Completed ready=false restarts=0"),
        (&complete, "Always", "7s Running Completed ready=false restarts=0"),
        (&crash, "Never", "7s Failed Error ready=false restarts=0"),
        (&crash, "OnFailure", "7s Running Error ready=false restarts=0"),
    ];
    for (scenario, policy, expected) in cases {
        let mut pod = pod();
        pod["spec"]["restartPolicy"] = json!(policy);
        assert_eq!(story(scenario, &pod, 7).last().unwrap(), expected, "{policy}");
    }
}

#[test]
fn init_containers_run_one_after_the_other() {
    let mut pod = pod();
    pod["spec"]["initContainers"] = json!([
        {"name": "i1", "image": "setup:1"},
        {"name": "side", "image": "proxy:1", "restartPolicy": "Always"},
        {"name": "i2", "image": "setup:1"},
    ]);
    let scenario = scenario("");
    let early = report_at(&scenario, &pod, None, at(2_500));
    assert_eq!(early.status["phase"], "Pending");
    assert_eq!(condition(&early, "Initialized")["reason"], "ContainersNotInitialized");
    assert_eq!(
        early.status["initContainerStatuses"][0]["state"]["running"],
        json!({"startedAt": "2026-01-01T00:00:02Z"})
    );
    assert_eq!(
        early.status["containerStatuses"][0]["state"]["waiting"]["reason"],
        "PodInitializing"
    );
    // Whatever it takes to get ready elsewhere: one of these is ready when it is done.
    let slow = self::scenario("rules: [{when: {container: i1}, then: {init: 5s}}]");
    let running = report_at(&slow, &pod, None, at(4_000));
    assert_eq!(running.status["initContainerStatuses"][0]["ready"], false);
    assert_eq!(running.next, Some(at(7_000)));
    // i1 ends at 3 s, the sidecar runs from 5 s, i2 ends at 8 s, the container runs from 10 s.
    let late = report_at(&scenario, &pod, None, at(11_000));
    assert_eq!(late.status["phase"], "Running");
    assert_eq!(condition(&late, "Ready")["status"], "True");
    assert_eq!(
        late.status["initContainerStatuses"][0]["state"]["terminated"]["reason"],
        "Completed"
    );
    assert!(late.status["initContainerStatuses"][1]["state"]["running"].is_object());
    let failing = self::scenario("rules: [{when: {image: 'setup:*'}, then: {fails: crash}}]");
    pod["spec"]["restartPolicy"] = json!("Never");
    let failed = report_at(&failing, &pod, None, at(5_000));
    assert_eq!((failed.status["phase"].as_str(), failed.next), (Some("Failed"), None));
}

#[test]
fn a_pod_that_is_asked_to_end_stops_and_is_over() {
    let mut pod = pod();
    pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    let scenario = scenario("");
    let stopping = report_at(&scenario, &pod, Some(at(60_000)), at(61_000));
    assert!(!stopping.is_over);
    assert_eq!(
        (stopping.status["phase"].as_str(), stopping.next),
        (Some("Running"), Some(at(62_000)))
    );
    let over = report_at(&scenario, &pod, Some(at(60_000)), at(62_000));
    assert!(over.is_over);
    assert_eq!(over.status["containerStatuses"][0]["state"]["terminated"]["exitCode"], 0);
    assert_eq!(condition(&over, "Ready")["status"], "False");
    pod["metadata"]["deletionGracePeriodSeconds"] = json!(1);
    let killed = report_at(&scenario, &pod, Some(at(60_000)), at(61_000));
    assert_eq!(killed.status["containerStatuses"][0]["state"]["terminated"]["exitCode"], 137);
}

#[test]
fn a_reboot_starts_every_container_again() {
    let scenario = scenario("");
    let lifetime = Lifetime { begun: at(0), ending: None, reboots: vec![at(60_000)] };
    let report = report(&scenario, &pod(), &lifetime, &Addresses::default(), at(70_000));
    assert_eq!(report.status["containerStatuses"][0]["restartCount"], 1);
    assert_eq!(report.status["containerStatuses"][0]["ready"], true);
}

#[test]
fn a_report_on_what_was_reported_says_the_same() {
    let scenario = scenario("");
    let mut pod = pod();
    for millis in [0, 1_000, 2_000, 3_000] {
        pod["status"] = report_at(&scenario, &pod, None, at(millis)).status;
    }
    let later = report_at(&scenario, &pod, None, at(900_000));
    assert_eq!((&later.status, later.next), (&pod["status"], None));
}

#[test]
fn a_container_takes_its_machine_down_once() {
    let scenario = scenario("rules: [{when: {container: setup}, then: {reboots: 5s}}]");
    let mut pod = pod();
    pod["spec"]["initContainers"] = json!([{"name": "setup", "image": "setup:1"}]);
    let running = report_at(&scenario, &pod, None, at(2_000));
    assert_eq!((running.next, running.reboots), (Some(at(3_000)), None));
    let down = report_at(&scenario, &pod, None, at(3_000));
    assert_eq!((down.next, down.reboots), (None, Some(SignedDuration::from_secs(5))));
    let lifetime = Lifetime { begun: at(0), ending: None, reboots: vec![at(8_000)] };
    let back = |seconds: i64| {
        let now = at(seconds * 1_000);
        report(&scenario, &pod, &lifetime, &Addresses::default(), now)
    };
    assert_eq!(back(8).status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"], 255);
    let again = back(10);
    assert_eq!((again.next, again.reboots), (Some(at(11_000)), None));
    assert_eq!(back(11).status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"], 0);
}

#[test]
fn instants_are_written_in_whole_seconds() {
    assert_eq!(stamp(at(1_999)), "2026-01-01T00:00:01Z");
}

#[test]
fn a_report_says_which_generation_it_is_about() {
    let scenario = scenario("");
    let mut pod = pod();
    assert_eq!(report_at(&scenario, &pod, None, at(0)).status.get("observedGeneration"), None);
    pod["metadata"]["generation"] = json!(3);
    let report = report_at(&scenario, &pod, None, at(0));
    assert_eq!(report.status["observedGeneration"], 3);
    assert_eq!(condition(&report, "Ready")["observedGeneration"], 3);
}

#[test]
fn an_ephemeral_container_runs_from_when_it_was_added() {
    let scenario = scenario("");
    let mut pod = pod();
    pod["spec"]["ephemeralContainers"] = json!([{"name": "debug", "image": "busybox"}]);
    let started = |report: &Report| {
        let status = &report.status["ephemeralContainerStatuses"][0];
        (status["name"].clone(), status["state"]["running"]["startedAt"].clone())
    };
    let first = report_at(&scenario, &pod, None, at(5_000));
    assert_eq!(started(&first), (json!("debug"), json!("2026-01-01T00:00:05Z")));
    pod["status"] = first.status;
    let later = report_at(&scenario, &pod, None, at(9_000));
    assert_eq!(started(&later), (json!("debug"), json!("2026-01-01T00:00:05Z")));
    pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    let over = report_at(&scenario, &pod, Some(at(10_000)), at(20_000));
    let state = &over.status["ephemeralContainerStatuses"][0]["state"];
    assert_eq!(state["terminated"]["startedAt"], "2026-01-01T00:00:05Z");
}
