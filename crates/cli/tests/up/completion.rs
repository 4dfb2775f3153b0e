//! Completion with the names that a server has, as shells and kubectl ask for it.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::access::split;
use crate::daily::{apply, rollouts_of_all_dialects, web};
use crate::home::{CONVOY, define};
use crate::running::{Running, command};

/// A server with rollouts of two dialects, which nobody acts on.
fn server(directory: &Path) -> Running {
    let running = Running::start_as(command(&directory.join("data")).arg("--controllers=none"));
    define(&running, "skyhook");
    apply(&running, &rollouts_of_all_dialects()[0]);
    running.kubectl("create namespace shop");
    let mut other = web("example/web:1");
    other["metadata"]["namespace"] = json!("shop");
    apply(&running, &other);
    for (kind, name) in [("Node", "n1"), ("Node", "n2"), ("Pod", "p1")] {
        let spec = match kind {
            "Pod" => json!({"containers": [{"name": "c", "image": "example/c"}]}),
            _ => json!({}),
        };
        let metadata = json!({"name": name});
        apply(
            &running,
            &json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}),
        );
    }
    running
        .kubectl("config set-context other --cluster=convoy --user=convoy-admin --namespace=shop");
    running
}

/// The words, without their meanings, and the directive.
fn words(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let words: Vec<&str> =
        text.lines().map(|line| line.split('\t').next().unwrap_or_default()).collect();
    words.join(" ")
}

#[test]
fn names_of_rollouts_and_members_complete_command_lines() {
    let directory = tempfile::tempdir().unwrap();
    let running = server(directory.path());
    let offered = |line: &str| {
        let mut command = Command::new(CONVOY);
        command.arg("__complete").args(line.split(' ')).env("KUBECONFIG", &running.kubeconfig);
        words(&mut command)
    };
    for (line, expected) in [
        ("status ", "tuning :4"),
        ("pause --reason why t", "tuning :4"),
        ("status -n shop ", "tuning web :4"),
        ("status -A ", "tuning web :4"),
        ("status --context other ", "tuning web :4"),
        ("get --context=other deploy/", "deploy/web :4"),
        ("history deployment ", ":4"),
        ("history -n shop deployment ", "web :4"),
        ("get -n s", "shop :4"),
        ("get --context o", "other :4"),
        ("why node ", "n1 n2 :4"),
        ("why pod ", "p1 :4"),
        ("why pod -n shop ", ":4"),
        ("why --as nobody node ", ":4"),
        ("status --kubeconfig /nowhere ", ":4"),
    ] {
        assert_eq!(offered(line), expected, "{line:?}");
    }
    kubectl_completes_its_plugin(directory.path(), &running);
}

/// kubectl asks `kubectl_complete-convoy` for the words after `kubectl convoy`.
fn kubectl_completes_its_plugin(directory: &Path, running: &Running) {
    for name in ["kubectl-convoy", "kubectl_complete-convoy"] {
        std::os::unix::fs::symlink(CONVOY, directory.join(name)).unwrap();
    }
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap_or_default());
    let completed = |line: &str| {
        let mut kubectl = running.kubectl_command("__complete convoy");
        words(kubectl.args(split(line)).arg("").env("PATH", &path))
    };
    assert_eq!(completed("status"), "tuning :4");
    assert_eq!(completed("why node"), "n1 n2 :4");
}
