//! `kubectl skyhook` through stock kubectl, against the embedded home.

mod transcript;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::skyhooks::policies::{packages, policy};
use crate::skyhooks::site::{APPLY, Site};
use crate::skyhooks::words::{annotation, node_state, word};

/// The binary under another name.
fn link(directory: &Path, name: &str) -> PathBuf {
    let link = directory.join(name);
    if !link.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_convoy"), &link).unwrap();
    }
    link
}

/// `kubectl skyhook`, with the binary under the plugin's name on the path.
pub(crate) struct Plugin<'h> {
    home: &'h Site,
    path: String,
}

impl<'h> Plugin<'h> {
    pub(crate) fn new(home: &'h Site) -> Self {
        let directory = home.path("plugins");
        std::fs::create_dir(&directory).unwrap();
        link(&directory, "kubectl-skyhook");
        let path = std::env::var("PATH").unwrap_or_default();
        Self { home, path: format!("{}:{path}", directory.display()) }
    }

    pub(crate) fn run(&self, arguments: &str) -> String {
        let mut command = self.home.access.kubectl_command(&format!("skyhook {arguments}"));
        let output = command.env("PATH", &self.path).output().unwrap();
        let (out, err) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(output.status.success(), "kubectl skyhook {arguments}: {out}{err}");
        out
    }

    fn json(&self, arguments: &str) -> Value {
        serde_json::from_str(&self.run(&format!("{arguments} -o json"))).unwrap()
    }
}

#[test]
fn the_plugin_looks_after_skyhooks() {
    let home = Site::alone();
    let plugin = Plugin::new(&home);
    home.label(0..2, "site=alone");
    policy(&home, "pair", &json!({"count": 1}), &json!({"exponential": {}}));
    let mut spec = home.paced("pair", &packages("1.0.0"));
    spec["deploymentPolicyOptions"] = json!({"resetBatchStateOnCompletion": false});
    home.apply("Skyhook", "pair", &spec);
    home.wait("pair", "complete");
    switches(&home, &plugin);
    looks_at_nodes(&home, &plugin);
    resets_a_node(&home, &plugin);
    runs_packages_again(&home, &plugin);
    starts_over(&home, &plugin);
}

fn switches(home: &Site, plugin: &Plugin<'_>) {
    let annotations = || home.skyhook("pair")["metadata"]["annotations"].clone();
    assert_eq!(plugin.run("pause pair -y"), "Skyhook \"pair\" paused\n");
    assert_eq!(plugin.run("disable pair --confirm"), "Skyhook \"pair\" disabled\n");
    assert_eq!(plugin.run("resume pair -y"), "Skyhook \"pair\" resumed\n");
    assert_eq!(annotations()["skyhook.nvidia.com/pause"], Value::Null);
    assert_eq!(annotations()["skyhook.nvidia.com/disable"], "true");
    assert_eq!(plugin.run("enable pair -y"), "Skyhook \"pair\" enabled\n");
    assert_eq!(plugin.run("pause pair --dry-run"), "[dry-run] Would pause Skyhook \"pair\"\n");
    assert_eq!(annotations()["skyhook.nvidia.com/disable"], Value::Null);
}

fn looks_at_nodes(home: &Site, plugin: &Plugin<'_>) {
    home.wait("pair", "complete");
    let listed = plugin.run("node list --skyhook pair");
    assert!(
        listed.contains("Summary: 2 nodes (2 complete, 0 erroring, 0 in progress)"),
        "{listed}"
    );
    assert!(
        listed.contains("NODE    STATUS    PACKAGES\n----    ------    --------\n"),
        "{listed}"
    );
    let listed = plugin.json("node list --skyhook pair");
    assert_eq!(listed["nodes"][0]["packagesComplete"], 2);
    let status = plugin.json("node status node-[0-1]");
    assert_eq!(status.as_array().map(Vec::len), Some(2));
    assert_eq!(status[0]["packages"][0]["name"], "driver");
    let of_one = plugin.run("node status node-1 --skyhook pair");
    assert!(of_one.contains("node-1") && !of_one.contains("node-0"), "{of_one}");
    let label =
        |at: usize| home.node(at)["metadata"]["labels"]["skyhook.nvidia.com/ignore"].clone();
    let ignored = plugin.run("node ignore node-0 node-1");
    assert!(ignored.ends_with("Successfully ignored 2 node(s)\n"), "{ignored}");
    assert_eq!([label(0), label(1), label(2)], [json!("true"), json!("true"), Value::Null]);
    assert!(plugin.run("node ignore node-0").contains("  node-0: already ignored\n"));
    assert!(plugin.run("node unignore node-.*").contains("  node-5: not ignored\n"));
    assert_eq!([label(0), label(1)], [Value::Null, Value::Null]);
}

/// A node forgets, and nobody takes it up while the Skyhook is disabled.
fn resets_a_node(home: &Site, plugin: &Plugin<'_>) {
    plugin.run("disable pair -y");
    let before = [0, 1].map(|at| node_state(&home.node(at), "pair"));
    assert!(before.iter().all(|state| state["tuning|1.0.0"]["state"] == "complete"));
    plugin.run("node reset node-0 --skyhook pair --dry-run");
    assert_eq!(node_state(&home.node(0), "pair"), before[0]);
    plugin.run("node reset node-0 --skyhook pair --confirm");
    assert_eq!(annotation(&home.node(0), "nodeState", "pair"), "");
    assert_eq!(node_state(&home.node(1), "pair"), before[1], "it is none of its business");
    plugin.run("enable pair -y");
    home.node_until(0, |node| node_state(node, "pair")["driver|1.0.0"]["state"] == "complete");
    home.wait("pair", "complete");
}

fn runs_packages_again(home: &Site, plugin: &Plugin<'_>) {
    let status = plugin.json("package status tuning --skyhook pair --node node-1");
    assert_eq!(
        (&status[0]["nodeName"], &status[0]["state"]),
        (&json!("node-1"), &json!("complete"))
    );
    let dry = plugin.run("package rerun tuning --skyhook pair --node node-1 --dry-run");
    assert!(
        dry.ends_with(
            "  - node-1 (current state: complete, stage: config)\n\n[dry-run] No changes applied\n"
        ),
        "{dry}"
    );
    assert_eq!(plugin.json("package status tuning --skyhook pair --node node-1"), status);
    home.hold(1..2, APPLY);
    plugin.run("disable pair -y");
    let text = plugin.run("package rerun tuning --skyhook pair --node node-1 --stage apply -y");
    assert!(text.ends_with("Successfully reset package \"tuning\" on 1 node(s)\n"), "{text}");
    let status = plugin.json("package status tuning --skyhook pair --node node-1");
    assert_eq!(
        (&status[0]["stage"], &status[0]["state"]),
        (&json!("apply"), &json!("in_progress"))
    );
    plugin.run("enable pair -y");
    home.node_until(1, |node| word(node, "pair") == "in_progress");
    // While its steps are not done, there may be nothing to show, and that is no error.
    let pods = "pods -n skyhook -l skyhook.nvidia.com/name=pair";
    home.access.until(pods, |pods| pods["items"].as_array().is_some_and(|pods| !pods.is_empty()));
    plugin.run("package logs tuning --skyhook pair");
    plugin.run("package logs tuning --skyhook pair --node node-1 --stage apply --tail 5");
    home.let_go(1..2);
    home.wait("pair", "complete");
    plugin.run("package logs tuning --skyhook pair");
}

fn starts_over(home: &Site, plugin: &Plugin<'_>) {
    let batch = || {
        let status = home.skyhook("pair")["status"].clone();
        status["compartmentStatuses"]["__default__"]["batchState"].clone()
    };
    assert!(batch()["currentBatch"].as_i64() > Some(1), "{}", batch());
    let text = plugin.run("deployment-policy reset pair --confirm");
    assert!(text.contains("Compartments: 1 total, 1 with batch state\n"), "{text}");
    assert_eq!(batch(), json!({"currentBatch": 1}));
    plugin.run("disable pair -y");
    home.wait("pair", "complete");
    let text = plugin.run("reset pair -y");
    assert!(text.contains("Successfully reset 2 node(s) for Skyhook \"pair\"\n"), "{text}");
    home.wait("pair", "disabled");
    home.node_until(0, |node| word(node, "pair") == "disabled");
    let nodes = home.access.kubectl("get nodes -o json");
    assert!(!nodes.contains("nodeState_pair") && !nodes.contains("cordon_pair"));

    assert!(plugin.run("version --client-only").starts_with("Skyhook plugin:\t"));
    let mut refused = home.access.kubectl_command("skyhook node list --skyhook pair -o xml");
    let refused = refused.env("PATH", &plugin.path).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(refused.stderr, b"invalid output format \"xml\"\n");
}
