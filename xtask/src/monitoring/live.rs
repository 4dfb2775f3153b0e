//! `cargo xtask monitoring`: a real Prometheus watches one rollout of each dialect. `promtool` checks
//! the rules, and every query of every panel has to give data. Builds Prometheus, which takes some
//! minutes the first time, so that it is not a part of `cargo xtask ci`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use convoy_kubernetes::{Running, free_ports};

use super::dashboards;
use crate::kubernetes::root;

/// What to watch.
#[derive(Debug, clap::Args)]
pub(crate) struct Settings {
    /// Watch this binary instead of building one
    #[arg(long, value_name = "FILE")]
    convoy: Option<PathBuf>,
}

/// Images of rollouts that do not come to an end, so that there is something to hold.
const SCENARIO: &str = r#"
rules:
- when: {image: "*:stuck"}
  then: {fails: never-ready}
"#;

/// How many changes lie between two of the NodePool's template: time for its nodes to be replaced.
const DRIFT_EVERY: u32 = 10;

/// How long the dashboards may take to fill.
const PATIENCE: Duration = Duration::from_mins(5);

pub(crate) fn run(settings: &Settings) -> Result<()> {
    let [prometheus, promtool] = [build("prometheus")?, build("promtool")?];
    let rules = root().join("deploy/chart/monitoring/alerts.yaml");
    output(Command::new(&promtool).args(["check", "rules", "--lint-fatal"]).arg(&rules))?;
    let cases = root().join("xtask/monitoring/alerts.test.yaml");
    output(Command::new(&promtool).args(["test", "rules"]).arg(&cases))?;
    eprintln!("promtool finds nothing in the alerts, and each fires when it should");
    let mut world = World::start(settings)?;
    let address = world.watch(&prometheus, &rules)?;
    world.begin()?;
    let mut missing = queries();
    let (count, begun) = (missing.len(), Instant::now());
    let mut revision = 2;
    while !missing.is_empty() && begun.elapsed() < PATIENCE {
        world.change(revision)?;
        revision += 1;
        sleep(Duration::from_secs(5));
        missing.retain(|(_, expr)| !has_data(&promtool, &address, expr).unwrap_or(false));
        eprintln!("{} of {count} queries have data", count - missing.len());
    }
    for (panel, expr) in &missing {
        eprintln!("no data: {panel}: {expr}");
    }
    ensure!(missing.is_empty(), "{} of {count} queries give nothing", missing.len());
    let alerts = Command::new(&promtool).args(["query", "instant", &address, "ALERTS"]).output()?;
    eprintln!("alerts now:\n{}", String::from_utf8_lossy(&alerts.stdout));
    Ok(())
}

/// Builds a program of the pinned Prometheus, without what finds targets in clouds.
fn build(program: &str) -> Result<PathBuf> {
    let path = root().join("target/tools").join(program);
    let package = format!("github.com/prometheus/prometheus/cmd/{program}");
    let mut command = Command::new("go");
    command.args(["build", "-buildvcs=false", "-tags", "remove_all_sd", "-o"]).arg(&path);
    command.arg(package).current_dir(root().join("xtask/monitoring"));
    eprintln!("$ go build {program}");
    let status = command.status().context("could not run go, which builds Prometheus")?;
    ensure!(status.success(), "could not build {program}");
    Ok(path)
}

/// The queries of all panels, with what Grafana would put in place of its variable.
fn queries() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for dashboard in dashboards::all() {
        for panel in dashboard.panels() {
            for query in &panel.queries {
                let expr = query.expr.replace("$__rate_interval", "1m");
                all.push((format!("{} / {}", dashboard.title, panel.title), expr));
            }
        }
    }
    all
}

/// Whether an expression has had a number in the last minutes.
fn has_data(promtool: &Path, address: &str, expr: &str) -> Result<bool> {
    let ever = format!("count_over_time(({expr})[10m:2s])");
    let mut command = Command::new(promtool);
    let printed = output(command.args(["query", "instant", "--format=json", address, &ever]))?;
    let found: serde_json::Value = serde_json::from_str(&printed)?;
    Ok(found.as_array().is_some_and(|samples| !samples.is_empty()))
}

/// An API server with nodes, member clusters and all controllers, and the agent of one member.
struct World {
    convoy: PathBuf,
    running: Running,
    kubeconfig: PathBuf,
    ports: [u16; 3],
}

impl World {
    fn start(settings: &Settings) -> Result<Self> {
        let convoy = if let Some(convoy) = &settings.convoy {
            convoy.clone()
        } else {
            crate::cargo(&["build", "--quiet", "--workspace", "--bin", "convoy"])?;
            root().join("target/debug/convoy")
        };
        let mut running = Running::new("monitoring")?;
        let kubeconfig = running.directory.join("kubeconfig");
        let ports = free_ports()?;
        let mut command = Command::new(&convoy);
        command.args(["up", "--ephemeral", "--listen=127.0.0.1:0", "--nodes=4", "--members=2"]);
        let scenario = running.write("scenario.yaml", SCENARIO)?;
        command.arg("--scenario").arg(scenario);
        command.args(["--controllers=all", &format!("--metrics-listen=127.0.0.1:{}", ports[0])]);
        command.arg("--kubeconfig").arg(&kubeconfig).stdout(Stdio::piped());
        let mut up = running.start_as(&mut command)?;
        up.first_line()?;
        running.keep(up);
        Ok(Self { convoy, running, kubeconfig, ports })
    }

    /// Has Prometheus read the metrics of all processes; where it is.
    fn watch(&mut self, prometheus: &Path, rules: &Path) -> Result<String> {
        let [controllers, agent, own] = self.ports;
        let configuration = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
             rule_files: ['{}']\n\
             scrape_configs:\n\
             - job_name: convoy\n  static_configs:\n  \
             - targets: ['127.0.0.1:{controllers}', '127.0.0.1:{agent}']\n",
            rules.display()
        );
        let configuration = self.running.write("prometheus.yaml", &configuration)?;
        let mut command = Command::new(prometheus);
        command.arg(format!("--config.file={}", configuration.display()));
        command
            .arg(format!("--storage.tsdb.path={}", self.running.directory.join("data").display()));
        command.arg(format!("--web.listen-address=127.0.0.1:{own}"));
        let process = self.running.start_as(&mut command)?;
        self.running.keep(process);
        Ok(format!("http://127.0.0.1:{own}"))
    }

    /// Makes the rollouts.
    fn begin(&mut self) -> Result<()> {
        let definitions = output(Command::new(&self.convoy).arg("crds"))?;
        let definitions = self.running.write("crds.yaml", &definitions)?;
        self.kubectl(&format!("apply --server-side -f {}", definitions.display()))?;
        self.kubectl("wait --for=condition=established crd --all --timeout=60s")?;
        self.kubectl(&format!(
            "apply -f {}",
            root().join("xtask/monitoring/world.yaml").display()
        ))?;
        let mut agent = Command::new(&self.convoy);
        agent.args(["agent", "--observe", "--cluster=member-1", "--hub-context=convoy"]);
        agent.args(["--member-context=convoy-member-1", "--hub-kubeconfig"]).arg(&self.kubeconfig);
        agent.arg("--member-kubeconfig").arg(&self.kubeconfig);
        agent.arg(format!("--metrics-listen=127.0.0.1:{}", self.ports[1]));
        let agent = self.running.start_as(&mut agent)?;
        self.running.keep(agent);
        let scheduled = "wait --for=condition=ClusterResourcePlacementScheduled crp/shop";
        self.kubectl(&format!("{scheduled} --timeout=120s"))?;
        self.kubectl(&format!("apply -f {}", root().join("xtask/monitoring/run.yaml").display()))?;
        Ok(())
    }

    /// Rolls out something else, and approves what waits for it.
    fn change(&self, revision: u32) -> Result<()> {
        self.kubectl(&format!("set image deployment/web web=example/web:{revision}"))?;
        let package = format!(
            "{{\"spec\":{{\"packages\":{{\"tuning\":{{\"version\":\"1.0.{revision}\"}}}}}}}}"
        );
        self.kubectl(&format!("patch skyhook tuning --type=merge -p {package}"))?;
        if revision.is_multiple_of(DRIFT_EVERY) {
            let label = format!(
                "{{\"spec\":{{\"template\":{{\"metadata\":{{\"labels\":{{\"revision\":\"{revision}\"}}}}}}}}}}"
            );
            self.kubectl(&format!("patch nodepool default --type=merge -p {label}"))?;
        }
        let mut approve = Command::new(&self.convoy);
        approve.args(["approve", "clusterstagedupdaterun/shop", "--yes", "--kubeconfig"]);
        // Refused while no stage waits.
        drop(approve.arg(&self.kubeconfig).output()?);
        Ok(())
    }

    fn kubectl(&self, arguments: &str) -> Result<String> {
        let program = std::env::var_os("CONVOY_KUBECTL").unwrap_or_else(|| "kubectl".into());
        let mut command = Command::new(program);
        command.args(arguments.split(' ')).env("KUBECONFIG", &self.kubeconfig);
        output(&mut command)
    }
}

/// Runs a command that must succeed; what it prints.
fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("could not run {command:?}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {complaint}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
