//! Build tasks: `cargo xtask ci` is the whole gate, the same for people and machines.

mod bench;
mod kubernetes;
#[cfg(test)]
mod tidy;
mod types;

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, Subcommand};
use convoy_kubernetes::Programs;

/// Build tasks of Convoy
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// The whole gate: format, lints, tests
    Ci,
    /// Brings a real Kubernetes, and asks it about our CRDs and about damaged objects
    Kubernetes(kubernetes::Settings),
    /// Reads the facts about Kubernetes' types from its Go modules
    Types,
    /// Measures on this machine, with nothing else running if the figures are to mean anything
    #[command(subcommand)]
    Bench(bench::Bench),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Ci => ci(),
        Task::Kubernetes(settings) => kubernetes::run(settings),
        Task::Types => types::run(),
        Task::Bench(bench) => bench::run(bench),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn ci() -> Result<()> {
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])?;
    let programs = Programs::bring().context("the tests need a real Kubernetes")?;
    compile_clients()?;
    cargo_with(&["test", "--workspace"], Some(&programs.kubectl))
}

/// Compiles the Go clients of the tests ahead of them. Go keeps what it has compiled, and tests
/// that watch the clock do not share the cores with its compiler.
fn compile_clients() -> Result<()> {
    let clients = [("client_go", "."), ("manager", "."), ("helm", "helm.sh/helm/v4/cmd/helm")];
    for (folder, package) in clients {
        eprintln!("$ go build {package} in crates/cli/tests/up/{folder}");
        let mut command = Command::new("go");
        command.args(["build", "-buildvcs=false", "-o", "/dev/null", package]);
        command.current_dir(kubernetes::root().join("crates/cli/tests/up").join(folder));
        let status = command.status().context("the tests need go, and there is none")?;
        ensure!(status.success(), "could not build {package} for the tests");
    }
    Ok(())
}

pub(crate) fn cargo(args: &[&str]) -> Result<()> {
    cargo_with(args, None)
}

fn cargo_with(args: &[&str], kubectl: Option<&Path>) -> Result<()> {
    eprintln!("$ cargo {}", args.join(" "));
    let mut command = Command::new(env!("CARGO"));
    command.args(args).envs(kubectl.map(|path| ("CONVOY_KUBECTL", path)));
    let status = command.status()?;
    if !status.success() {
        bail!("cargo {} failed", args.join(" "));
    }
    Ok(())
}
