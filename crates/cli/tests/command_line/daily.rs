//! What the daily commands say about the examples of each dialect, as golden files, and how they
//! end.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::binary::{self, Run};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Runs a command on the objects of an example.
fn run(example: &str, now: &str, arguments: &str) -> Run {
    let file = format!("examples/{example}.yaml");
    let mut words: Vec<&str> = arguments.split(' ').collect();
    words.extend(["-f", &file, "--now", now]);
    binary::run_in(&root(), &words)
}

/// Runs commands one after the other and compares what they print with a golden file.
fn transcript(example: &str, now: &str, commands: &[&str]) {
    let mut text = String::new();
    for arguments in commands {
        let run = run(example, now, arguments);
        assert_eq!(run.stderr, "", "{arguments}");
        assert_eq!(run.code, Some(0), "{arguments}");
        writeln!(text, "$ convoy {arguments} -f examples/{example}.yaml\n{}", run.stdout).unwrap();
    }
    let golden = format!("{}/tests/golden/daily/{example}.txt", env!("CARGO_MANIFEST_DIR"));
    expectorate::assert_contents(golden, &text);
}

const START: &str = "2026-01-01T00:00:00Z";

#[test]
fn the_daily_commands_on_skyhooks() {
    transcript(
        "skyhook-policy",
        START,
        &[
            "get",
            "get -o wide",
            "get -o name",
            "get -o json",
            "status tuning",
            "status skyhook/tuning -o wide",
            "why",
            "why node staging-9",
            "why node staging-9 -o json",
            "history tuning",
        ],
    );
}

#[test]
fn the_daily_commands_on_placements_of_a_fleet() {
    transcript(
        "fleet",
        START,
        &[
            "get",
            "get -o yaml",
            "status crp/shop",
            "status crpe drain-eu-2",
            "why shop",
            "why cluster eu-2",
            "history shop",
        ],
    );
}

/// The binding of a cluster says which object could not be applied, and in which words the cluster
/// refused it.
#[test]
fn a_placement_that_cannot_be_applied_is_explained_with_the_error() {
    let example = std::fs::read_to_string(root().join("examples/fleet.yaml")).unwrap();
    let (before, rest) = example.split_once("type: Available, status: \"False\"").unwrap();
    let (_, after) = rest.split_once('\n').unwrap();
    let conflict = "Apply failed with 1 conflict: conflict with \\\"helm\\\": .spec.replicas";
    let failed = format!(
        "type: Applied, status: \"False\", reason: NotAllWorkHaveBeenApplied, \
         message: 1 of 1 Works, observedGeneration: 2}}
  failedPlacements:
  - group: apps
    version: v1
    kind: Deployment
    namespace: shop
    name: front
    condition: {{type: Applied, status: \"False\", reason: FailedToApply, message: \"{conflict}\"}}
"
    );
    let applied = "  - {type: Applied, status: \"True\"";
    let (start, line) = before.rsplit_once(applied).unwrap();
    let (_, end) = line.split_once('\n').unwrap();
    let directory = tempfile::tempdir().unwrap();
    let text = format!("{start}{end}{failed}{after}");
    std::fs::write(directory.path().join("fleet.yaml"), text).unwrap();
    let words = ["why", "shop", "-f", "fleet.yaml", "--now", START];
    let run = binary::run_in(directory.path(), &words);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let cause = "Applied is False/NotAllWorkHaveBeenApplied: 1 of 1 Works; Deployment shop/front: \
                 Apply failed with 1 conflict: conflict with \"helm\": .spec.replicas";
    assert!(run.stdout.contains(cause), "{}", run.stdout);
}

#[test]
fn the_daily_commands_on_deployments() {
    let now = "2026-01-01T00:05:00Z";
    transcript(
        "apps",
        now,
        &[
            "get",
            "get -n shop",
            "status deploy web",
            "why web",
            "why pod web-v2-4kx7z",
            "history web",
        ],
    );
}

#[test]
fn the_daily_commands_on_node_pools() {
    transcript(
        "karpenter",
        "2026-01-05T10:00:00Z",
        &[
            "get",
            "status nodepool/general",
            "why",
            "why node node-d",
            "why node node-a",
            "why node node-c",
            "history general",
        ],
    );
}

#[test]
fn the_daily_commands_on_placements_of_a_hub() {
    transcript(
        "ocm",
        "2026-01-01T12:00:00Z",
        &[
            "get",
            "get mwrs",
            "status till",
            "status placement/stores",
            "why till",
            "why cluster rome",
            "history till",
        ],
    );
}

#[test]
fn a_timeout_without_a_watch_is_refused() {
    let run = run("skyhook-policy", START, "status tuning --timeout 5s");
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert_eq!(run.stderr, "error: --timeout is how long --watch waits, and needs it\n");
}

#[test]
fn what_is_not_found_ends_with_1() {
    for (arguments, complaint) in [
        (
            "status absent",
            "error: rollout \"absent\" not found; `convoy get -A` lists all rollouts\n",
        ),
        ("status deploy/tuning", "error: deploy \"tuning\" not found;"),
        ("status pod/tuning", "error: unknown kind \"pod\"; kinds of rollouts: skyhook,"),
        ("why node absent", "error: node \"absent\" not found\n"),
        ("why absent", "error: member \"absent\" not found\n"),
        ("history absent", "error: rollout \"absent\" not found;"),
        ("get skyhook/absent", "error: skyhook \"absent\" not found;"),
    ] {
        let run = run("skyhook-policy", START, arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{arguments}");
        assert!(run.stderr.starts_with(complaint), "{arguments}: {}", run.stderr);
    }
}

#[test]
fn a_namespace_narrows_the_list() {
    let run = run("apps", START, "get -n elsewhere");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""));
    assert_eq!(run.stderr, "No rollouts found in namespace elsewhere or of cluster scope.\n");
}

#[test]
fn wrong_usage_of_daily_commands_ends_with_2() {
    for arguments in ["status", "status a b c", "get -o text", "pause", "get -A -n a"] {
        let run = run("apps", START, arguments);
        assert_eq!(run.code, Some(2), "{arguments}: {}", run.stderr);
    }
}

#[test]
fn a_cluster_that_cannot_be_reached_ends_with_1() {
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = directory.path().join("kubeconfig");
    let server = "https://127.0.0.1:1";
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{name: c, cluster: {{server: {server:?}, insecure-skip-tls-verify: true}}}}]\n\
         users: [{{name: u, user: {{}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
    );
    std::fs::write(&kubeconfig, text).unwrap();
    let path = kubeconfig.to_str().unwrap();
    for (arguments, code) in
        [(["get", "-A"], 1), (["pause", "web"], 1), (["plan", "-A"], 2), (["why", "-A"], 1)]
    {
        let arguments = [&arguments[..], &["--kubeconfig", path]].concat();
        let run = binary::run_in(directory.path(), &arguments);
        assert_eq!(run.code, Some(code), "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.starts_with("error: could not read the cluster"), "{}", run.stderr);
    }
    let absent = ["get", "--kubeconfig", path, "--context", "absent"];
    let run = binary::run_in(directory.path(), &absent);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
}
