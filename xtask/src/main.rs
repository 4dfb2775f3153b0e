//! Build tasks. `cargo xtask ci` runs all checks, on a laptop as in CI.

mod bench;
mod conformance;
mod deny;
mod deploy;
mod dist;
mod kubernetes;
mod monitoring;
mod sim;
mod site;
#[cfg(test)]
mod tidy;
mod torture;
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
    /// Run all checks: formatting, lints, tests
    Ci,
    /// Build a real Kubernetes, and compare its answers with the recorded ones
    Kubernetes(kubernetes::Settings),
    /// Run Kubernetes' end-to-end suite against Convoy, and compare with the listed outcomes
    Conformance(conformance::Settings),
    /// Generate the table of Kubernetes' types from its Go modules
    Types,
    /// Write the chart's definitions, dashboards and alerts, and render the kustomizations from it
    Deploy(deploy::Settings),
    /// Check the licences, bans and sources of all dependencies; needs cargo-deny
    Deny,
    /// Build the artefacts of a release into dist/: binaries, image, checksums, bills of materials
    Dist(dist::Settings),
    /// Build the documents as a site into target/site, and follow all its links
    Site,
    /// Kill, stop and depose leaders for about 20 minutes, and check budgets after every write
    Torture(torture::Settings),
    /// Run control loops in virtual time under random faults, and check promises after every write
    Sim(sim::Settings),
    /// Run benchmarks; nothing else should run on the machine
    #[command(subcommand)]
    Bench(bench::Bench),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Ci => ci(),
        Task::Kubernetes(settings) => kubernetes::run(settings),
        Task::Conformance(settings) => conformance::run(&settings),
        Task::Deny => deny::run(),
        Task::Deploy(settings) => deploy::run(&settings),
        Task::Dist(settings) => dist::run(&settings),
        Task::Site => site::run(),
        Task::Types => types::run(),
        Task::Torture(settings) => torture::run(&settings),
        Task::Sim(settings) => sim::run(&settings),
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

/// With the code that only released binaries have: nothing else compiles it before a release. The tests
/// compile what stands in its place, which is two items.
const CLIPPY: [&str; 8] = [
    "clippy",
    "--workspace",
    "--all-targets",
    "--features=convoy/profiles",
    "--quiet",
    "--",
    "-D",
    "warnings",
];

fn ci() -> Result<()> {
    cargo(&["fmt", "--all", "--check"])?;
    // Go compiles on the processors that cargo leaves free.
    let (lints, programs) = std::thread::scope(|scope| {
        let programs = scope.spawn(bring_programs);
        (cargo(&CLIPPY), programs.join().expect("it returns errors"))
    });
    lints?;
    let programs = programs?;
    site::run()?;
    cargo_with(&["test", "--workspace"], Some(&programs.kubectl))
}

/// Compiles the programs in Go that tests run, in advance, so that tests with timeouts do not compete
/// with the Go compiler.
fn bring_programs() -> Result<Programs> {
    const PACKAGES: [(&str, &str); 5] = [
        ("client_go", "."),
        ("manager", "."),
        ("helm", "helm.sh/helm/v4/cmd/helm"),
        ("prometheus", "."),
        ("prometheus", "github.com/prometheus/prometheus/cmd/promtool"),
    ];
    let programs = Programs::bring().context("could not build Kubernetes, which the tests need")?;
    for (folder, package) in PACKAGES {
        eprintln!("$ go build {package} in crates/cli/tests/up/{folder}");
        let mut command = Command::new("go");
        // The tag is Prometheus': without what finds targets in clouds.
        command.args(["build", "-buildvcs=false", "-tags=remove_all_sd", "-o", "/dev/null"]);
        command.arg(package);
        command.current_dir(kubernetes::root().join("crates/cli/tests/up").join(folder));
        let status = command.status().context("could not run go, which the tests need")?;
        ensure!(status.success(), "could not build {package} for the tests");
    }
    Ok(programs)
}

/// Cargo, as if it were not run by a program of this package: build scripts of dependencies look at
/// these variables, and would compile again what a plain `cargo test` has compiled.
pub(crate) fn cargo_command() -> Command {
    let mut command = Command::new(env!("CARGO"));
    for (name, _) in std::env::vars() {
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

pub(crate) fn cargo(args: &[&str]) -> Result<()> {
    cargo_with(args, None)
}

fn cargo_with(args: &[&str], kubectl: Option<&Path>) -> Result<()> {
    eprintln!("$ cargo {}", args.join(" "));
    let mut command = cargo_command();
    command.args(args).envs(kubectl.map(|path| ("CONVOY_KUBECTL", path)));
    let status = command.status()?;
    if !status.success() {
        bail!("cargo {} failed", args.join(" "));
    }
    Ok(())
}
