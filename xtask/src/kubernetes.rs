//! `cargo xtask kubernetes`: a real API server's word on our CRDs and on damaged objects.
//!
//! Builds a pinned kube-apiserver and etcd from their Go modules into a cache, runs both on
//! loopback, installs what `convoy crds` prints, and asks again about every case that
//! `crates/api/tests/kubernetes` has on record. Then a second one is asked, side by side with
//! the embedded server, what the scripts of `crates/apiserver/tests/exchanges` ask. With
//! `--record` the answers are written back; without, a difference is a failure. Needs go,
//! kubectl and openssl; nothing else of the gate does.

mod binaries;
mod record;
mod server;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use server::Server;

pub(crate) use binaries::Binaries;
pub(crate) use server::start_etcd;

pub(crate) fn run(is_recording: bool) -> Result<()> {
    let binaries = binaries::build()?;
    exchanges(&Server::start(&binaries)?, is_recording)?;
    let server = Server::start(&binaries)?;
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
    command.env("CONVOY_KUBERNETES", server.address());
    command.env("CONVOY_KUBERNETES_TOKENS", server.tokens());
    if is_recording {
        command.env("CONVOY_EXCHANGES", "record");
    }
    ensure!(command.status()?.success(), "the embedded server answers otherwise");
    Ok(())
}

/// A kubectl for tests: the machine's own, or one built from its Go module.
pub(crate) fn kubectl() -> Result<PathBuf> {
    binaries::kubectl()
}

/// The pinned API server and etcd, if this task has built them.
pub(crate) fn built() -> Option<Binaries> {
    binaries::built()
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
