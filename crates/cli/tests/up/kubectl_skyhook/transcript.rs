//! What `kubectl skyhook` prints and exits with, as a golden file, on a server where nobody acts on
//! Skyhooks. The same calls were made with upstream's plugin; where it prints something else, the
//! difference is in `docs/reference/cli.md`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use convoy_kubernetes::free_ports;
use serde_json::{Value, json};

use super::link;
use crate::access::split;
use crate::running::{Running, command};

const GROUP: &str = "skyhook.nvidia.com";

/// Calls in this order, each with what is typed when it asks.
const CALLS: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "--version",
            "version",
            "version --client-only",
            "version --timeout soon",
            "frobnicate",
            "paus",
            "node lst",
        ],
    ),
    (
        "",
        &[
            "pause",
            "pause a b",
            "pause nosuch -y",
            "pause complete --nosuch",
            "pause complete -z",
            "pause complete -o xml -y",
            "pause complete --dry-run=client",
            "pause complete --dry-run",
            "pause complete",
            "pause old -y",
            "disable old -y",
            "pause unwritten -y",
            "resume complete -y",
            "disable complete -y",
            "enable complete --confirm",
        ],
    ),
    ("yes\n", &["pause complete"]),
    ("y\n", &["pause complete", "resume complete"]),
    (
        "",
        &[
            "node list",
            "node list --skyhook=",
            "node list --skyhook complete",
            "node list --skyhook broken -o wide",
            "node list --skyhook broken -o json",
            "node list --skyhook broken -o yaml",
            "node list --skyhook nosuch",
            "node list --skyhook nosuch -o json",
            "node status",
            "node status -o wide",
            "node status bad-0 -o json",
            "node status done-.* -o yaml --skyhook complete",
            "node status nosuch",
            "node status wait-0",
            "node status nosuch -o json",
            "node status torn-0 -v",
            "node status [",
        ],
    ),
    (
        "",
        &[
            "package status",
            "package status tuning",
            "package status tuning --skyhook nosuch",
            "package status nosuch --skyhook complete",
            "package status tuning --skyhook complete",
            "package status bad --skyhook broken -o wide",
            "package status bad --skyhook broken -o json",
            "package status bad --skyhook broken -o yaml --node bad-0",
            "package logs bad --skyhook broken",
            "package logs bad --skyhook broken --stage never",
        ],
    ),
    (
        "",
        &[
            "package rerun tuning",
            "package rerun nosuch --skyhook complete --node done-0",
            "package rerun tuning --skyhook complete --node nosuch",
            "package rerun tuning --skyhook complete --node done-0 --stage never",
            "package rerun tuning --skyhook complete --node done-0 --dry-run",
            "package rerun tuning --skyhook complete --node done-0",
            "package rerun tuning --skyhook complete --node done-0 --node nosuch --stage config -y",
            "package rerun bad --skyhook broken --node bad-.* -y",
            "package rerun bad --skyhook broken --node bad-.* -y",
        ],
    ),
    (
        "",
        &[
            "node reset",
            "node reset bad-0",
            "node reset nosuch --skyhook broken",
            "node reset wait-0 --skyhook broken",
            "node reset bad-0 --skyhook broken --dry-run",
            "node reset bad-0 --skyhook broken",
            "node ignore nosuch",
            "node ignore bad-0 --dry-run",
            "node ignore bad-0 run-0",
            "node ignore bad-0 done-0",
            "node unignore done-.* run-0",
            "node ignore run-0 --as nobody",
        ],
    ),
    ("no\n", &["node reset bad-0 --skyhook broken"]),
    ("YES\n", &["node reset bad-0 --skyhook broken"]),
    (
        "",
        &[
            "dp reset nosuch",
            "dp reset waiting",
            "deployment-policy reset complete --dry-run",
            "dp reset complete",
            "dp reset complete --confirm",
            "reset nosuch",
            "reset complete --dry-run",
            "reset complete --dry-run --skip-batch-reset",
            "reset complete",
            "reset complete -y",
            "reset complete -y",
            "reset waiting -y",
            "reset running --skip-batch-reset -y",
        ],
    ),
    (
        "",
        &[
            "--context nosuch node status",
            "--kubeconfig /nosuch node status",
            "-s https://127.0.0.1:PORT node status",
            "-s https://127.0.0.1:PORT pause complete -y",
            "pause complete --as nobody -y",
            "--cluster nosuch node status",
            "--user nosuch node status",
            "completion fish",
            "completion zsh",
        ],
    ),
];

fn packages(all: &[(&str, &str, &str, &str, u32)]) -> Value {
    let entry = |(name, version, stage, state, restarts): &(&str, &str, &str, &str, u32)| {
        let mut entry = json!({"name": name, "version": version, "image": format!("example/{name}"),
            "stage": stage, "state": state});
        if *restarts > 0 {
            entry["restarts"] = json!(restarts);
        }
        (format!("{name}|{version}"), entry)
    };
    Value::Object(all.iter().map(entry).collect())
}

fn node(name: &str, skyhook: &str, state: Option<String>, status: &str) -> Value {
    let mut node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name,
        "annotations": {}, "labels": {}}});
    node["metadata"]["annotations"][format!("{GROUP}/status_{skyhook}")] = status.into();
    node["metadata"]["labels"][format!("{GROUP}/status_{skyhook}")] = status.into();
    if let Some(state) = state {
        node["metadata"]["annotations"][format!("{GROUP}/nodeState_{skyhook}")] = state.into();
    }
    node
}

fn nodes() -> Vec<Value> {
    let done = packages(&[
        ("tuning", "1.0.0", "config", "complete", 0),
        ("tuning-extra", "2.1", "config", "complete", 0),
    ]);
    let bad = packages(&[
        ("tuning", "1.0.0", "config", "complete", 0),
        ("bad", "3.0.0", "apply", "erroring", 4),
    ]);
    let run = packages(&[("slow", "2.0.0", "apply", "in_progress", 0)]);
    vec![
        node("bad-0", "broken", Some(bad.to_string()), "erroring"),
        node("bad-1", "broken", Some("{}".to_owned()), "waiting"),
        node("done-0", "complete", Some(done.to_string()), "complete"),
        node("done-1", "complete", Some(done.to_string()), "complete"),
        node("run-0", "running", Some(run.to_string()), "in_progress"),
        node("torn-0", "torn", Some("{\"a|1\"".to_owned()), "unknown"),
        node("wait-0", "running", None, "waiting"),
    ]
}

/// A Skyhook, with the version of the operator that wrote it and its batches.
fn skyhook(name: &str, packages: &[(&str, &str)], written_by: &str, batches: &Value) -> Value {
    let packages: serde_json::Map<String, Value> = packages
        .iter()
        .map(|(name, version)| {
            let package = json!({"version": version, "image": format!("example/{name}")});
            ((*name).to_owned(), package)
        })
        .collect();
    let mut object = json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "Skyhook",
        "metadata": {"name": name, "annotations": {}}, "spec": {
            "nodeSelectors": {"matchLabels": {"of": name}}, "packages": packages}});
    if !written_by.is_empty() {
        object["metadata"]["annotations"][format!("{GROUP}/version")] = written_by.into();
    }
    if !batches.is_null() {
        object["status"] = json!({"compartmentStatuses": {"__default__": {"matched": 2,
            "ceiling": 2, "inProgress": 0, "completed": 2, "progressPercent": 100,
            "batchState": batches}}});
    }
    object
}

fn skyhooks() -> Vec<Value> {
    let none = Value::Null;
    let done = json!({"currentBatch": 3, "completedNodes": 2, "failedNodes": 1});
    let tuning = [("tuning", "1.0.0")];
    vec![
        skyhook("complete", &[("tuning-extra", "2.1"), ("tuning", "1.0.0")], "v0.13.0", &done),
        skyhook("broken", &[("tuning", "1.0.0"), ("bad", "3.0.0")], "v0.13.0", &none),
        skyhook("running", &[("slow", "2.0.0")], "v0.13.0", &json!({"currentBatch": 1})),
        skyhook("waiting", &tuning, "v0.13.0", &none),
        skyhook("old", &tuning, "v0.7.1", &none),
        skyhook("unwritten", &tuning, "", &none),
    ]
}

/// A server with these nodes and Skyhooks, on which nothing moves.
fn frozen(directory: &Path) -> Running {
    let running = Running::start_as(command(&directory.join("data")).arg("--controllers=none"));
    let definitions = String::from_utf8(running.convoy("crds --dialect skyhook").stdout).unwrap();
    running.kubectl_with("apply --server-side -f -", &definitions);
    running.kubectl("wait --for=condition=Established crd --all");
    for object in nodes().into_iter().chain(skyhooks()) {
        running.kubectl_with("create -f -", &object.to_string());
        if object.get("status").is_some() {
            running.kubectl_with("replace --subresource=status -f -", &object.to_string());
        }
    }
    running
}

#[test]
fn calls_print_what_was_agreed_with_upstream() {
    let directory = tempfile::tempdir().unwrap();
    let running = frozen(directory.path());
    let plugin = link(directory.path(), "kubectl-skyhook");
    let [nobody] = free_ports().unwrap();
    let mut text = String::new();
    for (typed, calls) in CALLS {
        for call in *calls {
            let mut command = Command::new(&plugin);
            command.args(split(&call.replace("PORT", &nobody.to_string())));
            command.env("KUBECONFIG", &running.kubeconfig);
            let said = transcript(&mut command, typed).replace(&nobody.to_string(), "PORT");
            let typed = typed.trim_end();
            let typed = if typed.is_empty() { String::new() } else { format!("echo {typed} | ") };
            _ = writeln!(text, "$ {typed}kubectl skyhook {call}\n{said}");
        }
    }
    let golden = format!("{}/tests/golden/kubectl_skyhook.txt", env!("CARGO_MANIFEST_DIR"));
    expectorate::assert_contents(golden, &text);
}

/// What a call prints, lines of standard error marked, and its exit status unless it is 0.
fn transcript(command: &mut Command, typed: &str) -> String {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A call that asks nothing may be over before it is told anything.
    _ = child.stdin.take().unwrap().write_all(typed.as_bytes());
    let output = child.wait_with_output().unwrap();
    let mut text = String::from_utf8(output.stdout).unwrap();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push_str("(no newline)\n");
    }
    for line in String::from_utf8(output.stderr).unwrap().lines() {
        _ = writeln!(text, "! {line}");
    }
    if !output.status.success() {
        _ = writeln!(text, "(exit status {})", output.status.code().unwrap());
    }
    text
}

#[test]
fn a_server_without_skyhooks_is_told_from_a_missing_one() {
    let directory = tempfile::tempdir().unwrap();
    let mut up = command(&directory.path().join("data"));
    let running = Running::start_as(up.arg("--controllers=none"));
    let mut command = Command::new(link(directory.path(), "skyhook"));
    command.args(["pause", "x", "-y"]).env("KUBECONFIG", &running.kubeconfig);
    let words = "! getting skyhook \"x\": the server could not find the requested resource\n";
    assert_eq!(transcript(&mut command, ""), format!("{words}(exit status 1)\n"));
}

#[test]
fn names_of_objects_complete_command_lines() {
    let directory = tempfile::tempdir().unwrap();
    let running = frozen(directory.path());
    let offered = |program: &str, words: &[&str]| {
        let mut command = Command::new(link(directory.path(), program));
        let output = command.args(words).env("KUBECONFIG", &running.kubeconfig).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let words: Vec<&str> =
            text.lines().map(|line| line.split('\t').next().unwrap_or_default()).collect();
        words.join(" ")
    };
    let complete = |words: &[&str]| offered("skyhook", &[&["__complete"], words].concat());
    assert_eq!(complete(&["pause", ""]), "broken complete old running unwritten waiting :4");
    assert_eq!(complete(&["node", "list", "--skyhook", "o"]), "old :4");
    assert_eq!(complete(&["node", "reset", "bad"]), "bad-0 bad-1 :4");
    assert_eq!(complete(&["package", "logs", "--skyhook=broken", ""]), "bad tuning :4");
    assert_eq!(complete(&["package", "rerun", "a", "--stage", "p"]), "post-interrupt :4");
    assert_eq!(complete(&["no"]), "node :4");
    assert_eq!(complete(&["-s", "https://127.0.0.1:1", "pause", ""]), ":4");
    assert_eq!(offered("kubectl_complete-skyhook", &["dp", "reset", "c"]), "complete :4");
    bash_completes(directory.path(), &running);
}

/// The script of bash, as bash runs it.
fn bash_completes(directory: &Path, running: &Running) {
    let script = "eval \"$(skyhook completion bash)\"; COMP_WORDS=(skyhook pause un); \
                  COMP_LINE='skyhook pause un'; COMP_POINT=16; COMP_CWORD=2; _skyhook; echo \"${COMPREPLY[@]}\"";
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap_or_default());
    let mut bash = Command::new("bash");
    bash.args(["-c", script]).env("PATH", path).env("KUBECONFIG", &running.kubeconfig);
    let output = bash.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "unwritten\n", "{output:?}");
}
