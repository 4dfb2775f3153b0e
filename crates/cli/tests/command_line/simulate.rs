//! What `convoy simulate` says about rollouts, as golden files, and how it ends.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::binary::{self, Run};

const POLICY: &str = "examples/skyhook-policy.yaml";
const CHECKOUT: &str = "docs/guides/rehearse/checkout.yaml";
const SLOW: &str = "docs/guides/rehearse/slow.yaml";

fn simulate(arguments: &[&str]) -> Run {
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut words = vec!["simulate", "--now", "2026-01-01T00:00:00Z"];
    words.extend(arguments);
    binary::run_in(&root, &words)
}

fn golden(name: &str, run: &Run, code: i32) {
    assert_eq!((run.code, run.stderr.as_str()), (Some(code), ""), "{}", run.stdout);
    let file = format!("{}/tests/golden/simulate/{name}", env!("CARGO_MANIFEST_DIR"));
    expectorate::assert_contents(file, &run.stdout);
}

#[test]
fn a_deployment_comes_up() {
    golden("deployment.txt", &simulate(&["-f", CHECKOUT, "--scenario", SLOW, "--seeds", "3"]), 0);
}

#[test]
fn a_skyhook_goes_through_its_compartments() {
    golden("skyhook.txt", &simulate(&["-f", POLICY, "--scenario", SLOW, "--seeds", "3"]), 0);
}

#[test]
fn a_deployment_in_the_middle_of_an_update_goes_on_from_there() {
    let run = binary::run_in(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."),
        &["simulate", "--now", "2026-01-01T00:05:00Z", "-f", "examples/apps.yaml", "--seeds", "1"],
    );
    golden("update.txt", &run, 0);
}

#[test]
fn a_package_that_fails_gets_stuck_where_the_policy_stops_it() {
    let broken = "docs/guides/rehearse/broken.yaml";
    golden("stuck.txt", &simulate(&["-f", POLICY, "--scenario", broken, "--seeds", "2"]), 1);
}

#[test]
fn waves_are_drawn() {
    let run = simulate(&["-f", POLICY, "--scenario", SLOW, "--seeds", "1", "-o", "svg"]);
    golden("waves.svg", &run, 0);
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let run = || simulate(&["-f", POLICY, "--seeds", "2", "--seed", "9", "-o", "json"]).stdout;
    let first = run();
    assert_eq!(first, run());
    let outlook: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(outlook["courses"][0]["ending"], "Done");
    assert_eq!(outlook["courses"][1]["seed"], 10);
    let groups = outlook["rollouts"][0]["groups"].as_array().unwrap();
    for group in groups {
        assert!(group["peakInFlight"].as_u64() <= group["ceiling"].as_u64(), "{group}");
    }
}

#[test]
fn a_simulation_of_some_time_shows_how_far_it_comes() {
    let run = simulate(&["-f", POLICY, "--scenario", SLOW, "--until", "1m", "-o", "json"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let outlook: Value = serde_json::from_str(&run.stdout).unwrap();
    let course = &outlook["courses"][0];
    assert_eq!(course["ending"], "TimeUp");
    let rollout = &course["rollouts"][0];
    assert!(rollout["done"].as_u64() < rollout["members"].as_u64(), "{rollout}");
    assert!(course["tookSeconds"].as_f64() <= Some(60.0));
}

#[test]
fn plan_until_done_is_the_short_form() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let plan = ["plan", "-f", POLICY, "--now", "2026-01-01T00:00:00Z", "--until", "done"];
    let run = binary::run_in(&root, &plan);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert!(run.stdout.starts_with("Skyhook tuning: done after "), "{}", run.stdout);
}

#[test]
fn what_cannot_be_simulated_is_said() {
    let run = simulate(&["-f", "examples/fleet.yaml"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("member clusters"), "{}", run.stderr);
    let run = simulate(&["-f", SLOW]);
    assert_eq!(run.code, Some(2));
}
