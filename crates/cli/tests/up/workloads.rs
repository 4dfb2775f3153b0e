//! What a home runs by itself: `convoy up` with its own controllers and simulated nodes, met with
//! stock kubectl.

use serde_json::Value;

use crate::running::Running;

/// A workload of three pods, or of one on every node.
fn manifest(kind: &str, extra: &str) -> String {
    format!(
        r#"{{"apiVersion": "apps/v1", "kind": "{kind}", "metadata": {{"name": "web"}}, "spec": {{{extra}
        "selector": {{"matchLabels": {{"app": "web"}}}}, "template": {{
            "metadata": {{"labels": {{"app": "web"}}}},
            "spec": {{"containers": [{{"name": "web", "image": "example/web:1"}}]}}}}}}}}"#
    )
}

fn apply(running: &Running, text: &str) {
    running.kubectl_with("apply -f -", text);
}

/// The images of the pods that stay.
fn images(running: &Running) -> Vec<String> {
    let pods: Value =
        serde_json::from_str(&running.kubectl("get pods -l app=web -o json")).unwrap();
    let staying = pods["items"].as_array().unwrap().iter();
    let staying = staying.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    staying.map(|pod| pod["spec"]["containers"][0]["image"].as_str().unwrap().to_owned()).collect()
}

/// Rolled out, changed, and back again.
fn rolls(running: &Running, kind: &str) {
    let name = format!("{kind}/web");
    let status = || running.kubectl(&format!("rollout status {name} --timeout=120s"));
    status();
    assert_eq!(images(running), ["example/web:1"; 3], "{kind}");
    running.kubectl(&format!("set image {name} web=example/web:2"));
    status();
    assert_eq!(images(running), ["example/web:2"; 3], "{kind}");
    let revisions = running.kubectl(&format!("rollout history {name}"));
    assert!(revisions.contains("\n1 ") && revisions.contains("\n2 "), "{revisions}");
    running.kubectl(&format!("rollout undo {name}"));
    status();
    assert_eq!(images(running), ["example/web:1"; 3], "{kind}");
    running.kubectl(&format!("delete {name} --cascade=foreground --timeout=60s"));
    assert_eq!(running.kubectl("get pods -l app=web -o name"), "", "{kind}");
}

#[test]
fn a_home_runs_workloads_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    let running = Running::start_in(directory.path(), &["--nodes", "3"]);
    running.kubectl("create deployment web --image example/web:1 --replicas 3");
    rolls(&running, "deployment");
    apply(&running, &manifest("DaemonSet", ""));
    rolls(&running, "daemonset");
    let claims = r#""replicas": 3, "serviceName": "web", "volumeClaimTemplates": [{"metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}],"#;
    apply(&running, &manifest("StatefulSet", claims));
    rolls(&running, "statefulset");
    let kept = running.kubectl("get pvc -o name");
    assert_eq!(kept.lines().count(), 3, "{kept}");
}

#[test]
fn jobs_run_to_their_end() {
    let directory = tempfile::tempdir().unwrap();
    let running = Running::start_in(directory.path(), &["--nodes", "2", "--controllers", "all"]);
    let text = r#"{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work"}, "spec": {
        "completions": 3, "parallelism": 2, "completionMode": "Indexed", "template": {
            "spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "example/a"}]}}}}"#;
    apply(&running, text);
    running.kubectl("wait --for=condition=complete job/work --timeout=60s");
    let status =
        running.kubectl("get job work -o jsonpath={.status.succeeded}/{.status.completedIndexes}");
    assert_eq!(status, "3/0-2");
    running.kubectl("delete job work --timeout=60s");
    assert_eq!(running.kubectl("get pods -o name"), "");
}

/// Every hour; the missed hours of its past are made up for by one Job.
#[test]
fn cron_jobs_make_jobs() {
    let directory = tempfile::tempdir().unwrap();
    let running = Running::start_in(directory.path(), &["--nodes", "2"]);
    let text = r#"{"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "report"}, "spec": {
        "schedule": "0 * * * *", "jobTemplate": {"spec": {"template": {
            "spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "example/a"}]}}}}}}"#;
    apply(&running, text);
    let past = r#"{"status":{"lastScheduleTime":"2020-01-01T00:00:00Z"}}"#;
    running.kubectl(&format!("patch cronjob report --subresource=status --type=merge -p {past}"));
    let succeeded = "--for=jsonpath={.status.lastSuccessfulTime} --timeout=60s";
    running.kubectl(&format!("wait cronjob/report {succeeded}"));
    let jobs = running.kubectl("get jobs -o name");
    assert_eq!(jobs.lines().count(), 1, "{jobs}");
    running.kubectl("create job by-hand --from=cronjob/report");
    running.kubectl("wait --for=condition=complete job/by-hand --timeout=60s");
    running.kubectl("delete cronjob report --cascade=foreground --timeout=60s");
    assert_eq!(running.kubectl("get jobs,pods -o name"), "");
}

#[test]
fn replication_controllers_keep_their_pods() {
    let directory = tempfile::tempdir().unwrap();
    let running = Running::start_in(directory.path(), &["--nodes", "2"]);
    let text = r#"{"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "web"}, "spec": {
        "replicas": 2, "selector": {"app": "web"}, "template": {"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "a", "image": "example/web:1"}]}}}}"#;
    apply(&running, text);
    let ready = |count: u32| {
        let reached = format!("--for=jsonpath={{.status.readyReplicas}}={count} --timeout=60s");
        running.kubectl(&format!("wait rc/web {reached}"));
    };
    ready(2);
    running.kubectl("scale rc web --replicas 3");
    ready(3);
    running.kubectl("delete rc web --cascade=orphan --timeout=60s");
    assert_eq!(running.kubectl("get pods -l app=web -o name").lines().count(), 3);
    apply(&running, text);
    ready(2);
    running.kubectl("delete rc web --cascade=foreground --timeout=60s");
    assert_eq!(running.kubectl("get pods -o name"), "");
}
