//! The numbers about Skyhooks, under upstream's names and labels, and Convoy's own.

use std::time::{Duration, Instant};

use convoy_kubernetes::free_ports;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::blocks::{Block, all, run_by};
use crate::running::Running;
use crate::scrape::{scrape, scrape_until};

const WAIT_MAX: Duration = Duration::from_mins(2);

const LATENCIES: &str =
    "latencies: {pull: 1ms, start: 1ms, ready: 1ms, stop: 1ms, init: 5ms..40ms}\n";

struct Home {
    running: Running,
    port: u16,
    _directory: TempDir,
}

impl Home {
    fn start(nodes: u32) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let scenario = directory.path().join("scenario.yaml");
        let nodes = format!("nodes: [{{name: node, count: {nodes}}}]\n{LATENCIES}");
        std::fs::write(&scenario, nodes).unwrap();
        let [port] = free_ports().unwrap();
        let listen = format!("127.0.0.1:{port}");
        let more = ["--scenario", scenario.to_str().unwrap(), "--controllers", "skyhook"];
        let running = Running::start_in(
            directory.path(),
            &[more.as_slice(), &["--metrics-listen", &listen, "--durability", "none"]].concat(),
        );
        Self { running, port, _directory: directory }
    }

    fn apply(&self, kind: &str, name: &str, spec: &Value) {
        let object = json!({"apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": kind,
            "metadata": {"name": name}, "spec": spec});
        self.running.kubectl_with("apply -f -", &object.to_string());
    }

    /// Waits until all of these lines are served.
    fn serves(&self, lines: &[&str]) -> String {
        scrape_until(self.port, lines)
    }
}

fn packages() -> Value {
    json!({"tuning": {"version": "1.0.0", "image": "example/tuning"},
        "driver": {"version": "2.0.0", "image": "example/driver", "dependsOn": {"tuning": "1.0.0"},
            "interrupt": {"type": "reboot"}}})
}

#[test]
fn a_rollout_is_counted_under_upstreams_names() {
    let home = Home::start(4);
    home.apply(
        "Skyhook",
        "old",
        &json!({"interruptionBudget": {"count": 3}, "packages": packages()}),
    );
    let text = home.serves(&[
        r#"skyhook_status{skyhook_name="old",status="complete"} 1"#,
        r#"skyhook_status{skyhook_name="old",status="in_progress"} 0"#,
        r#"skyhook_node_target_count{skyhook_name="old"} 4"#,
        r#"skyhook_node_status_count{skyhook_name="old",status="complete"} 4"#,
        r#"skyhook_node_status_count{skyhook_name="old",status="erroring"} 0"#,
        r#"skyhook_package_state_count{skyhook_name="old",package_name="tuning",package_version="1.0.0",state="complete"} 4"#,
        r#"skyhook_package_state_count{skyhook_name="old",package_name="tuning",package_version="1.0.0",state="skipped"} 0"#,
        r#"skyhook_package_stage_count{skyhook_name="old",package_name="tuning",package_version="1.0.0",stage="config"} 4"#,
        r#"skyhook_package_stage_count{skyhook_name="old",package_name="driver",package_version="2.0.0",stage="post-interrupt"} 4"#,
        r#"skyhook_package_restarts_count{skyhook_name="old",package_name="driver",package_version="2.0.0"} 0"#,
    ]);
    let labels = r#"{skyhook_name="old",policy_name="legacy",compartment_name="__default__",strategy="fixed"}"#;
    for (metric, value) in [
        ("matched_nodes", 4),
        ("ceiling", 3),
        ("in_progress", 0),
        ("completed", 4),
        ("progress_percent", 100),
        ("current_batch", 1),
        ("consecutive_failures", 0),
        ("should_stop", 0),
    ] {
        let line = format!("skyhook_rollout_{metric}{labels} {value}");
        assert!(text.lines().any(|found| found == line), "{line} is not among\n{text}");
    }
    let words = text.lines().filter(|line| line.starts_with("skyhook_status{"));
    assert_eq!(words.count(), 8, "one for each status");
    everything_is_in_the_reference(&text);

    // All of it goes with the Skyhook.
    home.running.kubectl("delete skyhook old --timeout=60s");
    let begun = Instant::now();
    while scrape(home.port).contains("\"old\"") {
        assert!(begun.elapsed() < WAIT_MAX, "{}", scrape(home.port));
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// No number is served that the reference does not explain, and none of its names is made up.
fn everything_is_in_the_reference(text: &str) {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");
    let page = std::fs::read_to_string(page).unwrap();
    let served = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    for name in served {
        assert!(page.contains(&format!("`{name}")), "{name} is not in the reference");
    }
    let words = page.split('`').filter(|word| word.starts_with("skyhook_"));
    for word in words.filter(|word| *word != "skyhook_name") {
        assert!(text.contains(&format!("# TYPE {word} gauge")), "{word} is not served");
    }
}

#[test]
fn compartments_and_blocked_nodes_are_counted() {
    let home = Home::start(4);
    home.running.kubectl("label node node-0 tier=critical");
    home.running.kubectl("taint node node-1 nvidia.com/gpu=present:NoSchedule");
    let compartment = json!({"name": "critical", "budget": {"count": 1},
        "selector": {"matchLabels": {"tier": "critical"}}});
    let spec = json!({"default": {"budget": {"percent": 50}, "strategy": {"linear": {}}},
        "compartments": [compartment]});
    home.apply("DeploymentPolicy", "careful", &spec);
    let spec = json!({"deploymentPolicy": "careful", "packages": packages()});
    home.apply("Skyhook", "new", &spec);
    home.serves(&[
        r#"skyhook_status{skyhook_name="new",status="blocked"} 1"#,
        r#"skyhook_node_status_count{skyhook_name="new",status="blocked"} 1"#,
        r#"skyhook_node_status_count{skyhook_name="new",status="complete"} 3"#,
        r#"convoy_batch_holds{dialect="skyhook",rollout="new",group="__default__",reason="TaintNotTolerated"} 1"#,
        r#"convoy_batch_members{dialect="skyhook",rollout="new",group="__default__",state="done"} 2"#,
        r#"convoy_holds{dialect="skyhook",reason="TaintNotTolerated"} 1"#,
    ]);
    let tolerations = json!([{"key": "nvidia.com/gpu", "operator": "Exists"}]);
    let mut spec = spec;
    spec["additionalTolerations"] = tolerations;
    home.apply("Skyhook", "new", &spec);
    home.serves(&[
        r#"skyhook_status{skyhook_name="new",status="complete"} 1"#,
        r#"skyhook_node_status_count{skyhook_name="new",status="blocked"} 0"#,
        r#"skyhook_rollout_matched_nodes{skyhook_name="new",policy_name="careful",compartment_name="critical",strategy="unknown"} 1"#,
        r#"skyhook_rollout_current_batch{skyhook_name="new",policy_name="careful",compartment_name="critical",strategy="unknown"} 0"#,
        r#"skyhook_rollout_matched_nodes{skyhook_name="new",policy_name="careful",compartment_name="__default__",strategy="linear"} 3"#,
        r#"skyhook_rollout_ceiling{skyhook_name="new",policy_name="careful",compartment_name="__default__",strategy="linear"} 1"#,
        r#"convoy_batch_number{dialect="skyhook",rollout="new",group="__default__"} 1"#,
    ]);
    let text = scrape(home.port);
    assert!(!text.contains("convoy_batch_holds{"), "{text}");
}

/// What the guide shows is what is served at the end of its rollout.
#[test]
fn the_guide_shows_what_is_served() {
    let [block] =
        run_by("up/skyhook_metrics.rs::the_guide_shows_what_is_served").try_into().unwrap();
    let shown: Vec<&str> = block.body.lines().skip(1).collect();
    let is_manifest = |other: &Block| other.page == block.page && other.language == "yaml";
    let objects = all().into_iter().find(is_manifest).unwrap();
    let home = Home::start(6);
    home.running.kubectl_with("apply -f -", &objects.body);
    let text = home.serves(&shown);
    let asked = |line: &&str| {
        let named = ["skyhook_node_status", "skyhook_rollout_c"];
        named.iter().any(|name| line.starts_with(name)) && !line.ends_with(" 0")
    };
    assert_eq!(text.lines().filter(asked).collect::<Vec<_>>(), shown);
}
