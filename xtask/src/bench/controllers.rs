//! `cargo xtask bench controllers`: compares `convoy run` with kube-controller-manager. Both roll out
//! the same Deployments and ReplicaSets on simulated nodes.
//!
//! Objects are created and changed while no controller runs; the clock starts with the controller.
//! The figures therefore include the start of a controller and exclude the creation of the objects.
//! Each run has a fresh API server with the same nodes. kube-controller-manager runs only the two
//! controllers that are compared, with a raised request limit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use convoy_kubernetes::{ControlPlane, Process, Programs, Running, flags};
use serde_json::{Value, json};

use super::table::{Figures, print};

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Settings {
    #[arg(long, default_value_t = 500)]
    deployments: usize,
    #[arg(long, default_value_t = 3)]
    replicas: usize,
    #[arg(long, default_value_t = 50)]
    nodes: usize,
    /// Number of runs; the table shows medians
    #[arg(long, default_value_t = 1)]
    runs: usize,
    /// Path of a `convoy` binary to measure [default: build one with the dist profile]
    #[arg(long)]
    convoy: Option<PathBuf>,
    /// Keep kube-controller-manager's default limit of 20 requests per second
    #[arg(long)]
    throttled: bool,
}

/// Timeout of a phase.
const PHASE_MAX: Duration = Duration::from_mins(10);
/// Interval between polls; polling takes time from the cores that roll out.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const NAMESPACE: &str = "bench";
/// User of the controller, by which the audit log identifies its requests.
const USER: &str = "alice";
const AUDIT: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n";

#[derive(Clone, Copy, Debug)]
enum Contender {
    Upstream,
    Convoy,
    /// `convoy up` and `convoy run`.
    Embedded,
}

pub(super) fn run(settings: &Settings) -> Result<()> {
    let convoy = match &settings.convoy {
        Some(path) => path.canonicalize().context("--convoy: no such file")?,
        None => super::programs(None)?.join("convoy"),
    };
    let programs = Programs::find()?;
    let contenders = [Contender::Embedded, Contender::Convoy, Contender::Upstream];
    let mut figures = vec![Vec::new(); contenders.len()];
    for round in 1..=settings.runs {
        for (contender, figures) in contenders.iter().zip(&mut figures) {
            eprintln!("run {round} of {}: {contender:?}", settings.runs);
            let measured = measure(*contender, &convoy, &programs, settings)?;
            eprintln!("{measured:?}");
            figures.push(measured);
        }
    }
    let medians: Vec<Figures> = figures.iter().map(|runs| Figures::median(runs)).collect();
    let titles = ["convoy embedded", "convoy on kube-apiserver", "kube-controller-manager"];
    print(&titles, &medians)
}

/// An API server with simulated nodes, and its kubeconfigs.
struct TestCluster {
    running: Running,
    kubectl: PathBuf,
    admin: PathBuf,
    /// Kubeconfig of the controller.
    kubeconfig: PathBuf,
    audit: PathBuf,
    control_plane: Option<ControlPlane>,
}

fn measure(
    contender: Contender,
    convoy: &Path,
    programs: &Programs,
    settings: &Settings,
) -> Result<Figures> {
    let cluster = match contender {
        Contender::Embedded => TestCluster::embedded(convoy, programs, settings)?,
        _ => TestCluster::real(convoy, programs, settings)?,
    };
    let start = || cluster.controller(contender, convoy, settings);
    let total = settings.deployments * settings.replicas;
    let mut figures = Figures::default();
    cluster.kubectl(&["create", "namespace", NAMESPACE], "")?;
    cluster.kubectl(&["create", "-f", "-"], &objects(settings))?;

    let (begun, process) = (Instant::now(), start()?);
    wait(Duration::from_millis(250), || Ok(cluster.count_pods()? >= total))?;
    figures.set("pods created after, s", begun.elapsed().as_secs_f64());
    wait(POLL_INTERVAL, || cluster.is_complete(settings, "example/web:1"))?;
    figures.set("all of them available after, s", begun.elapsed().as_secs_f64());
    let first_mib = process.peak_mib()?;
    ensure!(process.end()?.is_none_or(|code| code == 0), "{contender:?} failed");
    let first = cluster.requests()?;

    cluster.kubectl(&["set", "image", "deployment", "--all", "web=example/web:2"], "")?;
    let (begun, process) = (Instant::now(), start()?);
    wait(POLL_INTERVAL, || cluster.is_complete(settings, "example/web:2"))?;
    figures.set("a new image everywhere after, s", begun.elapsed().as_secs_f64());
    let second_mib = process.peak_mib()?;
    drop(process);
    let both = cluster.requests()?;
    figures.set("requests until available", first.all);
    figures.set("requests for the new image", both.all - first.all);
    figures.set("  of both, events", both.events);
    figures.set("  of both, other writes", both.writes - both.events);
    figures.set("peak memory of the controller, MiB", first_mib.max(second_mib));
    Ok(figures)
}

impl TestCluster {
    fn embedded(convoy: &Path, programs: &Programs, settings: &Settings) -> Result<Self> {
        let mut running = Running::new("bench-embedded")?;
        let [admin, audit, data, tokens] = ["admin.kubeconfig", "audit.log", "data", "tokens.csv"]
            .map(|name| running.directory.join(name));
        let token = running.openssl("rand -hex 16")?;
        running.write("tokens.csv", &format!("{token},{USER},uid,system:masters\n"))?;
        let policy = running.write("policy.yaml", AUDIT)?;
        let shown = |path: &Path| path.to_string_lossy().into_owned();
        let nodes = settings.nodes.to_string();
        let mut command = Command::new(convoy);
        command.arg("up").args(flags(&[
            ("--listen", "127.0.0.1:0"),
            ("--data-dir", &shown(&data)),
            ("--kubeconfig", &shown(&admin)),
            ("--token-auth-file", &shown(&tokens)),
            ("--audit-log", &shown(&audit)),
            ("--audit-policy", &shown(&policy)),
            ("--nodes", &nodes),
            ("--controllers", "none"),
            ("--output", "json"),
        ]));
        let (up, line) = start(&running, &mut command)?;
        let ready: Value = serde_json::from_str(&line).context("no ready line")?;
        let server = ready["url"].as_str().context("no ready line")?;
        let user = json!({"apiVersion": "v1", "kind": "Config", "current-context": "here",
            "clusters": [{"name": "here", "cluster": {"server": server, "insecure-skip-tls-verify": true}}],
            "users": [{"name": "here", "user": {"token": token}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "here"}}]});
        let kubeconfig = running.write("user.kubeconfig", &user.to_string())?;
        running.keep(up);
        let kubectl = programs.kubectl.clone();
        Ok(Self { running, kubectl, admin, kubeconfig, audit, control_plane: None })
    }

    fn real(convoy: &Path, programs: &Programs, settings: &Settings) -> Result<Self> {
        let mut running = Running::new("bench-real")?;
        let audit = running.directory.join("audit.log");
        let policy = running.write("policy.yaml", AUDIT)?;
        let (path, policy) = (audit.to_string_lossy(), policy.to_string_lossy());
        let control_plane = ControlPlane::start(
            programs,
            &[
                ("--audit-log-path", path.as_ref()),
                ("--audit-policy-file", policy.as_ref()),
                // These plugins need controllers that do not run here.
                ("--disable-admission-plugins", "ServiceAccount,TaintNodesByCondition"),
                ("--max-requests-inflight", "3000"),
                ("--max-mutating-requests-inflight", "1000"),
            ],
        )?;
        let user = format!("--user={USER}");
        let bind = ["create", "clusterrolebinding", "bench", "--clusterrole=cluster-admin", &user];
        control_plane.kubectl(&bind, "")?;
        let kubeconfig = control_plane.kubeconfig_of(USER, &control_plane.token_of(USER)?)?;
        let admin = control_plane.kubeconfig.clone();
        let mut command = Command::new(convoy);
        command.args(["fleet", "--schedule", "--nodes", &settings.nodes.to_string()]);
        let (fleet, _) = start(&running, command.arg("--kubeconfig").arg(&admin))?;
        let (kubectl, control_plane) = (programs.kubectl.clone(), Some(control_plane));
        running.keep(fleet);
        Ok(Self { running, kubectl, admin, kubeconfig, audit, control_plane })
    }

    fn controller(
        &self,
        contender: Contender,
        convoy: &Path,
        settings: &Settings,
    ) -> Result<Process> {
        let kubeconfig = self.kubeconfig.to_string_lossy();
        if let (Contender::Upstream, Some(control_plane)) = (contender, &self.control_plane) {
            let own = [("--kubeconfig", kubeconfig.as_ref())];
            let raised = [
                ("--kube-api-qps", "1000"),
                ("--kube-api-burst", "1000"),
                ("--concurrent-deployment-syncs", "32"),
                ("--concurrent-replicaset-syncs", "32"),
            ];
            let more: &[_] = if settings.throttled { &[] } else { &raised };
            let controllers = "deployment-controller,replicaset-controller";
            return control_plane.manage(controllers, &[&own[..], more].concat());
        }
        let dialects = ("--dialects", "apps,replicasets");
        let arguments = flags(&[dialects, ("--kubeconfig", kubeconfig.as_ref())]);
        self.running.start(convoy, &[vec!["run".to_owned()], arguments].concat())
    }

    fn kubectl(&self, arguments: &[&str], input: &str) -> Result<String> {
        let file = self.running.write("input", input)?;
        let mut command = Command::new(&self.kubectl);
        command.args(["--namespace", NAMESPACE]).args(arguments).env("KUBECONFIG", &self.admin);
        let output = command.stdin(fs::File::open(file)?).output();
        let output = output.context("could not run kubectl")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "kubectl {}: {complaint}", arguments.join(" "));
        Ok(String::from_utf8(output.stdout)?)
    }

    fn list(&self, path: &str) -> Result<Value> {
        Ok(serde_json::from_str(&self.kubectl(&["get", "--raw", path], "")?)?)
    }

    /// Number of pods, from `remainingItemCount` of a list of one.
    fn count_pods(&self) -> Result<usize> {
        let list = self.list(&format!("/api/v1/namespaces/{NAMESPACE}/pods?limit=1"))?;
        let shown = list["items"].as_array().map_or(0, Vec::len);
        let rest = list["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
        Ok(shown + usize::try_from(rest)?)
    }

    fn is_complete(&self, settings: &Settings, image: &str) -> Result<bool> {
        // Served from the watch cache, which is cheapest for the server.
        let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments?resourceVersion=0");
        let list = self.list(&path)?;
        let items = list["items"].as_array().context("a list")?;
        ensure!(items.len() == settings.deployments, "{} Deployments", items.len());
        let is_complete = |item: &Value| {
            let status = &item["status"];
            let counts = ["replicas", "updatedReplicas", "availableReplicas"];
            item["spec"]["template"]["spec"]["containers"][0]["image"] == image
                && status["observedGeneration"] == item["metadata"]["generation"]
                && counts.iter().all(|field| status[field] == settings.replicas)
        };
        Ok(items.iter().all(is_complete))
    }

    /// Requests of the controller so far, from the audit log.
    fn requests(&self) -> Result<Requests> {
        // The audit log is written after the responses.
        std::thread::sleep(Duration::from_secs(1));
        let mut requests = Requests::default();
        for line in fs::read_to_string(&self.audit)?.lines() {
            let event: Value = serde_json::from_str(line)?;
            if event["user"]["username"] != USER || event["stage"] == "ResponseStarted" {
                continue;
            }
            requests.all += 1.0;
            if ["get", "list", "watch"].iter().all(|verb| event["verb"] != *verb) {
                requests.writes += 1.0;
                let of_event = event["objectRef"]["resource"] == "events";
                requests.events += f64::from(u8::from(of_event));
            }
        }
        Ok(requests)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Requests {
    all: f64,
    writes: f64,
    events: f64,
}

fn objects(settings: &Settings) -> String {
    let deployment = |number: usize| {
        let labels = json!({"app": format!("web-{number}")});
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": format!("web-{number}"), "namespace": NAMESPACE},
            "spec": {"replicas": settings.replicas, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "web", "image": "example/web:1"}]}}}})
    };
    let items = (0..settings.deployments).map(deployment);
    items.map(|item| item.to_string()).collect::<Vec<_>>().join("\n")
}

fn wait(interval: Duration, mut is_done: impl FnMut() -> Result<bool>) -> Result<()> {
    let started = Instant::now();
    while !is_done()? {
        if started.elapsed() > PHASE_MAX {
            bail!("timed out after {PHASE_MAX:?}");
        }
        std::thread::sleep(interval);
    }
    Ok(())
}

/// Starts a program and returns the line that it prints when it is ready.
fn start(running: &Running, command: &mut Command) -> Result<(Process, String)> {
    let mut process = running.start_as(command.stdout(Stdio::piped()))?;
    let line = process.first_line()?;
    Ok((process, line))
}
