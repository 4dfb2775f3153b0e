//! The commands, one module each: `Args` is what was typed, `Settings` what it means.

#[cfg(feature = "server")]
pub mod clusters;
pub mod completions;
#[cfg(feature = "server")]
mod controller;
pub mod crds;
#[cfg(feature = "server")]
pub mod fleet;
#[cfg(feature = "server")]
mod metrics;
pub mod migrate;
pub mod plan;
#[cfg(feature = "server")]
pub mod run;
#[cfg(feature = "server")]
mod skyhook;
#[cfg(feature = "server")]
pub mod up;
pub mod validate;
#[cfg(feature = "server")]
mod webhooks;

use std::path::PathBuf;

#[cfg(feature = "server")]
use anyhow::Context;

/// The inputs that every command on objects takes.
#[derive(Debug, clap::Args)]
pub struct InputArgs {
    /// Objects to read: a file, a directory (with all *.yaml, *.yml and *.json below it), a
    /// glob, or - for standard input. May be given several times
    #[arg(short = 'f', long = "filename", value_name = "PATH", required = true)]
    filename: Vec<PathBuf>,
}

/// A dialect by the word that plans use for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum DialectName {
    Skyhook,
    Fleet,
    Apps,
    Karpenter,
    Ocm,
}

impl DialectName {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Skyhook => "skyhook",
            Self::Fleet => "fleet",
            Self::Apps => "apps",
            Self::Karpenter => "karpenter",
            Self::Ocm => "ocm",
        }
    }
}

/// Runs what speaks with a server, to its end.
#[cfg(feature = "server")]
pub(crate) fn block_on(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    drive(tokio::runtime::Builder::new_multi_thread(), work)
}

/// The same on one thread: for what does one thing after the other, and should take little
/// memory. Each thread keeps some of what it has freed.
#[cfg(feature = "server")]
pub(crate) fn block_on_one(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    drive(tokio::runtime::Builder::new_current_thread(), work)
}

#[cfg(feature = "server")]
fn drive(
    mut runtime: tokio::runtime::Builder,
    work: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    runtime.enable_all().build().context("could not start the runtime")?.block_on(work)
}
