//! `cargo xtask kubernetes`: compares recorded answers with those of a real Kubernetes.
//!
//! Builds the programs that `crates/kubernetes` pins, runs an API server on loopback, installs the
//! output of `convoy crds`, and repeats every case recorded in `crates/api/tests/kubernetes`. Then
//! sends the scripts in `crates/apiserver/tests/exchanges` to a second API server and to the embedded
//! one. `--record` writes the answers to the recordings; without it, a difference is a failure.
//! `--bring` only builds the programs, and `--up` runs a control plane.

mod record;
mod server;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use convoy_kubernetes::{ControlPlane, Programs};
use serde_json::Value;

use server::Server;

#[derive(Debug, clap::Args)]
pub(crate) struct Settings {
    /// Write the answers to the recordings instead of comparing them
    #[arg(long)]
    record: bool,
    /// Only build the missing programs
    #[arg(long, conflicts_with = "record")]
    bring: bool,
    /// Run a control plane until Enter is pressed
    #[arg(long, conflicts_with_all = ["record", "bring"])]
    up: bool,
    /// Controllers of kube-controller-manager to run with --up
    #[arg(long, default_value = "*")]
    controllers: String,
}

pub(crate) fn run(settings: Settings) -> Result<()> {
    let Settings { record, bring, up, controllers } = settings;
    let programs = Programs::bring()?;
    match (bring, up) {
        (true, _) => eprintln!("{programs:#?}"),
        (_, true) => serve(&programs, &controllers)?,
        _ => ask(&programs, record)?,
    }
    Ok(())
}

fn serve(programs: &Programs, controllers: &str) -> Result<()> {
    let control_plane = ControlPlane::start(programs, &[])?;
    let _manager = control_plane.manage(controllers, &[])?;
    eprintln!("export KUBECONFIG={}", control_plane.kubeconfig.display());
    eprintln!("press Enter to stop");
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

fn ask(programs: &Programs, is_recording: bool) -> Result<()> {
    exchanges(&Server::start(programs)?, is_recording)?;
    let server = Server::start(programs)?;
    server.kubectl(&["apply", "--server-side", "-f", "-"], &crds()?)?;
    check_conditions(&server)?;
    let recordings = root().join("crates/api/tests/kubernetes");
    let mut differences = 0;
    for entry in std::fs::read_dir(&recordings)? {
        differences += record::ask_again(&server, &entry?.path(), is_recording)?;
    }
    ensure!(
        differences == 0 || is_recording,
        "{differences} answers differ from those on record; see them with --record and git diff"
    );
    Ok(())
}

/// Sends the scripts to a fresh kube-apiserver and to ours.
fn exchanges(server: &Server, is_recording: bool) -> Result<()> {
    let mut command = Command::new(env!("CARGO"));
    let test = ["test", "--workspace", "--test", "exchanges"];
    command.args(test).current_dir(root());
    command.env("CONVOY_KUBERNETES", &server.control_plane.address);
    command.env("CONVOY_KUBERNETES_TOKENS", server.control_plane.tokens());
    if is_recording {
        command.env("CONVOY_EXCHANGES", "record");
    }
    ensure!(command.status()?.success(), "the embedded server answers otherwise");
    Ok(())
}

pub(crate) fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn crds() -> Result<String> {
    // Built as the tests build it; another set of packages would recompile much of it.
    crate::cargo(&["build", "--quiet", "--workspace", "--bin", "convoy"])?;
    let output = Command::new(root().join("target/debug/convoy")).arg("crds").output()?;
    ensure!(output.status.success(), "convoy crds failed");
    String::from_utf8(output.stdout).context("CRDs are text")
}

/// Checks that every CRD is established with its schema.
fn check_conditions(server: &Server) -> Result<()> {
    server
        .kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"], "")?;
    let crds: Value = serde_json::from_str(&server.kubectl(&["get", "crd", "-o", "json"], "")?)?;
    let crds = crds["items"].as_array().context("a list of CRDs")?;
    for crd in crds {
        let mut conditions = crd["status"]["conditions"].as_array().into_iter().flatten();
        let broken = conditions.find(|condition| condition["type"] == "NonStructuralSchema");
        if let Some(condition) = broken {
            bail!("{}: {}", crd["metadata"]["name"], condition["message"]);
        }
    }
    eprintln!("{} CRDs are served with their schemas", crds.len());
    Ok(())
}
