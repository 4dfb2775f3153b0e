//! The API servers that the suite runs against, each with simulated nodes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use convoy_kubernetes::{ControlPlane, Process, Programs, Running};

use crate::kubernetes::root;

/// Simulated nodes, and what the suite's images and Jobs do there: nobody runs their commands.
const SCENARIO: &str = include_str!("scenario.yaml");

/// Dialects for workloads besides Deployments, and the controllers that they replace.
const WORKLOADS: [(&str, &[&str]); 7] = [
    ("replicasets", &["replicaset-controller"]),
    ("replicationcontrollers", &["replicationcontroller-controller"]),
    ("daemonsets", &["daemonset-controller"]),
    ("statefulsets", &["statefulset-controller"]),
    ("jobs", &["job-controller", "ttl-after-finished-controller"]),
    ("cronjobs", &["cronjob-controller"]),
    ("poddisruptionbudgets", &["disruption-controller"]),
];

/// A server; stops when the value is dropped.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) kubeconfig: PathBuf,
    // In the order in which they stop.
    _processes: Vec<Process>,
    _running: Option<Running>,
    _control_plane: Option<ControlPlane>,
}

impl Server {
    /// `convoy up` with its controllers.
    pub(super) fn embedded(convoy: &Path, log: &Path) -> Result<Self> {
        let running = Running::new("conformance")?;
        let scenario = running.write("scenario.yaml", SCENARIO)?;
        let kubeconfig = running.directory.join("kubeconfig");
        let mut up = Command::new(convoy);
        up.args(["up", "--ephemeral", "--listen=127.0.0.1:0", "--output=json", "--kubeconfig"]);
        up.arg(&kubeconfig).arg("--scenario").arg(scenario);
        let up = start(&running, &mut up, log)?;
        Ok(Self { kubeconfig, _processes: vec![up], _running: Some(running), _control_plane: None })
    }

    /// A kube-apiserver; the controllers of kube-controller-manager, but `convoy run` for workloads;
    /// and `convoy fleet` as its nodes and scheduler. Deployments have a process of their own, with
    /// the account of `deploy/`.
    pub(super) fn real(convoy: &Path, programs: &Programs, log: &Path) -> Result<Self> {
        let control_plane = ControlPlane::start(programs, &[])?;
        let manager = control_plane.manage(&without_workloads(), &[])?;
        let running = &control_plane.running;
        let scenario = running.write("scenario.yaml", SCENARIO)?;
        let mut fleet = Command::new(convoy);
        fleet.args(["fleet", "--schedule", "--kubeconfig"]).arg(&control_plane.kubeconfig);
        let fleet = start(running, fleet.arg("--scenario").arg(scenario), log)?;
        let deploy = root().join("deploy");
        let deploy = deploy.to_str().context("the path of deploy/ is text")?;
        control_plane.kubectl(&["apply", "-k", deploy], "")?;
        let create = ["create", "token", "convoy", "-n", "convoy-system", "--duration=6h"];
        let token = control_plane.kubectl(&create, "")?;
        let account = control_plane.kubeconfig_of("convoy", token.trim())?;
        // Nobody runs the container of this Deployment; the process below has its account.
        control_plane.kubectl(&["delete", "deployment", "-n", "convoy-system", "--all"], "")?;
        let run = |dialects: &str, kubeconfig: &Path| {
            let mut run = Command::new(convoy);
            run.args(["run", "--dialects", dialects, "--kubeconfig"]).arg(kubeconfig);
            start(running, &mut run, log)
        };
        let deployments = run("apps", &account)?;
        let others =
            run(&WORKLOADS.map(|(dialect, _)| dialect).join(","), &control_plane.kubeconfig)?;
        Ok(Self {
            kubeconfig: control_plane.kubeconfig.clone(),
            _processes: vec![deployments, others, fleet, manager],
            _running: None,
            _control_plane: Some(control_plane),
        })
    }
}

/// The controllers of kube-controller-manager that `convoy run` does not replace.
fn without_workloads() -> String {
    let replaced = WORKLOADS.iter().flat_map(|(_, controllers)| *controllers);
    let all = ["*", "-deployment-controller"].map(str::to_owned).into_iter();
    all.chain(replaced.map(|controller| format!("-{controller}"))).collect::<Vec<_>>().join(",")
}

/// Starts a program that prints a line once it is ready.
fn start(running: &Running, command: &mut Command, log: &Path) -> Result<Process> {
    let log = File::options().create(true).append(true).open(log)?;
    let mut process = running.start_as(command.stdout(Stdio::piped()).stderr(log))?;
    process.first_line()?;
    Ok(process)
}
