//! `kubectl skyhook`: the binary under the name `kubectl-skyhook` is kubectl's plugin for Skyhooks,
//! with the commands, flags and words of upstream's. What is done to objects is decided by
//! `convoy_plan::dialect::skyhook::manual`; this asks, shows and sends.

mod cluster;
mod nodes;
mod packages;
mod rollouts;
mod shown;

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, Parser, Subcommand};

use self::cluster::Cluster;
use crate::{error_chain, output};

/// The name under which the binary is the plugin.
pub(crate) const NAME: &str = "kubectl-skyhook";

/// Looks after Skyhooks and the nodes that they change
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

/// What every command takes.
#[derive(Clone, Debug, Args)]
struct Global {
    /// How to reach the server [default: as kubectl]
    #[arg(long, global = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: the current one]
    #[arg(long, global = true, value_name = "NAME")]
    context: Option<String>,
    /// The namespace of package pods
    #[arg(short, long, global = true, default_value = "skyhook")]
    namespace: String,
    /// table, json, yaml or wide
    #[arg(short, long, global = true, default_value = "table")]
    output: String,
    /// Say more
    #[arg(short, long, global = true)]
    verbose: bool,
    /// Say what would be done, and do nothing
    #[arg(long, global = true)]
    dry_run: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Versions of the plugin and of the operator
    Version {
        /// Do not ask the server
        #[arg(long)]
        client_only: bool,
        /// How long to wait for the server
        #[arg(long, default_value = "10s")]
        timeout: String,
    },
    /// Starts nothing more until it is resumed
    Pause(Target),
    /// Goes on with a paused Skyhook
    Resume(Target),
    /// Takes a Skyhook out of the order, and starts nothing more
    Disable(Target),
    /// Puts a disabled Skyhook back
    Enable(Target),
    /// Makes all nodes start over
    Reset {
        #[command(flatten)]
        target: Target,
        /// Leave the batches as they are
        #[arg(long)]
        skip_batch_reset: bool,
    },
    /// Batches of a rollout
    #[command(name = "deployment-policy", alias = "dp", subcommand)]
    Policy(PolicyAction),
    /// Nodes of a rollout
    #[command(subcommand)]
    Node(nodes::Action),
    /// Packages on nodes
    #[command(subcommand)]
    Package(packages::Action),
}

#[derive(Debug, Subcommand)]
enum PolicyAction {
    /// Puts every compartment before its first batch
    Reset(Target),
}

/// One Skyhook, and whether to ask first.
#[derive(Debug, Args)]
struct Target {
    skyhook: String,
    /// Do not ask
    #[arg(short = 'y', long = "confirm")]
    confirm: bool,
}

/// How answers are printed.
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
    let Some(action) = plugin.action else { bail!("a command is needed: see --help") };
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

/// Asks on the terminal; only a yes counts.
fn agrees(question: &str, confirmed: bool) -> Result<bool> {
    if confirmed {
        return Ok(true);
    }
    output::print(&format!("{question} Continue? [y/N]: "))?;
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    if matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
        return Ok(true);
    }
    output::print("Aborted.\n")?;
    Ok(false)
}
