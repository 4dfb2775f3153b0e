//! What `convoy plan` and `convoy validate` say about the examples, as golden files.

use std::path::{Path, PathBuf};

use crate::binary;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// `examples/*.yaml`, by name.
fn examples() -> Vec<String> {
    let entries = std::fs::read_dir(root().join("examples")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let manifests = paths.filter(|path| path.extension().is_some_and(|ending| ending == "yaml"));
    let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut names: Vec<String> = manifests.map(name).collect();
    names.sort();
    names
}

/// The instant that an example is about, which its first lines give as `--now TIME`.
fn now(example: &str) -> String {
    let text = std::fs::read_to_string(root().join(example)).unwrap();
    let time = text.split_once("--now ").and_then(|(_, rest)| rest.split_whitespace().next());
    time.unwrap_or("2026-01-01T00:00:00Z").to_owned()
}

#[test]
fn every_example_is_planned_in_the_words_of_its_golden_file() {
    for name in examples() {
        let file = format!("examples/{name}");
        let arguments = ["plan", "--check", "-f", &file, "--now", &now(&file)];
        let run = binary::run_in(&root(), &arguments);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{name}: {}", run.stdout);
        let golden = name.replace(".yaml", ".txt");
        let golden = format!("{}/tests/golden/text/{golden}", env!("CARGO_MANIFEST_DIR"));
        expectorate::assert_contents(golden, &run.stdout);
    }
}

#[test]
fn every_example_is_valid() {
    let run = binary::run_in(&root(), &["validate", "-f", "examples"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}", run.stdout);
}

#[test]
fn the_three_formats_say_the_same() {
    for name in examples() {
        let file = format!("examples/{name}");
        let plan = |format: &str| {
            let arguments = ["plan", "-f", &file, "--now", &now(&file), "-o", format];
            binary::run_in(&root(), &arguments).stdout
        };
        let json: serde_json::Value = serde_json::from_str(&plan("json")).unwrap();
        let yaml: serde_json::Value = serde_saphyr::from_str(&plan("yaml")).unwrap();
        assert_eq!(json, yaml, "{name}");
        for rollout in json["rollouts"].as_array().unwrap() {
            let name = rollout["object"]["name"].as_str().unwrap();
            assert!(plan("text").contains(name), "{name}");
        }
    }
}
