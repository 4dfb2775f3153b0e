//! `cargo xtask bench`: what is measured beside Kubernetes' own.
//!
//! `bench apiserver`: what `convoy up` takes and gives, beside Kubernetes' own API
//! server and etcd on the same machine, under the same load.
//!
//! Both are durable (every write is synced), speak TLS, decide by RBAC and know the client by
//! its certificate. Each phase is bounded in count and in time; everything stays on loopback
//! and ends with the run.

mod controllers;
mod servers;
mod table;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use convoy_kubernetes::Programs;
use serde_json::Value;

use crate::kubernetes::root;
use servers::{Place, Server};
use table::Figures;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Bench {
    /// The API server: start, memory, creates, gets, lists and watches, ours and Kubernetes'
    Apiserver(Settings),
    /// The control loop: Deployments rolled out, ours and kube-controller-manager's
    Controllers(controllers::Settings),
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Settings {
    /// Only ours, even if kube-apiserver and etcd were built
    #[arg(long)]
    alone: bool,
    /// How often everything is measured; the table shows medians
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// How long gets and lists are made for
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// How many small objects are created, to be got and listed
    #[arg(long, default_value_t = 20_000)]
    objects: usize,
    /// How many objects 100 watchers see being created
    #[arg(long, default_value_t = 10_000)]
    watched: usize,
    #[arg(long, default_value_t = 10_000)]
    nodes: usize,
    #[arg(long, default_value_t = 50_000)]
    pods: usize,
    /// Measure programs that were built before, from this directory
    #[arg(long)]
    programs: Option<PathBuf>,
}

/// A phase that is not over by then is cut short.
const PHASE_SECONDS_MAX: &str = "120";

pub(crate) fn run(bench: Bench) -> Result<()> {
    match bench {
        Bench::Apiserver(settings) => apiserver(&settings),
        Bench::Controllers(settings) => controllers::run(&settings),
    }
}

fn apiserver(settings: &Settings) -> Result<()> {
    let programs = programs(settings.programs.as_deref())?;
    let mut places = vec![Place::Convoy(programs.join("convoy"))];
    match Programs::find() {
        _ if settings.alone => {}
        Ok(programs) => places.push(Place::Kubernetes(programs)),
        Err(error) => eprintln!("nothing to compare with: {error}"),
    }
    let load = programs.join("convoy-load");
    let mut figures = vec![Vec::new(); places.len()];
    for round in 1..=settings.runs {
        for (place, figures) in places.iter().zip(&mut figures) {
            eprintln!("run {round} of {}: {}", settings.runs, place.name());
            figures.push(measure(place, &load, settings)?);
        }
    }
    let medians: Vec<Figures> = figures.iter().map(|runs| Figures::median(runs)).collect();
    table::print(&["convoy", "kube-apiserver + etcd"], &medians)
}

/// Where ours are: built now, unless they were before.
fn programs(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(directory) = given {
        return directory.canonicalize().context("--programs names no directory");
    }
    crate::cargo(&["build", "--release", "--package", "convoy", "--package", "convoy-load"])?;
    Ok(root().join("target/release").canonicalize()?)
}

fn measure(place: &Place, load: &Path, settings: &Settings) -> Result<Figures> {
    let mut figures = Figures::default();
    let filled = start(place, load, &mut figures)?;
    fill(&filled, load, settings, &mut figures)?;
    drop(filled);
    let server = start(place, load, &mut Figures::default())?;
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

/// Starts a server and says how long it took.
fn start(place: &Place, load: &Path, figures: &mut Figures) -> Result<Server> {
    let server = Server::start(place, load)?;
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
    /// Runs one phase of load and reads its report.
    fn load(&self, load: &Path, arguments: &[&str]) -> Result<Value> {
        let mut command = Command::new(load);
        command.args(["--server", &self.address, "--certificate", "load.crt", "--key", "load.key"]);
        command.args(arguments).current_dir(&self.running.directory);
        let output = command.output().context("could not run the load")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "load {}: {complaint}", arguments.join(" "));
        let report: Value = serde_json::from_slice(&output.stdout)?;
        eprintln!("  {}: {report}", arguments.join(" "));
        Ok(report)
    }
}
