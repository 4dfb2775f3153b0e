//! The commands, one module each. `Args` holds the flags, `Settings` the resolved configuration.

#[cfg(feature = "server")]
pub mod agent;
#[cfg(feature = "server")]
mod agent_timings;
#[cfg(feature = "server")]
pub mod clusters;
#[cfg(feature = "server")]
pub(crate) mod complete;
pub mod completions;
#[cfg(feature = "server")]
mod controller;
pub mod crds;
#[cfg(feature = "server")]
pub(crate) mod daily;
#[cfg(feature = "server")]
mod decision_log;
#[cfg(feature = "server")]
pub mod demo;
#[cfg(feature = "server")]
pub mod down;
#[cfg(feature = "server")]
mod ending;
#[cfg(feature = "server")]
mod features;
#[cfg(feature = "server")]
pub mod fleet;
#[cfg(feature = "server")]
mod get;
#[cfg(feature = "server")]
mod history;
#[cfg(feature = "server")]
mod hub;
#[cfg(feature = "server")]
mod intervene;
#[cfg(feature = "server")]
mod leadership;
pub mod man;
#[cfg(feature = "server")]
mod metrics;
pub mod migrate;
#[cfg(feature = "server")]
mod ocm;
#[cfg(feature = "server")]
mod ocm_agent;
pub mod plan;
#[cfg(feature = "profiles")]
mod profile;
#[cfg(feature = "server")]
mod progress;
#[cfg(feature = "server")]
mod property_provider;
#[cfg(feature = "server")]
pub mod record;
#[cfg(feature = "server")]
pub mod run;
#[cfg(feature = "server")]
mod signal;
#[cfg(feature = "server")]
pub mod simulate;
#[cfg(feature = "server")]
mod skyhook;
#[cfg(feature = "server")]
mod source;
#[cfg(feature = "server")]
mod status;
#[cfg(feature = "server")]
pub mod up;
pub mod validate;
pub mod version;
#[cfg(feature = "server")]
mod webhooks;
#[cfg(feature = "server")]
mod why;

use std::path::PathBuf;

#[cfg(feature = "server")]
use anyhow::Context;

/// The input flags of every command that reads objects.
#[derive(Debug, clap::Args)]
pub struct InputArgs {
    /// Objects to read: a file, a directory (all *.yaml, *.yml and *.json files below it), a
    /// glob, or - for standard input. Can be repeated
    #[arg(short = 'f', long = "filename", value_name = "PATH", required = true)]
    filename: Vec<PathBuf>,
}

/// A dialect, by the name that plans use.
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

/// Runs a future to completion on a multi-threaded runtime.
#[cfg(feature = "server")]
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    drive(tokio::runtime::Builder::new_multi_thread(), work)
}

/// Runs a future to completion on the current thread. Saves memory: the allocator keeps some
/// freed memory for each thread.
#[cfg(feature = "server")]
pub(crate) fn block_on_one(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    drive(tokio::runtime::Builder::new_current_thread(), work)
}

#[cfg(feature = "server")]
fn drive<T>(
    mut runtime: tokio::runtime::Builder,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    crate::process::raise_file_limit();
    runtime.enable_all().build().context("could not start the runtime")?.block_on(work)
}
