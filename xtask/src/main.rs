//! Build tasks: `cargo xtask ci` is the whole gate, the same for people and machines.

mod bench;
mod kubernetes;
mod running;
#[cfg(test)]
mod tidy;
mod types;

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};

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
    /// Asks a real API server about our CRDs and about damaged objects
    Kubernetes {
        /// Write its answers down instead of comparing them
        #[arg(long)]
        record: bool,
    },
    /// Reads the facts about Kubernetes' types from its Go modules
    Types,
    /// Measures on this machine, with nothing else running if the figures are to mean anything
    #[command(subcommand)]
    Bench(bench::Bench),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Ci => ci(),
        Task::Kubernetes { record } => kubernetes::run(record),
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
    let kubectl = kubernetes::kubectl().context("the tests need a kubectl, and there is none")?;
    cargo_with(&["test", "--workspace"], Some(&kubectl))
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
