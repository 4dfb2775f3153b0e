//! `cargo xtask bench`: benchmarks, most of which compare Convoy with Kubernetes' own programs.
//!
//! `bench apiserver` measures `convoy up`, and kube-apiserver with etcd, on the same machine under
//! the same load. Both sync every write, use TLS and RBAC, and authenticate the client by its
//! certificate. Each phase is bounded in count and time, and everything runs on loopback.

mod controllers;
mod fleet;
mod ocm;
mod proxy;
mod servers;
mod table;
mod up;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use convoy_kubernetes::Programs;
use serde_json::Value;

use crate::kubernetes::root;
use servers::{Server, ServerKind};
use table::Figures;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Bench {
    /// Compare the API servers: start, memory, creates, gets, lists and watches
    Apiserver(Settings),
    /// Compare the control loops: roll out Deployments
    Controllers(controllers::Settings),
    /// Measure a hub and its member clusters: roll out placements, and restart
    Fleet(fleet::Settings),
    /// Measure a hub of Open Cluster Management: register clusters, and roll out a replica set
    Ocm(ocm::Settings),
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Settings {
    /// Measure only Convoy, even if kube-apiserver and etcd are built
    #[arg(long)]
    alone: bool,
    /// Number of runs; the table shows medians
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Duration of the get and list phases, in seconds
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Number of config maps to create, get and list
    #[arg(long, default_value_t = 20_000)]
    objects: usize,
    /// Number of objects to create while 100 watchers watch
    #[arg(long, default_value_t = 10_000)]
    watched: usize,
    /// Number of nodes to create for the memory figure
    #[arg(long, default_value_t = 10_000)]
    nodes: usize,
    /// Number of pods to create for the memory figure
    #[arg(long, default_value_t = 50_000)]
    pods: usize,
    /// Directory with `convoy` and `convoy-load` [default: build them with the dist profile]
    #[arg(long)]
    programs: Option<PathBuf>,
}

/// Timeout of a phase; a phase that takes longer is cut short.
const PHASE_SECONDS_MAX: &str = "120";

pub(crate) fn run(bench: Bench) -> Result<()> {
    match bench {
        Bench::Apiserver(settings) => apiserver(&settings),
        Bench::Controllers(settings) => controllers::run(&settings),
        Bench::Fleet(settings) => fleet::run(&settings),
        Bench::Ocm(settings) => ocm::run(&settings),
    }
}

fn apiserver(settings: &Settings) -> Result<()> {
    let programs = programs(settings.programs.as_deref())?;
    let mut kinds = vec![ServerKind::Convoy(programs.join("convoy"))];
    match Programs::find() {
        _ if settings.alone => {}
        Ok(programs) => kinds.push(ServerKind::Kubernetes(programs)),
        Err(error) => eprintln!("measuring only convoy: {error}"),
    }
    let load = programs.join("convoy-load");
    let mut figures = vec![Vec::new(); kinds.len()];
    for round in 1..=settings.runs {
        for (kind, figures) in kinds.iter().zip(&mut figures) {
            eprintln!("run {round} of {}: {}", settings.runs, kind.name());
            figures.push(measure(kind, &load, settings)?);
        }
    }
    let medians: Vec<Figures> = figures.iter().map(|runs| Figures::median(runs)).collect();
    table::print(&["convoy", "kube-apiserver + etcd"], &medians)
}

/// The directory with our programs; builds them if none is given.
fn programs(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(directory) = given {
        return directory.canonicalize().context("--programs: no such directory");
    }
    let packages = ["--package", "convoy", "--package", "convoy-load"];
    crate::cargo(&[&["build", "--profile", "dist"], &packages[..]].concat())?;
    Ok(root().join("target/dist").canonicalize()?)
}

fn measure(kind: &ServerKind, load: &Path, settings: &Settings) -> Result<Figures> {
    let mut figures = Figures::default();
    let filled = start(kind, load, &mut figures)?;
    fill(&filled, load, settings, &mut figures)?;
    drop(filled);
    let server = start(kind, load, &mut Figures::default())?;
    for namespace in ["few", "many", "watched"] {
        server.kubectl(&["create", "namespace", namespace])?;
    }
    let objects = settings.objects.to_string();
    let phase = |arguments: &[&str]| server.load(load, arguments);
    phase(&["create", "--namespace=few", "--count=1000"])?;
    let create = ["create", "--namespace=many", "--seconds", PHASE_SECONDS_MAX, "--count"];
    let created = phase(&[&create[..], &[&objects]].concat())?;
    figures.set("creates of config maps /s, 64 clients", rate(&created));
    figures.set("  99 % answered within, ms", created["p99Micros"].as_f64().unwrap_or(0.0) / 1e3);
    let count = created["count"].to_string();
    let seconds = settings.seconds.to_string();
    let got = phase(&["get", "--namespace=many", "--count", &count, "--seconds", &seconds])?;
    figures.set("gets /s, 64 clients", rate(&got));
    figures.set("  99 % answered within, ms", got["p99Micros"].as_f64().unwrap_or(0.0) / 1e3);
    let listed = phase(&["list", "--namespace=few", "--seconds", &seconds])?;
    figures.set("lists of 1,000 /s, 4 clients", rate(&listed));
    let listed = phase(&["list", "--namespace=many", "--seconds", &seconds])?;
    figures.set(&format!("lists of {objects} /s, 4 clients"), rate(&listed));
    watch(&server, load, settings, &mut figures)?;
    Ok(figures)
}

/// Starts a server and measures how long that takes.
fn start(kind: &ServerKind, load: &Path, figures: &mut Figures) -> Result<Server> {
    let server = Server::start(kind, load)?;
    figures.set("ready after, ms", server.ready_after.as_secs_f64() * 1e3);
    server.kubectl(&["get", "namespaces"])?;
    let answered = server.begun.elapsed();
    figures.set("`kubectl get ns` answered after, ms", answered.as_secs_f64() * 1e3);
    server.admit_load()?;
    std::thread::sleep(Duration::from_secs(2));
    figures.set("memory empty, MiB", server.running.resident_mib()?);
    Ok(server)
}

fn fill(server: &Server, load: &Path, settings: &Settings, figures: &mut Figures) -> Result<()> {
    let (nodes, pods) = (settings.nodes.to_string(), settings.pods.to_string());
    let create = |kind: &str, count: &str| {
        let bounds = ["--seconds", "300", "--count", count];
        server.load(load, &[&["create", "--kind", kind][..], &bounds].concat())
    };
    let created = create("node", &nodes)?;
    figures.set("creates of nodes /s, 64 clients", rate(&created));
    let created = create("pod", &pods)?;
    figures.set("creates of pods /s, 64 clients", rate(&created));
    std::thread::sleep(Duration::from_secs(3));
    let title = format!("memory with {nodes} nodes and {pods} pods, MiB");
    figures.set(&title, server.running.resident_mib()?);
    Ok(())
}

fn watch(server: &Server, load: &Path, settings: &Settings, figures: &mut Figures) -> Result<()> {
    let watched = settings.watched.to_string();
    let bounds = ["--seconds", PHASE_SECONDS_MAX, "--count", &watched];
    let seen = server.load(load, &[&["watch", "--namespace=watched"][..], &bounds].concat())?;
    figures.set("events delivered /s, 100 watchers", rate(&seen));
    figures.set("  watches ended early", seen["ended"].as_f64().unwrap_or(0.0));
    figures.set("  events missing", seen["missing"].as_f64().unwrap_or(0.0));
    Ok(())
}

fn rate(report: &Value) -> f64 {
    let number = |field: &str| report[field].as_f64().unwrap_or(0.0);
    number("count") / number("seconds").max(1e-9)
}

impl Server {
    /// Runs one phase of the load generator and reads its report.
    fn load(&self, load: &Path, arguments: &[&str]) -> Result<Value> {
        let mut command = Command::new(load);
        command.args(["--server", &self.address, "--certificate", "load.crt", "--key", "load.key"]);
        command.args(arguments).current_dir(&self.running.directory);
        let output = command.output().context("could not run convoy-load")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "load {}: {complaint}", arguments.join(" "));
        let report: Value = serde_json::from_slice(&output.stdout)?;
        eprintln!("  {}: {report}", arguments.join(" "));
        Ok(report)
    }
}
