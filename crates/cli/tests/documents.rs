//! What the documents show is what the binary does. Every fenced block of README.md and docs/ is run
//! by a test, or `documents/blocks.txt` says why not.
//!
//! Here every `$ convoy …` line in a console block is run from the top of the repository and must
//! print the lines below it, and every manifest and scenario must be accepted. Blocks that need a
//! server are pasted by the tests in `up/`.

#[path = "documents/blocks.rs"]
mod blocks;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use blocks::{Block, all, entries, root, run_by, transcripts};
use convoy_sim::scenario::Scenario;
use serde_json::Value;

/// How `blocks.txt` begins a reason.
const NOT_RUN: &str = "not run: ";

fn convoy(arguments: &[&str], stdin: &str) -> (String, Option<i32>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_convoy"))
        .args(arguments)
        .current_dir(root())
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    child.stdin.take().expect("piped").write_all(stdin.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    (String::from_utf8(output.stdout).expect("it prints text"), output.status.code())
}

/// Whether `file.rs::function` names a test.
fn is_a_test(name: &str) -> bool {
    let Some((file, function)) = name.split_once("::") else { return false };
    let path = root().join("crates/cli/tests").join(file);
    let Ok(text) = fs::read_to_string(path) else { return false };
    text.contains(&format!("#[test]\nfn {function}() {{"))
}

#[test]
fn every_block_is_run_by_a_test_or_has_a_reason() {
    let (blocks, entries) = (all(), entries());
    let mut problems = Vec::new();
    let mut used = BTreeSet::new();
    let (mut run, mut not_run) = (0, 0);
    for block in &blocks {
        let found = block.entries(&entries);
        let [entry] = found.as_slice() else {
            let first = block.body.lines().next().unwrap_or_default();
            problems.push(format!("{}: {} entries for {first:?}", block.place(), found.len()));
            continue;
        };
        used.insert((&entry.page, &entry.begins));
        *if entry.check.starts_with(NOT_RUN) { &mut not_run } else { &mut run } += 1;
    }
    for entry in &entries {
        let place = format!("blocks.txt, {:?}, {:?}", entry.page, entry.begins);
        if !used.contains(&(&entry.page, &entry.begins)) {
            problems.push(format!("{place}: there is no such block"));
        }
        let is_reason = entry.check.starts_with(NOT_RUN);
        let words = entry.check.split([' ', ',', ';', '(', ')']);
        let tests: Vec<&str> = words.filter(|word| word.contains(".rs::")).collect();
        if tests.is_empty() && !is_reason {
            problems.push(format!("{place}: {:?} is neither a test nor a reason", entry.check));
        }
        for test in tests.into_iter().filter(|test| !is_a_test(test)) {
            problems.push(format!("{place}: there is no test {test}"));
        }
    }
    eprintln!("{} blocks: {run} run by tests, {not_run} with a reason", blocks.len());
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

const CONSOLE: &str = "documents.rs::commands_in_the_documents_print_what_the_documents_show";

#[test]
fn commands_in_the_documents_print_what_the_documents_show() {
    let blocks = run_by(CONSOLE);
    assert!(!blocks.is_empty(), "the README shows at least one command");
    for block in blocks {
        for (command, expected) in transcripts(&block) {
            let place = format!("{}: $ {command}", block.place());
            let arguments = command.strip_prefix("convoy ");
            let arguments = arguments.unwrap_or_else(|| panic!("{place} needs a test of its own"));
            let arguments: Vec<&str> = arguments.split_whitespace().collect();
            let (printed, code) = convoy(&arguments, "");
            if expected.trim().is_empty() {
                assert_eq!(code, Some(0), "{place}\n{printed}"); // shown as something to type
            } else {
                assert_eq!(printed.trim_end(), expected.trim_end(), "{place}");
            }
        }
    }
}

fn is_listed_as_not_run(block: &Block) -> bool {
    let entries = entries();
    let found = block.entries(&entries);
    found.iter().any(|entry| entry.check.starts_with(NOT_RUN))
}

/// Also those that other tests apply.
#[test]
fn manifests_and_scenarios_in_the_documents_are_valid() {
    let blocks = all().into_iter().filter(|block| block.language == "yaml");
    for block in blocks.filter(|block| !is_listed_as_not_run(block)) {
        if block.body.contains("kind:") {
            let (printed, code) = convoy(&["validate", "-f", "-"], &block.body);
            assert_eq!(code, Some(0), "{}: {printed}", block.place());
        } else if let Err(error) = Scenario::from_yaml(&block.body) {
            panic!("{}: not a scenario: {error}", block.place());
        }
    }
}

/// The keys of an object, and of the objects in its first list.
fn keys(value: &Value) -> Vec<String> {
    let object = value.as_object().expect("an object");
    let below = object.values().filter_map(|value| value.as_array()?.first()?.as_object());
    let below = below.flat_map(|object| object.keys().cloned());
    object.keys().cloned().chain(below).collect()
}

const JSON: &str = "documents.rs::json_in_the_reference_is_what_the_commands_print";

#[test]
fn json_in_the_reference_is_what_the_commands_print() {
    let pool = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: default}\nspec:\n  \
        disruption: {budgets: [{nodes: 101%}]}\n  template: {spec: {requirements: [], nodeClassRef: \
        {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}\n";
    let nothing = "{apiVersion: v1, kind: Pod, metadata: {name: of-no-rollout}}\n";
    let now = ["--now", "2026-01-01T00:00:00Z"];
    let printed = |arguments: &[&str], stdin: &str| -> Value {
        let (printed, _) = convoy(&[arguments, &["-f", "-", "-o", "json"]].concat(), stdin);
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
    };
    for block in run_by(JSON) {
        let shown: Value = serde_json::from_str(&block.body)
            .unwrap_or_else(|error| panic!("{}: {error}", block.place()));
        match block.page.as_str() {
            "docs/reference/plan.md" => {
                assert_eq!(shown, printed(&[&["plan"], now.as_slice()].concat(), nothing));
            }
            _ => assert_eq!(keys(&shown), keys(&printed(&["validate"], pool)), "{}", block.place()),
        }
    }
}

/// They take minutes, so they are not run; the tasks, tests and benches that they name are there.
#[test]
fn cargo_commands_in_the_documents_name_what_there_is() {
    let tasks = fs::read_to_string(root().join("xtask/src/main.rs")).expect("readable");
    let mut seen = 0;
    for block in all().into_iter().filter(|block| block.language == "sh") {
        for line in block.body.lines().filter(|line| line.contains("cargo ")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let after = |word: &str| {
                let position = words.iter().position(|one| *one == word)?;
                words.get(position + 1).copied()
            };
            let place = format!("{}: {line}", block.place());
            if let Some(task) = after("xtask") {
                let variant = task[..1].to_uppercase() + &task[1..];
                assert!(tasks.contains(&variant), "{place}: no task {task}");
            }
            let package = after("-p").map(|name| name.trim_start_matches("convoy-"));
            let package = package.map(|name| if name == "convoy" { "cli" } else { name });
            for (flag, folder) in [("--bench", "benches"), ("--test", "tests")] {
                let Some((name, package)) = after(flag).zip(package) else { continue };
                let path = format!("crates/{package}/{folder}/{name}.rs");
                assert!(root().join(&path).exists(), "{place}: no {path}");
            }
            seen += 1;
        }
    }
    assert!(seen > 10, "only {seen} commands were found");
}
