//! What can be read, and the locations that objects are said to come from.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::{Run, run_in, run_with};

fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    directory
}

fn validated(directory: &Path, arguments: &[&str]) -> (Run, Value) {
    let arguments: Vec<&str> =
        ["validate", "-o", "json"].into_iter().chain(arguments.iter().copied()).collect();
    let run = run_in(directory, &arguments);
    let json = serde_json::from_str(&run.stdout).unwrap();
    (run, json)
}

/// `file:line: message` of each error, the column left out.
fn errors(report: &Value) -> Vec<String> {
    let found = report["findings"].as_array().unwrap();
    let errors = found.iter().filter(|found| found["severity"] == "error");
    let line = |found: &Value| {
        let (file, message) = (found["file"].as_str().unwrap(), found["message"].as_str().unwrap());
        match found["line"].as_u64() {
            Some(line) => format!("{file}:{line}: {message}"),
            None => format!("{file}: {message}"),
        }
    };
    errors.map(line).collect()
}

fn node(name: &str) -> String {
    format!("apiVersion: v1\nkind: Node\nmetadata:\n  name: {name}\n")
}

fn node_json(name: &str) -> String {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}).to_string()
}

#[test]
fn directories_are_read_in_order_and_every_file_once() {
    let files = directory(&[
        ("b.yaml", &node("b")),
        ("a/z.yml", &node("z")),
        ("a/y.json", &node_json("y")),
        ("notes.txt", "not: [yaml"),
    ]);
    let (run, report) = validated(files.path(), &["-f", ".", "-f", "b.yaml", "-f", "a"]);
    assert_eq!((run.code, &report["objects"]), (Some(0), &json!(3)));
}

#[test]
fn globs_match_files_and_directories() {
    let files = directory(&[("x1.yaml", &node("a")), ("x2/b.yaml", &node("b"))]);
    let (run, report) = validated(files.path(), &["-f", "x*"]);
    assert_eq!((run.code, &report["objects"]), (Some(0), &json!(2)));
    let (run, report) = validated(files.path(), &["-f", "y*", "-f", "x1.yaml"]);
    assert_eq!((run.code, &report["objects"]), (Some(2), &json!(1)));
    assert_eq!(errors(&report), ["y*: no file matches this glob"]);
}

#[test]
fn links_in_circles_end() {
    let files = directory(&[("a/b.yaml", &node("b"))]);
    std::os::unix::fs::symlink("..", files.path().join("a/up")).unwrap();
    std::os::unix::fs::symlink("loop", files.path().join("loop")).unwrap();
    let (run, report) = validated(files.path(), &["-f", "."]);
    assert_eq!((run.code, &report["objects"]), (Some(0), &json!(1)));
}

#[test]
fn what_is_not_there_hides_nothing() {
    let files = directory(&[("a.yaml", &node("a"))]);
    std::os::unix::fs::symlink("nowhere", files.path().join("b.yaml")).unwrap();
    let (run, report) = validated(files.path(), &["-f", "missing.yaml", "-f", "."]);
    assert_eq!((run.code, &report["objects"]), (Some(2), &json!(1)));
    let errors = errors(&report);
    assert!(errors[0].starts_with("./b.yaml: could not be read: No such file"), "{errors:?}");
    assert!(errors[1].starts_with("missing.yaml: could not be read: No such file"), "{errors:?}");
}

#[test]
fn lists_are_taken_apart_and_items_know_their_lines() {
    let yaml = "\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: a}
- kind: List
  apiVersion: v1
  items:
  - {apiVersion: v1, kind: Node, metadata: {name: b}}
  - {apiVersion: v1, kind: Node, metadata: {name: a}, spec: {unschedulable: true}}
---
kind: NodeList
apiVersion: v1
items:
- metadata: {name: c}
- metadata: {name: b, labels: {x: z}}
";
    let json = "{\"kind\": \"List\", \"apiVersion\": \"v1\", \"items\": [\n{\"kind\": \"NodeList\", \
        \"apiVersion\": \"v1\", \"items\": [\n\n{\"metadata\": {\"name\": \"c\", \"uid\": \"1\"}}, {}]}]}\n{\"kind\": 3}";
    let files = directory(&[("a.yaml", yaml), ("b.json", json)]);
    let (run, report) = validated(files.path(), &["-f", "a.yaml", "-f", "b.json"]);
    assert_eq!((run.code, &report["objects"]), (Some(2), &json!(3)));
    assert_eq!(
        errors(&report),
        [
            "a.yaml:11: duplicate object Node/a, first defined at a.yaml:4 with another spec",
            "a.yaml:17: duplicate object Node/b, first defined at a.yaml:10 with another metadata.labels",
            "b.json:4: duplicate object Node/c, first defined at a.yaml:16 with another metadata.uid",
            "b.json:4: not a Kubernetes object: metadata.name: required",
            "b.json:5: not a Kubernetes object: apiVersion: required",
        ]
    );
}

#[test]
fn a_bad_document_hides_no_other() {
    let yaml = format!(
        "{}---\na: b: c\n---\n- 1\n---\nx: 1\nx: 2\n---\n{{\"a\": [}}\n---\n{}---\nfoo\n",
        node("a"),
        node("b")
    );
    let files = directory(&[("a.yaml", &yaml)]);
    let (run, report) = validated(files.path(), &["-f", "a.yaml"]);
    assert_eq!((run.code, &report["objects"]), (Some(2), &json!(2)));
    let errors = errors(&report);
    let lines: Vec<&str> = errors.iter().map(|error| error.split(": ").next().unwrap()).collect();
    assert_eq!(
        lines,
        ["a.yaml:6", "a.yaml:8", "a.yaml:11", "a.yaml:13", "a.yaml:20"],
        "{errors:?}"
    );
}

#[test]
fn json_documents_may_follow_each_other_in_any_way() {
    let (a, b, c, d) = (node_json("a"), node_json("b"), node_json("c"), node("d"));
    let text = format!("{a}{b}\n---\n{c}\n---\n{d}");
    let run = run_with(text.as_bytes(), &["validate", "-f", "-"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.ends_with("4 objects read: no problems found\n"), "{run:?}");
}

#[test]
fn brackets_in_a_yaml_file_may_be_yaml() {
    let text = "{\"apiVersion\": v1, \"kind\": Node, \"metadata\": {\"name\": a,}} # so\n";
    let files = directory(&[("a.yaml", text), ("b.json", text)]);
    let (run, report) = validated(files.path(), &["-f", "a.yaml"]);
    assert_eq!((run.code, &report["objects"]), (Some(0), &json!(1)));
    let (run, _) = validated(files.path(), &["-f", "b.json"]);
    assert_eq!(run.code, Some(2));
}

#[test]
fn standard_input_is_read_once() {
    let run = run_with(node("a").as_bytes(), &["validate", "-f", "-", "-f", "-"]);
    assert!(run.stdout.ends_with("1 object read: no problems found\n"), "{run:?}");
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    use std::process::Stdio;
    let mut child = crate::binary::convoy()
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
fn colour_is_for_terminals_and_for_those_who_ask() {
    let coloured = |variable: Option<&str>| {
        let mut command = crate::binary::convoy();
        command.args(["validate", "-f", "missing.yaml"]).env_remove("NO_COLOR");
        if let Some(variable) = variable {
            command.env(variable, "1");
        }
        command.output().unwrap().stdout.contains(&0x1b)
    };
    assert!(!coloured(None));
    assert!(!coloured(Some("NO_COLOR")));
    assert!(coloured(Some("CLICOLOR_FORCE")));
}

#[test]
fn only_the_dialects_asked_for_are_planned() {
    let run = run_with(
        node("n1").as_bytes(),
        &["plan", "-f", "-", "--dialect", "apps,ocm", "-o", "json"],
    );
    assert_eq!(run.code, Some(0), "{run:?}");
}
