//! What `--help` says, as golden files.

use std::path::Path;

use crate::binary;

fn golden(name: &str, arguments: &[&str]) {
    let run = binary::run_in(Path::new("."), arguments);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let file = format!("{}/tests/golden/help/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    expectorate::assert_contents(file, &run.stdout);
}

#[test]
fn help_of_the_whole() {
    golden("convoy", &["--help"]);
}

#[test]
fn help_of_plan() {
    golden("plan", &["plan", "--help"]);
}

#[test]
fn help_of_the_daily_commands() {
    for command in [
        "get", "status", "why", "history", "pause", "resume", "abort", "retry", "undo", "approve",
        "reset",
    ] {
        golden(command, &[command, "--help"]);
    }
}

#[test]
fn help_of_simulate_and_record() {
    golden("simulate", &["simulate", "--help"]);
    golden("record", &["record", "--help"]);
}

#[test]
fn help_of_validate() {
    golden("validate", &["validate", "--help"]);
}

#[test]
fn help_of_crds() {
    golden("crds", &["crds", "--help"]);
}

#[test]
fn help_of_migrate() {
    golden("migrate", &["migrate", "--help"]);
}

#[test]
fn help_of_up() {
    golden("up", &["up", "--help"]);
}

#[test]
fn help_of_demo() {
    golden("demo", &["demo", "--help"]);
}

#[test]
fn help_of_down() {
    golden("down", &["down", "--help"]);
}

#[test]
fn help_of_clusters() {
    golden("clusters", &["clusters", "--help"]);
    golden("clusters_create", &["clusters", "create", "--help"]);
}

#[test]
fn help_of_run() {
    golden("run", &["run", "--help"]);
}

#[test]
fn help_of_agent() {
    golden("agent", &["agent", "--help"]);
}

#[test]
fn help_of_fleet() {
    golden("fleet", &["fleet", "--help"]);
}

#[test]
fn help_of_completions() {
    golden("completions", &["completions", "--help"]);
}

#[test]
fn help_of_version() {
    golden("version", &["version", "--help"]);
}

#[test]
fn a_build_says_what_it_is() {
    let run = binary::run_in(Path::new("."), &["version", "-o", "json"]);
    let build: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(build["version"], env!("CARGO_PKG_VERSION"));
    assert!(build["kubernetesVersion"].as_str().unwrap().starts_with("v1."), "{build}");
    for name in ["commit", "profile", "platform"] {
        assert!(build[name].as_str().is_some_and(|word| !word.is_empty()), "{name}: {build}");
    }
    let text = binary::run_in(Path::new("."), &["version"]).stdout;
    assert!(text.starts_with(&format!("convoy {} (", env!("CARGO_PKG_VERSION"))), "{text}");
}

#[test]
fn wrong_usage_exits_with_2() {
    for arguments in [
        vec![],
        vec!["plan", "-f", "-", "--now", "yesterday"],
        vec!["plan", "-f", "-", "-o", "table"],
        vec!["plan", "-f", "-", "--dialect", "helm"],
        vec!["validat"],
    ] {
        let run = binary::run_in(Path::new("."), &arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}");
        assert!(run.stdout.is_empty() && !run.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn every_command_has_a_man_page() {
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path().join("man");
    let run = binary::run_in(directory.path(), &["man", pages.to_str().unwrap()]);
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""));
    let page = |name: &str| std::fs::read_to_string(pages.join(name)).unwrap();
    assert!(page("convoy-why.1").contains("convoy\\-why"), "{}", page("convoy-why.1"));
    for name in ["convoy.1", "convoy-up.1", "skyhook.1", "skyhook-node-reset.1"] {
        assert!(page(name).starts_with(".ie"), "{name}: {}", page(name));
    }
    assert!(!pages.join("convoy-man.1").exists(), "it is for those who package");
}

#[test]
fn help_of_kubectl_skyhook() {
    let directory = tempfile::tempdir().unwrap();
    for (name, words) in [
        ("kubectl-skyhook", &["--help"][..]),
        ("kubectl-skyhook_node_reset", &["node", "reset", "--help"]),
    ] {
        let program = directory.path().join("kubectl-skyhook");
        if !program.exists() {
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_convoy"), &program).unwrap();
        }
        let output = std::process::Command::new(&program)
            .args(words)
            .env("COLUMNS", "100")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let file = format!("{}/tests/golden/help/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        expectorate::assert_contents(file, &String::from_utf8(output.stdout).unwrap());
    }
}
