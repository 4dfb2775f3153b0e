//! What the flags of `convoy up` do, from the command line.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::running::{Running, command};

fn written(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, text).unwrap();
    path
}

/// What `convoy up` says with flags that it refuses.
fn refused(flags: &[&str]) -> String {
    let data = tempfile::tempdir().unwrap();
    let output = command(data.path()).args(flags).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{flags:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn tokens_of_a_file_are_known() {
    let directory = tempfile::tempdir().unwrap();
    let tokens = written(directory.path(), "tokens", "sesame,ada,1,\"devs,ops\"\n");
    let running =
        Running::start_in(directory.path(), &["--token-auth-file", tokens.to_str().unwrap()]);
    let authority = directory.path().join("pki/ca.crt");
    let with = |token: &str, question: &str| {
        let server =
            format!("--server={} --certificate-authority={}", running.url, authority.display());
        running
            .try_kubectl(&format!("--kubeconfig=/dev/null {server} --token={token} {question}"), "")
    };
    let who = with(
        "sesame",
        "auth whoami -o jsonpath={.status.userInfo.username}/{.status.userInfo.groups}",
    );
    let who = String::from_utf8_lossy(&who.stdout).into_owned();
    assert_eq!(who, r#"ada/["devs","ops","system:authenticated"]"#);
    let complaint = |token: &str| {
        let output = with(token, "get configmaps");
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(complaint("sesame").contains("User \"ada\" cannot list resource \"configmaps\""));
    assert!(complaint("guessed").contains("Unauthorized"));
    running.kubectl("create rolebinding devs --clusterrole=view --group=devs");
    assert!(with("sesame", "get configmaps").status.success());
    let broken = written(directory.path(), "broken", "sesame\n");
    let said = refused(&["--token-auth-file", broken.to_str().unwrap()]);
    assert!(
        said.contains("broken") && said.contains("line 1") && !said.contains("sesame"),
        "{said}"
    );
}

#[test]
fn everything_may_be_allowed_for_tests() {
    let directory = tempfile::tempdir().unwrap();
    let running = Running::start_in(directory.path(), &["--authorization", "always-allow"]);
    running.kubectl("get secrets -A --as=bob");
    assert_eq!(running.kubectl("auth can-i delete nodes --as=bob"), "yes\n");
    drop(running);
    let running = Running::start_in(directory.path(), &["--authorization", "rbac"]);
    running.refused("get secrets -A --as=bob", "");
    assert!(refused(&["--authorization", "none"]).contains("always-allow"));
}

#[test]
fn requests_are_logged_as_the_policy_says() {
    let directory = tempfile::tempdir().unwrap();
    let policy = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: RequestResponse, verbs: [create], resources: [{group: '', resources: [configmaps]}]}
- {level: None}
";
    let policy = written(directory.path(), "policy.yaml", policy);
    let log = directory.path().join("audit.log");
    let flags = ["--audit-log", log.to_str().unwrap(), "--audit-policy", policy.to_str().unwrap()];
    let mut running = Running::start_in(directory.path(), &flags);
    running
        .kubectl("create configmap noted --from-literal=a=b --as=root --as-group=system:masters");
    running.kubectl("get configmaps");
    let metrics = running.kubectl("get --raw /metrics");
    assert!(metrics.contains("apiserver_audit_event_total 1\n"), "{metrics}");
    assert_eq!(running.end("TERM"), Some(0));
    let text = fs::read_to_string(&log).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 1, "{text}");
    assert_eq!(lines[0]["user"]["username"], "convoy-admin");
    assert_eq!(lines[0]["impersonatedUser"]["username"], "root");
    assert_eq!(lines[0]["requestObject"]["data"]["a"], "b");
    assert_eq!(lines[0]["responseStatus"]["code"], 201);
    assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
    // Without a policy every request is a line, and lines are added to those that are there.
    let mut running = Running::start_in(directory.path(), &flags[..2]);
    running.kubectl("get configmaps");
    assert_eq!(running.end("TERM"), Some(0));
    assert!(fs::read_to_string(&log).unwrap().lines().count() > 2);
    let said = refused(&["--audit-policy", policy.to_str().unwrap()]);
    assert!(said.contains("--audit-log"), "{said}");
    let odd = written(directory.path(), "odd.yaml", "kind: Policy\nrules: [{level: Loud}]\n");
    let said =
        refused(&["--audit-log", log.to_str().unwrap(), "--audit-policy", odd.to_str().unwrap()]);
    assert!(said.contains("odd.yaml"), "{said}");
}

#[test]
fn durability_is_relaxed_only_aloud() {
    for (mode, signal) in [("interval:20ms", "KILL"), ("none", "TERM"), ("sync", "KILL")] {
        let directory = tempfile::tempdir().unwrap();
        let said = fs::File::create(directory.path().join("said")).unwrap();
        let mut up = command(directory.path());
        let mut running = Running::start_as(up.args(["--durability", mode]).stderr(said));
        running.kubectl("create configmap kept");
        std::thread::sleep(Duration::from_millis(300));
        running.end(signal);
        let said = fs::read_to_string(directory.path().join("said")).unwrap();
        assert_eq!(said.contains("can lose acknowledged writes"), mode != "sync", "{said}");
        let again = Running::start_in(directory.path(), &[]);
        again.kubectl("get configmap kept");
    }
    assert!(
        refused(&["--durability", "fast"]).contains("expected sync, interval:DURATION or none")
    );
}

#[test]
fn member_clusters_that_cannot_be_told_apart_are_refused() {
    let said = refused(&["--member-names", "a,b", "--member-nodes", "1,2,3"]);
    assert!(said.contains("3 numbers for 2 member clusters"), "{said}");
    let said = refused(&["--member-names", "hub", "--context", "hub", "--context-prefix="]);
    assert!(said.contains("the same context"), "{said}");
    assert!(refused(&["--member-names", "a,a"]).contains("twice"));
}
