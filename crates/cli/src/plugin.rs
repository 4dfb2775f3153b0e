//! `kubectl skyhook`: invoked as `kubectl-skyhook` or `skyhook`, the binary is the plugin for
//! Skyhooks, with the commands, flags and messages of the upstream plugin. The patches come from
//! `convoy_plan::dialect::skyhook::manual`; this module reads, prints and sends.

mod arguments;
mod cluster;
mod complete;
mod confirm;
mod global;
mod logs;
mod nodes;
mod packages;
mod render;
mod rollouts;
mod version;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use self::arguments::{Leaf, exactly_one};
use self::cluster::Cluster;
use self::global::Global;
use self::render::Format;
use crate::completion::COMPLETE;
use crate::output;

/// Names of the executable that make it the plugin.
pub(crate) const NAMES: [&str; 2] = ["kubectl-skyhook", "skyhook"];

/// Name of the executable that kubectl calls to complete a command line of the plugin.
pub(crate) const COMPLETER: &str = "kubectl_complete-skyhook";

/// Manage Skyhooks and the nodes they change
#[derive(Debug, Parser)]
#[command(name = "skyhook", max_term_width = 100, disable_version_flag = true)]
#[command(args_override_self = true)]
struct Plugin {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    global: Global,
    /// Print the version of the plugin
    #[arg(long)]
    version: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the versions of the plugin and the operator
    Version(version::Version),
    /// Pause a Skyhook: start nothing new until it is resumed
    Pause(Target),
    /// Resume a paused Skyhook
    Resume(Target),
    /// Disable a Skyhook: start nothing new, and do not block other Skyhooks
    Disable(Target),
    /// Enable a disabled Skyhook
    Enable(Target),
    /// Reset a Skyhook: run all its packages again on all nodes
    Reset(rollouts::Reset),
    /// Manage the batch state of a Skyhook
    #[command(name = "deployment-policy", visible_alias = "dp")]
    Policy(Group<PolicyAction>),
    /// Show and manage nodes
    Node(Group<nodes::Action>),
    /// Show and manage packages
    Package(Group<packages::Action>),
    /// Print the completion script for a shell
    Completion(complete::Script),
}

#[derive(Debug, Subcommand)]
enum PolicyAction {
    /// Reset every compartment to its first batch
    Reset(Target),
}

/// A command that has others; alone it prints its help.
#[derive(Debug, Args)]
struct Group<A: Subcommand> {
    #[command(subcommand)]
    action: Option<A>,
}

/// One Skyhook, and whether to skip the confirmation.
#[derive(Debug, Args)]
struct Target {
    /// Name of the Skyhook
    skyhook: Option<String>,
    #[arg(hide = true)]
    more: Vec<String>,
    /// Skip the confirmation prompt
    #[arg(short = 'y', long)]
    confirm: bool,
}

impl Target {
    fn skyhook(&self) -> &str {
        self.skyhook.as_deref().unwrap_or_default()
    }
}

impl Leaf for Target {
    fn arity(&self) -> Result<()> {
        exactly_one(self.skyhook.as_ref(), &self.more)
    }
}

/// A connection, and how to print.
struct Session {
    cluster: Cluster,
    global: Global,
    format: Format,
}

/// The command line of the plugin.
pub(crate) fn command() -> clap::Command {
    Plugin::command()
}

/// Runs the plugin with the arguments of the process.
pub(crate) fn main() -> ExitCode {
    let words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    if words.get(1).is_some_and(|word| word == COMPLETE) {
        return complete::main(&words[2..]);
    }
    let is_of_kubectl = words.first().is_some_and(|program| program.ends_with(NAMES[0]));
    let name = if is_of_kubectl { "kubectl skyhook" } else { "skyhook" };
    match run(&words, name) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(1)
        }
    }
}

/// Completes a command line of `kubectl skyhook`, whose words are the arguments of the process.
pub(crate) fn complete_for_kubectl() -> ExitCode {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    complete::main(&words)
}

fn run(words: &[String], name: &str) -> Result<()> {
    let mut command = Plugin::command().bin_name(name);
    let words = arguments::without_values_of_switches(&command, words)?;
    let parsed = command.try_get_matches_from_mut(&words);
    let parsed = parsed.and_then(|matches| Plugin::from_arg_matches(&matches));
    let plugin = match parsed {
        Ok(plugin) => plugin,
        Err(error) if !error.use_stderr() => return output::print(&error.render().to_string()),
        Err(error) => return Err(arguments::in_words(&command, &words, &error)),
    };
    if plugin.version {
        return output::print(&format!("Skyhook plugin: {}\n", version::OWN));
    }
    let Some(leaf) = plugin.action.as_ref().and_then(Action::leaf) else {
        return help(&mut command, plugin.action.as_ref());
    };
    leaf.arity()?;
    let format = Format::read(&plugin.global.output)?;
    leaf.required()?;
    crate::command::block_on(act(plugin, format))
}

/// Prints the help of the plugin or of a group.
fn help(command: &mut clap::Command, group: Option<&Action>) -> Result<()> {
    let group = match group {
        Some(Action::Policy(_)) => "deployment-policy",
        Some(Action::Node(_)) => "node",
        Some(Action::Package(_)) => "package",
        Some(Action::Completion(_)) => "completion",
        _ => return output::print(&command.render_help().to_string()),
    };
    command.build();
    let group = command.find_subcommand_mut(group);
    output::print(&group.map(|group| group.render_help().to_string()).unwrap_or_default())
}

impl Action {
    /// The command to run, with its own flags; none for a group alone.
    fn leaf(&self) -> Option<&dyn Leaf> {
        Some(match self {
            Self::Version(version) => version,
            Self::Pause(target)
            | Self::Resume(target)
            | Self::Disable(target)
            | Self::Enable(target) => target,
            Self::Reset(reset) => reset,
            Self::Policy(group) => match group.action.as_ref()? {
                PolicyAction::Reset(target) => target,
            },
            Self::Node(group) => group.action.as_ref()?.leaf(),
            Self::Package(group) => group.action.as_ref()?.leaf(),
            Self::Completion(script) => {
                script.shell?;
                script
            }
        })
    }
}

async fn act(plugin: Plugin, format: Format) -> Result<()> {
    let Plugin { action, global, .. } = plugin;
    let Some(action) = action else { return Ok(()) };
    match &action {
        Action::Version(version) => return version.print(&global).await,
        Action::Completion(script) => return script.print(),
        _ => {}
    }
    let session = Session { cluster: Cluster::connect(&global).await?, global, format };
    match action {
        Action::Pause(target) => rollouts::switch(&session, &rollouts::PAUSE, &target).await,
        Action::Resume(target) => rollouts::switch(&session, &rollouts::RESUME, &target).await,
        Action::Disable(target) => rollouts::switch(&session, &rollouts::DISABLE, &target).await,
        Action::Enable(target) => rollouts::switch(&session, &rollouts::ENABLE, &target).await,
        Action::Reset(reset) => reset.run(&session).await,
        Action::Policy(Group { action: Some(PolicyAction::Reset(target)) }) => {
            rollouts::reset_batches(&session, &target).await
        }
        Action::Node(Group { action: Some(action) }) => nodes::act(&session, action).await,
        Action::Package(Group { action: Some(action) }) => packages::act(&session, action).await,
        _ => Ok(()),
    }
}
