//! `cargo xtask bench controllers`: `convoy run` beside kube-controller-manager, which does the
//! same work: Deployments and their ReplicaSets, on simulated nodes.
//!
//! Objects are made and changed while no controller runs; then one is started, and the clock
//! with it. So the speed of whoever makes the objects is not what is measured, and the start
//! of a controller is. Both keep to one API server of their own kind, started afresh for each,
//! with the same nodes attached. kube-controller-manager runs nothing but the two controllers
//! that are compared, with its limit on requests raised out of the way.

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
    /// How often everything is measured; the table shows medians
    #[arg(long, default_value_t = 1)]
    runs: usize,
    /// Measure a program that was built before [default: a release build, made now]
    #[arg(long)]
    convoy: Option<PathBuf>,
    /// Leave kube-controller-manager its own limit of 20 requests a second
    #[arg(long)]
    throttled: bool,
}

/// No phase may take longer.
const PHASE_MAX: Duration = Duration::from_mins(10);
/// How often all Deployments are looked at; the same cores have to roll them out.
const LOOK: Duration = Duration::from_secs(1);
const NAMESPACE: &str = "bench";
/// Who the controller is to the API server, so that its requests can be told apart.
const USER: &str = "alice";
const AUDIT: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n";

#[derive(Clone, Copy, Debug)]
enum Contender {
    Upstream,
    Convoy,
    /// All of it: our own API server too.
    Embedded,
}

pub(super) fn run(settings: &Settings) -> Result<()> {
    let convoy = match &settings.convoy {
        Some(path) => path.canonicalize().context("--convoy names no program")?,
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

/// An API server with nodes, and how to reach it.
struct Place {
    running: Running,
    kubectl: PathBuf,
    admin: PathBuf,
    /// What the controller is given.
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
    let place = match contender {
        Contender::Embedded => Place::embedded(convoy, programs, settings)?,
        _ => Place::real(convoy, programs, settings)?,
    };
    let start = || place.controller(contender, convoy, settings);
    let total = settings.deployments * settings.replicas;
    let mut figures = Figures::default();
    place.kubectl(&["create", "namespace", NAMESPACE], "")?;
    place.kubectl(&["create", "-f", "-"], &objects(settings))?;

    let (begun, process) = (Instant::now(), start()?);
    wait(Duration::from_millis(250), || Ok(place.count_pods()? >= total))?;
    figures.set("pods created after, s", begun.elapsed().as_secs_f64());
    wait(LOOK, || place.is_complete(settings, "example/web:1"))?;
    figures.set("all of them available after, s", begun.elapsed().as_secs_f64());
    let first_mib = process.peak_mib()?;
    ensure!(process.end()?.is_none_or(|code| code == 0), "{contender:?} failed");
    let first = place.requests()?;

    place.kubectl(&["set", "image", "deployment", "--all", "web=example/web:2"], "")?;
    let (begun, process) = (Instant::now(), start()?);
    wait(LOOK, || place.is_complete(settings, "example/web:2"))?;
    figures.set("a new image everywhere after, s", begun.elapsed().as_secs_f64());
    let second_mib = process.peak_mib()?;
    drop(process);
    let both = place.requests()?;
    figures.set("requests until available", first.all);
    figures.set("requests for the new image", both.all - first.all);
    figures.set("  of both, events", both.events);
    figures.set("  of both, other writes", both.writes - both.events);
    figures.set("peak memory of the controller, MiB", first_mib.max(second_mib));
    Ok(figures)
}

impl Place {
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
        let ready: Value = serde_json::from_str(&line).context("it says where it is")?;
        let server = ready["url"].as_str().context("it says where it is")?;
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
                // Accounts are made, and taints taken away, by controllers that do not run here.
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

    /// Counted by the server: of all but one it says how many they are.
    fn count_pods(&self) -> Result<usize> {
        let list = self.list(&format!("/api/v1/namespaces/{NAMESPACE}/pods?limit=1"))?;
        let shown = list["items"].as_array().map_or(0, Vec::len);
        let rest = list["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
        Ok(shown + usize::try_from(rest)?)
    }

    fn is_complete(&self, settings: &Settings, image: &str) -> Result<bool> {
        // From the server's cache, which costs it least.
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

    /// What the controller has asked the server so far, by its audit log.
    fn requests(&self) -> Result<Requests> {
        // Written behind the answers.
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

fn wait(pause: Duration, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let started = Instant::now();
    while !is_so()? {
        if started.elapsed() > PHASE_MAX {
            bail!("not there after {PHASE_MAX:?}");
        }
        std::thread::sleep(pause);
    }
    Ok(())
}

/// Starts a program that prints a line once it is ready; that line.
fn start(running: &Running, command: &mut Command) -> Result<(Process, String)> {
    let mut process = running.start_as(command.stdout(Stdio::piped()))?;
    let line = process.first_line()?;
    Ok((process, line))
}
