//! `convoy completions`: prints shell completion scripts. Names of rollouts are completed from the
//! cluster of the current context.

use std::process::ExitCode;

use anyhow::Result;
use clap_complete::Shell;

use crate::output;

/// Print the completion script for a shell
///
/// For bash: source <(convoy completions bash). In bash, zsh and fish, names of rollouts are
/// completed as well, from the cluster of the current context.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Shell to print the script for
    shell: Shell,
}

/// Commands that take the name of a rollout.
#[cfg(feature = "server")]
const NAMING: &str = "get status why history pause resume abort retry undo approve reset";

pub(crate) fn run(args: &Args, mut command: clap::Command) -> Result<ExitCode> {
    let Args { shell } = *args;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "convoy", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    #[cfg(feature = "server")]
    let script = with_names(shell, &script);
    output::print(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// The script with names of rollouts, which `convoy get -o name` prints.
#[cfg(feature = "server")]
fn with_names(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => format!("{script}\n{}", BASH.replace("NAMING", &NAMING.replace(' ', "|"))),
        Shell::Zsh => {
            // What is typed where a rollout is named would be completed as a file.
            let named = script.lines().map(|line| match line.strip_suffix(":_default' \\") {
                Some(rest) if rest.contains("target --") => {
                    format!("{rest}:_convoy_rollouts' \\\n")
                }
                _ => format!("{line}\n"),
            });
            format!("{}\n{ZSH}", named.collect::<String>())
        }
        Shell::Fish => format!("{script}{}", FISH.replace("NAMING", NAMING)),
        _ => script.to_owned(),
    }
}

#[cfg(feature = "server")]
const BASH: &str = r#"_convoy_with_rollouts() {
    _convoy "$@"
    local word="${COMP_WORDS[COMP_CWORD]}"
    if [[ "${COMP_WORDS[1]}" =~ ^(NAMING)$ && ${COMP_CWORD} -ge 2 && "${word}" != -* ]]; then
        COMPREPLY+=( $(compgen -W "$(convoy get -o name 2>/dev/null)" -- "${word}") )
    fi
}
complete -F _convoy_with_rollouts -o nosort -o bashdefault -o default convoy
"#;

#[cfg(feature = "server")]
const ZSH: &str = r#"_convoy_rollouts() {
    local -a names
    names=(${(f)"$(convoy get -o name 2>/dev/null)"})
    compadd -a names
}
"#;

#[cfg(feature = "server")]
const FISH: &str = r#"complete -c convoy -n "__fish_seen_subcommand_from NAMING" -f -a "(convoy get -o name 2>/dev/null)"
"#;
