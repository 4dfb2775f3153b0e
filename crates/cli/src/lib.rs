//! The command line of Convoy: reads objects, calls the engine and prints its plans.
//!
//! It is a library so that fuzz targets and tests can call the readers; the binary is one call.

#[cfg(feature = "server")]
mod client;
mod clock;
#[cfg(feature = "server")]
mod cluster;
pub mod command;
#[cfg(feature = "server")]
mod completion;
pub mod error_chain;
pub mod finding;
pub mod input;
#[cfg(feature = "server")]
mod logging;
pub mod output;
#[cfg(feature = "server")]
mod plugin;
#[cfg(feature = "server")]
mod process;
pub mod report;
#[cfg(feature = "server")]
mod rollouts;
pub mod text;
#[cfg(feature = "server")]
mod waves;

use std::process::ExitCode;

#[cfg(feature = "server")]
use clap::FromArgMatches;
use clap::{CommandFactory, Parser, Subcommand};

/// Roll changes through Kubernetes fleets safely, with a reason for every decision
#[derive(Debug, Parser)]
#[command(name = "convoy", version, max_term_width = 100)]
#[command(after_help = "Exit status: 0 success, 1 problems found, 2 invalid usage or input.")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(feature = "server")]
    Demo(command::demo::Args),
    #[cfg(feature = "server")]
    #[command(flatten)]
    Daily(command::daily::Command),
    Plan(command::plan::Args),
    #[cfg(feature = "server")]
    Simulate(Box<command::simulate::Args>),
    #[cfg(feature = "server")]
    Record(command::record::Args),
    Validate(command::validate::Args),
    Crds(command::crds::Args),
    Migrate(command::migrate::Args),
    #[cfg(feature = "server")]
    Up(Box<command::up::Args>),
    #[cfg(feature = "server")]
    Down(command::down::Args),
    #[cfg(feature = "server")]
    Clusters(command::clusters::Args),
    #[cfg(feature = "server")]
    Fleet(command::fleet::Args),
    #[cfg(feature = "server")]
    Run(Box<command::run::Args>),
    #[cfg(feature = "server")]
    Agent(Box<command::agent::Args>),
    Completions(command::completions::Args),
    Version(command::version::Args),
    #[command(hide = true)]
    Man(command::man::Args),
}

/// Runs the command given on the command line. Invoked as `kubectl-skyhook` or `skyhook`, it is that
/// plugin.
pub fn main() -> ExitCode {
    #[cfg(feature = "server")]
    if plugin::NAMES.into_iter().any(is_called) {
        return plugin::main();
    }
    #[cfg(feature = "server")]
    if is_called(plugin::COMPLETER) {
        return plugin::complete_for_kubectl();
    }
    #[cfg(feature = "server")]
    if let Some(words) = words_to_complete() {
        return command::complete::main(Args::command(), &words);
    }
    let result = match parsed().command {
        #[cfg(feature = "server")]
        Command::Demo(args) => command::demo::run(args),
        #[cfg(feature = "server")]
        Command::Daily(command) => command::daily::run(command),
        Command::Plan(args) => command::plan::run(args),
        #[cfg(feature = "server")]
        Command::Simulate(args) => command::simulate::run(*args),
        #[cfg(feature = "server")]
        Command::Record(args) => command::record::run(args),
        Command::Validate(args) => command::validate::run(args),
        Command::Crds(args) => command::crds::run(&args),
        Command::Migrate(args) => command::migrate::run(args),
        #[cfg(feature = "server")]
        Command::Up(args) => command::up::run(*args),
        #[cfg(feature = "server")]
        Command::Down(args) => command::down::run(args),
        #[cfg(feature = "server")]
        Command::Clusters(args) => command::clusters::run(args),
        #[cfg(feature = "server")]
        Command::Fleet(args) => command::fleet::run(args),
        #[cfg(feature = "server")]
        Command::Run(args) => command::run::run(*args),
        #[cfg(feature = "server")]
        Command::Agent(args) => command::agent::run(*args),
        Command::Completions(args) => command::completions::run(&args, Args::command()),
        Command::Version(args) => command::version::run(&args),
        Command::Man(args) => command::man::run(&args, programs()),
    };
    match result {
        Ok(code) => code,
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", error_chain::chain(&error));
            ExitCode::from(exit::UNREADABLE)
        }
    }
}

/// The command lines of this binary, under each of its names.
fn programs() -> Vec<clap::Command> {
    vec![
        Args::command(),
        #[cfg(feature = "server")]
        plugin::command(),
    ]
}

/// The arguments. Invoked as `kubectl-convoy`, usage messages say `kubectl convoy`.
fn parsed() -> Args {
    #[cfg(feature = "server")]
    if is_called("kubectl-convoy") {
        let matches = Args::command().bin_name("kubectl convoy").get_matches();
        return Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    }
    Args::parse()
}

/// The unfinished command line that a shell, or kubectl, asks about.
#[cfg(feature = "server")]
fn words_to_complete() -> Option<Vec<String>> {
    let words = |skipped: usize| {
        let words = std::env::args_os().skip(skipped);
        words.map(|word| word.to_string_lossy().into_owned()).collect()
    };
    let is_asked = || std::env::args_os().nth(1).is_some_and(|word| word == completion::COMPLETE);
    if is_called(command::complete::COMPLETER) {
        return Some(words(1));
    }
    is_asked().then(|| words(2))
}

#[cfg(feature = "server")]
fn is_called(name: &str) -> bool {
    let program = std::env::args_os().next().map(std::path::PathBuf::from);
    program.is_some_and(|program| program.file_stem().is_some_and(|stem| stem == name))
}

/// Exit statuses; scripts rely on them.
mod exit {
    /// `validate` found errors, `plan --check` a violated guarantee, or a daily command could not do
    /// what was asked.
    pub(crate) const FINDINGS: u8 = 1;
    /// Input could not be read, `plan` found an invalid object, or the usage was wrong.
    pub(crate) const UNREADABLE: u8 = 2;
}
