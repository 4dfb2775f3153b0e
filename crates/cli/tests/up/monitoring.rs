//! The alerts and dashboards of the chart: `promtool` checks the rules, and a real Prometheus that
//! watches one rollout of each dialect has data for every query of every panel.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use convoy_kubernetes::{Process, Running, free_ports};
use serde_json::{Value, json};

use crate::access::Access;
use crate::clients::{here, run};
use crate::home::{self, CONVOY};
use crate::prometheus::{Prometheus, promtool};

/// Images of rollouts that do not come to an end, so that there is something to hold.
const SCENARIO: &str = r#"
rules:
- when: {image: "*:stuck"}
  then: {fails: never-ready}
"#;

/// How many changes lie between two of the NodePool's template: time for its nodes to be replaced.
const DRIFT_EVERY: u32 = 10;

/// How long the dashboards may take to fill, on a machine that does much else.
const PATIENCE: Duration = Duration::from_mins(5);

fn chart(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/chart/monitoring").join(file)
}

#[test]
fn promtool_finds_nothing_in_the_alerts_and_each_fires_when_it_should() {
    let check = ["check", "rules", "--lint=all", "--lint-fatal"];
    run(Command::new(promtool()).args(check).arg(chart("alerts.yaml")));
    run(Command::new(promtool()).args(["test", "rules"]).arg(here("monitoring/alerts.test.yaml")));
}

/// What the two checks above are worth.
#[test]
fn promtool_finds_what_is_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let alerts = std::fs::read_to_string(chart("alerts.yaml")).unwrap();
    let cases = std::fs::read_to_string(here("monitoring/alerts.test.yaml")).unwrap();
    let (first, rest) = cases.split_once("\nevaluation_interval").unwrap();
    assert!(first.contains("rule_files:"), "{first}");
    let cases = format!("rule_files: [alerts.yaml]\nevaluation_interval{rest}");
    std::fs::write(directory.path().join("alerts.test.yaml"), cases).unwrap();
    for (subcommand, file, from, to) in [
        ("check", "alerts.yaml", "sum by", "sum bye"),
        ("test", "alerts.test.yaml", "for: ", "for: 9"),
    ] {
        let damaged = alerts.replacen(from, to, 1);
        assert_ne!(damaged, alerts, "no {from:?} in the alerts");
        std::fs::write(directory.path().join("alerts.yaml"), damaged).unwrap();
        let mut command = Command::new(promtool());
        command.args([subcommand, "rules", file]).current_dir(directory.path());
        assert!(!command.output().unwrap().status.success(), "promtool {subcommand} rules");
    }
}

/// The queries of all panels, with what Grafana would put in place of its variable.
fn queries() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for file in std::fs::read_dir(chart("dashboards")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let dashboard: Value = serde_json::from_str(&text).unwrap();
        for panel in dashboard["panels"].as_array().unwrap() {
            for query in panel["targets"].as_array().into_iter().flatten() {
                let expr = query["expr"].as_str().unwrap().replace("$__rate_interval", "1m");
                all.push((format!("{} / {}", dashboard["title"], panel["title"]), expr));
            }
        }
    }
    assert!(all.len() > 50, "{all:?}");
    all
}

#[test]
fn every_query_of_the_dashboards_has_data() {
    let mut world = World::start();
    let [controllers, agent] = world.ports;
    let job = json!({"job_name": "convoy", "static_configs": [
        {"targets": [format!("127.0.0.1:{controllers}"), format!("127.0.0.1:{agent}")]}]});
    let configuration = json!({"rule_files": [chart("alerts.yaml")], "scrape_configs": [job]});
    let configuration = serde_saphyr::to_string(&configuration).unwrap();
    let mut prometheus = Prometheus::start(&configuration);
    world.begin();
    let mut missing = queries();
    let begun = Instant::now();
    for revision in 2.. {
        world.change(revision);
        std::thread::sleep(Duration::from_secs(5));
        missing.retain(|(_, expr)| {
            // In the last minutes, not only now.
            prometheus.query(&format!("count_over_time(({expr})[10m:2s])")).is_empty()
        });
        if missing.is_empty() {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "no data: {missing:#?}");
    }
    // Rules are evaluated, too.
    let alerts = prometheus.until("ALERTS");
    let names: BTreeMap<_, _> = alerts
        .iter()
        .map(|alert| (&alert.labels["alertname"], &alert.labels["severity"]))
        .collect();
    assert!(names.keys().all(|name| name.starts_with("Convoy")), "{names:?}");
}

/// An API server with nodes, member clusters and all controllers, and the agent of one member.
struct World {
    running: Running,
    access: Access,
    ports: [u16; 2],
    processes: Vec<Process>,
}

impl World {
    fn start() -> Self {
        let running = Running::new("monitoring").unwrap();
        let kubeconfig = running.directory.join("kubeconfig");
        let ports = free_ports().unwrap();
        let mut up = Command::new(CONVOY);
        up.args(["up", "--ephemeral", "--listen=127.0.0.1:0", "--nodes=4", "--members=2"]);
        up.arg("--scenario").arg(running.write("scenario.yaml", SCENARIO).unwrap());
        up.args(["--controllers=all", &format!("--metrics-listen=127.0.0.1:{}", ports[0])]);
        let (up, _) = home::start(&running, up.arg("--kubeconfig").arg(&kubeconfig));
        Self { running, access: Access::new(kubeconfig), ports, processes: vec![up] }
    }

    /// Makes the rollouts.
    fn begin(&mut self) {
        let access = &self.access;
        let definitions = run(Command::new(CONVOY).arg("crds"));
        access.kubectl_with("apply --server-side -f -", &definitions);
        access.kubectl("wait --for=condition=established crd --all --timeout=60s");
        access.kubectl(&format!("apply -f {}", here("monitoring/world.yaml").display()));
        let mut agent = Command::new(CONVOY);
        agent.args(["agent", "--observe", "--cluster=member-1", "--hub-context=convoy"]);
        agent.args(["--member-context=convoy-member-1", "--hub-kubeconfig"]);
        agent.arg(&access.kubeconfig).arg("--member-kubeconfig").arg(&access.kubeconfig);
        agent.arg(format!("--metrics-listen=127.0.0.1:{}", self.ports[1]));
        self.processes.push(home::start(&self.running, &mut agent).0);
        let scheduled = "wait --for=condition=ClusterResourcePlacementScheduled crp/shop";
        access.kubectl(&format!("{scheduled} --timeout=120s"));
        access.kubectl(&format!("apply -f {}", here("monitoring/run.yaml").display()));
    }

    /// Rolls out something else, and approves what waits for it.
    fn change(&self, revision: u32) {
        let patch = |object: &str, patch: &Value| {
            self.access.kubectl(&format!("patch {object} --type=merge -p '{patch}'"));
        };
        self.access.kubectl(&format!("set image deployment/web web=example/web:{revision}"));
        let packages = json!({"tuning": {"version": format!("1.0.{revision}")}});
        patch("skyhook tuning", &json!({"spec": {"packages": packages}}));
        if revision.is_multiple_of(DRIFT_EVERY) {
            let labels = json!({"revision": revision.to_string()});
            patch(
                "nodepool default",
                &json!({"spec": {"template": {"metadata": {"labels": labels}}}}),
            );
        }
        let mut approve = Command::new(CONVOY);
        approve.args(["approve", "clusterstagedupdaterun/shop", "--yes", "--kubeconfig"]);
        // Refused while no stage waits.
        drop(approve.arg(&self.access.kubeconfig).output().unwrap());
    }
}
