//! `cargo xtask kubernetes`: a real Kubernetes, and its word on our CRDs and on damaged objects.
//!
//! Brings the programs that `crates/kubernetes` pins, runs an API server on loopback, installs
//! what `convoy crds` prints, and asks again about every case that `crates/api/tests/kubernetes`
//! has on record. A second one is asked, side by side with the embedded server, what the
//! scripts of `crates/apiserver/tests/exchanges` ask. With `--record` the answers are written
//! back; without, a difference is a failure. `--bring` leaves it at the programs, and `--up` at
//! a control plane to work with.

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
    /// Write its answers down instead of comparing them
    #[arg(long)]
    record: bool,
    /// Build the programs that are missing, and nothing more
    #[arg(long, conflicts_with = "record")]
    bring: bool,
    /// Run a control plane until enter is pressed
    #[arg(long, conflicts_with_all = ["record", "bring"])]
    up: bool,
    /// The controllers to run with --up
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
    eprintln!("enter ends it");
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

/// Plays the scripts to a fresh server and to ours.
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
    // Built as tests build it: another choice of packages would compile much of it again.
    crate::cargo(&["build", "--quiet", "--workspace", "--bin", "convoy"])?;
    let output = Command::new(root().join("target/debug/convoy")).arg("crds").output()?;
    ensure!(output.status.success(), "convoy crds failed");
    String::from_utf8(output.stdout).context("CRDs are text")
}

/// Every CRD is served, and with its schema.
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
