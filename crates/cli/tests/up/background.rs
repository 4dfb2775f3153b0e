//! `convoy up --detach` and `convoy down`.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::access::Access;
use crate::home::CONVOY;

const SKYHOOK: &str = "apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata: {name: tuning}
spec:
  nodeSelectors: {matchLabels: {kubernetes.io/os: linux}}
  packages: {tuning: {version: 1.0.0, image: example/tuning}}
";

fn convoy(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(CONVOY).args(arguments).current_dir(directory).output().unwrap()
}

/// Ends a server that a failed assertion left behind.
struct Down<'d>(&'d Path, &'d str);

impl Drop for Down<'_> {
    fn drop(&mut self) {
        drop(convoy(self.0, &["down", "--data-dir", self.1]));
    }
}

#[test]
fn a_server_in_the_background_is_ready_at_once_and_ends_when_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let _end = Down(path, "cluster");
    let up = ["up", "--data-dir", "cluster", "--listen=127.0.0.1:0", "--nodes=2", "-o=json"];
    let up = [up.as_slice(), &["--detach"]].concat();
    let access = || {
        let started = convoy(path, &up);
        assert!(started.status.success(), "{started:?}");
        let ready: Value = serde_json::from_slice(&started.stdout).unwrap();
        let kubeconfig = Path::new(ready["kubeconfig"].as_str().unwrap()).to_owned();
        assert!(kubeconfig.is_absolute(), "{ready}");
        Access::new(kubeconfig)
    };
    let first = access();
    // Nothing is installed by hand, nothing is waited for.
    first.kubectl_with("apply -f -", SKYHOOK);
    first.kubectl("wait --for=condition=Ready skyhook/tuning --timeout=120s");
    let again = convoy(path, &up);
    assert_eq!(again.status.code(), Some(2));
    let told = String::from_utf8(again.stderr).unwrap();
    assert!(told.contains("in use"), "its own error is shown: {told}");

    let down = || String::from_utf8(convoy(path, &["down", "--data-dir", "cluster"]).stdout);
    let stopped = down().unwrap();
    assert!(stopped.starts_with("stopped the server in cluster (process "), "{stopped}");
    assert_eq!(down().unwrap(), "no server runs in cluster\n");
    assert!(path.join("cluster/convoy.log").exists());
    let second = access();
    assert_eq!(second.kubectl("get skyhooks -o name"), "skyhook.skyhook.nvidia.com/tuning\n");
}

#[test]
fn a_server_in_memory_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let mut up = Command::new(CONVOY);
    up.args(["up", "--ephemeral", "--listen=127.0.0.1:0", "-o=json", "--detach"]);
    let started = up.env("TMPDIR", path).output().unwrap();
    let ready: Value = serde_json::from_slice(&started.stdout).unwrap();
    let own = Path::new(ready["kubeconfig"].as_str().unwrap()).parent().unwrap();
    let _end = Down(path, own.to_str().unwrap());
    assert!(own.starts_with(path), "{ready}");
    assert_eq!(ready["dataDir"].as_str(), own.to_str());
    let stopped = convoy(path, &["down", "--data-dir", own.to_str().unwrap()]);
    assert!(stopped.status.success(), "{stopped:?}");
    assert_eq!(std::fs::read_dir(path).unwrap().count(), 0);
    let nowhere = convoy(path, &["down", "--data-dir", "nowhere"]);
    assert!(!nowhere.status.success(), "a wrong name is not taken for a server that has ended");
}

#[test]
fn a_server_that_waits_has_ready_nodes_and_members_and_says_how_to_stop_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let _end = Down(path, "hub");
    let up = ["up", "--data-dir", "hub", "--listen=127.0.0.1:0", "--nodes=2", "--members=2"];
    let started = convoy(path, &[up.as_slice(), &["--detach", "--wait"]].concat());
    let said = String::from_utf8(started.stdout).unwrap();
    let access = Access::new(path.join("hub/admin.kubeconfig"));
    // At once: a script does not poll.
    let is_true = |what: &str, condition: &str| {
        let status = format!("{{.items[*].status.conditions[?(@.type==\"{condition}\")].status}}");
        access.kubectl(&format!("get {what} -o 'jsonpath={status}'"))
    };
    assert_eq!(is_true("nodes", "Ready"), "True True");
    assert_eq!(is_true("memberclusters", "Joined"), "True True");
    assert_eq!(is_true("managedclusters", "ManagedClusterConditionAvailable"), "True True");
    let down = format!("To stop it: convoy down --data-dir {}", path.join("hub").display());
    assert_eq!(said.lines().last(), Some(down.as_str()), "{said}");
}
