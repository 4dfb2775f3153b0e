//! `kubectl skyhook`: invoked as `kubectl-skyhook`, the binary is the kubectl plugin for Skyhooks,
//! with the commands, flags and messages of the upstream plugin. The patches come from
//! `convoy_plan::dialect::skyhook::manual`; this module reads, prints and sends.

mod cluster;
mod nodes;
mod packages;
mod render;
mod rollouts;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, Parser, Subcommand};

use self::cluster::Cluster;
use crate::{error_chain, output};

/// Name of the executable that makes it the plugin.
pub(crate) const NAME: &str = "kubectl-skyhook";

/// Manage Skyhooks and the nodes they change
#[derive(Debug, Parser)]
#[command(name = "kubectl-skyhook", max_term_width = 100, disable_version_flag = true)]
struct Plugin {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    global: Global,
    /// Print the version of the plugin
    #[arg(long)]
    version: bool,
}

/// Flags of every command.
#[derive(Clone, Debug, Args)]
struct Global {
    /// Kubeconfig file [default: as kubectl]
    #[arg(long, global = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: the current context]
    #[arg(long, global = true, value_name = "NAME")]
    context: Option<String>,
    /// Namespace of package pods
    #[arg(short, long, global = true, default_value = "skyhook")]
    namespace: String,
    /// Output format: table, json, yaml or wide
    #[arg(short, long, global = true, default_value = "table")]
    output: String,
    /// Print more detail
    #[arg(short, long, global = true)]
    verbose: bool,
    /// Print the changes without making them
    #[arg(long, global = true)]
    dry_run: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the versions of the plugin and the operator
    Version {
        /// Print only the version of the plugin
        #[arg(long)]
        client_only: bool,
        /// Timeout for the request to the server
        #[arg(long, default_value = "10s")]
        timeout: String,
    },
    /// Pause a Skyhook: start nothing new until it is resumed
    Pause(Target),
    /// Resume a paused Skyhook
    Resume(Target),
    /// Disable a Skyhook: start nothing new, and do not block other Skyhooks
    Disable(Target),
    /// Enable a disabled Skyhook
    Enable(Target),
    /// Reset a Skyhook: run all its packages again on all nodes
    Reset {
        #[command(flatten)]
        target: Target,
        /// Keep the batch state
        #[arg(long)]
        skip_batch_reset: bool,
    },
    /// Manage the batch state of a Skyhook
    #[command(name = "deployment-policy", alias = "dp", subcommand)]
    Policy(PolicyAction),
    /// Show and manage nodes
    #[command(subcommand)]
    Node(nodes::Action),
    /// Show and manage packages
    #[command(subcommand)]
    Package(packages::Action),
}

#[derive(Debug, Subcommand)]
enum PolicyAction {
    /// Reset every compartment to its first batch
    Reset(Target),
}

/// One Skyhook, and whether to skip the confirmation.
#[derive(Debug, Args)]
struct Target {
    /// Name of the Skyhook
    skyhook: String,
    /// Skip the confirmation prompt
    #[arg(short = 'y', long = "confirm")]
    confirm: bool,
}

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Table,
    Wide,
    Json,
    Yaml,
}

impl Format {
    fn read(text: &str) -> Result<Self> {
        Ok(match text.to_lowercase().as_str() {
            "table" => Self::Table,
            "wide" => Self::Wide,
            "json" => Self::Json,
            "yaml" => Self::Yaml,
            _ => bail!("invalid output format {text:?}"),
        })
    }
}

/// Runs the plugin with the arguments of the process.
pub(crate) fn main() -> ExitCode {
    let plugin = match Plugin::try_parse() {
        Ok(plugin) => plugin,
        Err(error) => {
            let code = u8::from(error.use_stderr());
            _ = error.print();
            return ExitCode::from(code);
        }
    };
    match run(plugin) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {}", error_chain::chain(&error));
            ExitCode::from(1)
        }
    }
}

fn run(plugin: Plugin) -> Result<()> {
    if plugin.version {
        return output::print(&format!("Skyhook plugin: {}\n", env!("CARGO_PKG_VERSION")));
    }
    let Some(action) = plugin.action else { bail!("no command given; see --help") };
    crate::command::block_on(act(action, plugin.global))
}

async fn act(action: Action, global: Global) -> Result<()> {
    let format = Format::read(&global.output)?;
    if let Action::Version { client_only: true, .. } = action {
        return output::print(&format!("Skyhook plugin:\t{}\n", env!("CARGO_PKG_VERSION")));
    }
    let cluster = Cluster::connect(&global).await?;
    match action {
        Action::Version { timeout, .. } => rollouts::version(&cluster, &global, &timeout).await,
        Action::Pause(target) => {
            rollouts::switch(&cluster, &global, &rollouts::PAUSE, &target).await
        }
        Action::Resume(target) => {
            rollouts::switch(&cluster, &global, &rollouts::RESUME, &target).await
        }
        Action::Disable(target) => {
            rollouts::switch(&cluster, &global, &rollouts::DISABLE, &target).await
        }
        Action::Enable(target) => {
            rollouts::switch(&cluster, &global, &rollouts::ENABLE, &target).await
        }
        Action::Reset { target, skip_batch_reset } => {
            rollouts::reset(&cluster, &global, &target, skip_batch_reset).await
        }
        Action::Policy(PolicyAction::Reset(target)) => {
            rollouts::reset_batches(&cluster, &global, &target).await
        }
        Action::Node(action) => nodes::act(&cluster, &global, format, action).await,
        Action::Package(action) => packages::act(&cluster, &global, format, action).await,
    }
}
