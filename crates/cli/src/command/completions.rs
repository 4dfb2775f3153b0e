//! `convoy completions`: prints shell completion scripts. Those of bash, fish and zsh ask the
//! program, which knows the names of the cluster.

use std::process::ExitCode;

use anyhow::Result;
use clap_complete::Shell;

use crate::output;

/// Print the completion script for a shell
///
/// For bash: source <(convoy completions bash). In bash, zsh and fish, the names of rollouts, nodes,
/// clusters, pods, namespaces and contexts are completed as well, from the cluster that the command
/// line chooses. `kubectl convoy` is completed if the binary is on the PATH as
/// kubectl_complete-convoy, too.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Shell to print the script for
    shell: Shell,
}

pub(crate) fn run(args: &Args, mut command: clap::Command) -> Result<ExitCode> {
    let Args { shell } = *args;
    #[cfg(feature = "server")]
    if let Some(script) = asking(shell) {
        output::print(&script)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "convoy", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// A script that asks the program how its command line goes on.
#[cfg(feature = "server")]
fn asking(shell: Shell) -> Option<String> {
    use crate::completion::scripts::{self, Shell as Asking};
    let shell = match shell {
        Shell::Bash => Asking::Bash,
        Shell::Fish => Asking::Fish,
        Shell::Zsh => Asking::Zsh,
        _ => return None,
    };
    Some(scripts::script(shell, &["convoy", "kubectl-convoy"]))
}
