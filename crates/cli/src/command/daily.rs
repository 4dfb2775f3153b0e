//! The daily commands: they look at rollouts and act on them. Flags and exit statuses are kubectl's:
//! what cannot be done ends with 1, wrong usage with 2.

use std::process::ExitCode;

use anyhow::Result;
use convoy_controllers::connect::ConnectError;
use convoy_plan::Intervention;

use super::{get, history, intervene, status, why};
use crate::{error_chain, exit, output};

/// A daily command and its flags.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Get(get::Args),
    Status(status::Args),
    Why(why::Args),
    History(history::Args),
    /// Pause a rollout: start nothing new until it is resumed
    Pause(intervene::Args),
    /// Resume a rollout that was paused or aborted
    Resume(intervene::Args),
    /// Give up a rollout where it stands
    Abort(intervene::Args),
    /// Try again what failed
    Retry(intervene::Args),
    Undo(intervene::UndoArgs),
    Approve(intervene::ApproveArgs),
    /// Forget how far a rollout came, and begin again
    Reset(intervene::Args),
}

pub(crate) fn run(command: Command) -> Result<ExitCode> {
    let result = match command {
        Command::Get(args) => get::run(args),
        Command::Status(args) => status::run(args),
        Command::Why(args) => why::run(args),
        Command::History(args) => history::run(args),
        Command::Pause(args) => intervene::run(args, &Intervention::Pause),
        Command::Resume(args) => intervene::run(args, &Intervention::Resume),
        Command::Abort(args) => intervene::run(args, &Intervention::Abort),
        Command::Retry(args) => intervene::run(args, &Intervention::Retry),
        Command::Undo(args) => intervene::undo(args),
        Command::Approve(args) => intervene::approve(args),
        Command::Reset(args) => intervene::run(args, &Intervention::Reset),
    };
    match result {
        Err(error) if !output::is_closed_pipe(&error) => {
            eprintln!("error: {}", error_chain::chain(&error));
            // Without a cluster to ask, the usage was wrong, as for every other command.
            let is_usage = matches!(
                error.downcast_ref::<ConnectError>(),
                Some(ConnectError::NoKubeconfig { .. })
            );
            Ok(ExitCode::from(if is_usage { exit::UNREADABLE } else { exit::FINDINGS }))
        }
        result => result,
    }
}
