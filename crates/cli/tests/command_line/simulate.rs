//! What `convoy simulate` says about rollouts, as golden files, and how it ends.

mod hub;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::binary::{self, Run};

const POLICY: &str = "examples/skyhook-policy.yaml";
const CHECKOUT: &str = "docs/guides/rehearse/checkout.yaml";
const SLOW: &str = "docs/guides/rehearse/slow.yaml";

const FLEET: &str = "docs/guides/rehearse/fleet.yaml";
const GROUPS: &str = "docs/guides/rehearse/groups.yaml";

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
fn policies_are_compared() {
    let faster = "docs/guides/rehearse/faster.yaml";
    let run = simulate(&["-f", POLICY, "--scenario", SLOW, "--seeds", "3", "--diff", faster]);
    golden("diff.txt", &run, 0);
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
    let run = simulate(&["-f", SLOW]);
    assert_eq!(run.code, Some(2));
    let unknown = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}";
    let placed = std::fs::read_to_string("../../docs/guides/rehearse/fleet.yaml").unwrap();
    let run = simulate_text(&format!("{placed}---\n{unknown}\n"), &[]);
    assert_eq!(run.code, Some(2));
    let told = "the API server would refuse example.com/Widget/a: its kind is not defined";
    assert!(run.stderr.contains(told), "{}", run.stderr);
}

#[test]
fn a_placement_on_member_clusters() {
    golden("fleet.txt", &simulate(&["-f", FLEET, "--scenario", SLOW, "--seeds", "2"]), 0);
}

#[test]
fn decision_groups_of_managed_clusters() {
    golden("ocm.txt", &simulate(&["-f", GROUPS, "--scenario", SLOW, "--seeds", "2"]), 0);
}

/// A member that cannot be reached holds up the placement, and is named.
#[test]
fn a_member_that_is_offline_is_waited_for() {
    let scenario = "latencies: {pull: 5s}
memberClusterEvents: [{cluster: shop-3, at: 2s, event: offline}]";
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("scenario.yaml");
    std::fs::write(&file, scenario).unwrap();
    let run = simulate(&["-f", FLEET, "--seeds", "1", "--scenario", file.to_str().unwrap()]);
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    assert!(run.stdout.contains("7 of 8 done"), "{}", run.stdout);
    assert!(run.stdout.contains("shop-3"), "{}", run.stdout);
}

/// Without member clusters among the objects, some are invented, with the scenario's labels.
#[test]
fn member_clusters_are_invented() {
    let manifests = "
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: shop}
spec:
  resourceSelectors: [{group: \"\", version: v1, kind: Namespace, name: shop}]
  policy: {placementType: PickAll}
";
    let run = simulate_text(manifests, &[]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    let machines = "4 member clusters (none given) with 12 nodes";
    assert!(run.stdout.contains(machines), "{}", run.stdout);
}

/// A simulation of manifests that are in no file of the repository.
fn simulate_text(manifests: &str, arguments: &[&str]) -> Run {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("objects.yaml");
    std::fs::write(&file, manifests).unwrap();
    let mut words = vec!["-f", file.to_str().unwrap(), "--seeds", "1"];
    words.extend(arguments);
    simulate(&words)
}

#[test]
fn a_drain_that_a_budget_blocks_is_stuck() {
    let manifests = "
apiVersion: v1
kind: Pod
metadata: {name: cart, labels: {app: cart}}
spec:
  nodeName: node-0
  containers: [{name: cart, image: 'example/cart:1'}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: cart}
spec: {minAvailable: 1, selector: {matchLabels: {app: cart}}}
---
apiVersion: skyhook.nvidia.com/v1alpha1
kind: DeploymentPolicy
metadata: {name: one-by-one}
spec:
  default: {budget: {count: 1}, strategy: {fixed: {initialBatch: 1}}}
---
apiVersion: skyhook.nvidia.com/v1alpha1
kind: Skyhook
metadata: {name: kernel}
spec:
  deploymentPolicy: one-by-one
  nodeSelectors: {matchLabels: {kubernetes.io/os: linux}}
  packages:
    kernel: {version: 1.0.0, image: example/kernel, interrupt: {type: reboot}}
";
    let run = simulate_text(manifests, &["--nodes", "4"]);
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    let why = "PodDisruptionBudget default/cart allows 0 disruptions";
    assert!(run.stdout.contains("gets stuck") && run.stdout.contains(why), "{}", run.stdout);
    let open = manifests.replace("minAvailable: 1", "minAvailable: 0");
    let run = simulate_text(&open, &["--nodes", "4"]);
    assert_eq!(run.code, Some(0), "{}", run.stdout);
}

#[test]
fn other_workloads_come_up() {
    let manifests = "
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: infra}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: 'example/agent:1'}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: 'example/db:1'}]}
";
    let run = simulate_text(manifests, &[]);
    assert_eq!(run.code, Some(0), "{}", run.stdout);
}
