//! Build tasks: `cargo xtask ci` is the whole gate, the same for people and machines.

mod kubernetes;
#[cfg(test)]
mod tidy;
mod types;

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.split_first() {
        Some((task, [])) if task == "ci" => ci(),
        Some((task, rest)) if task == "kubernetes" => kubernetes::run(rest),
        Some((task, [])) if task == "types" => types::run(),
        _ => Err(anyhow::anyhow!("usage: cargo xtask ci|kubernetes|types")),
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

fn cargo(args: &[&str]) -> Result<()> {
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
