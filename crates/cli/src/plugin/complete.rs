//! Completion of `kubectl skyhook` command lines: commands, flags, and the names of Skyhooks, nodes
//! and packages of the cluster that the line chooses. Shells ask by scripts, and kubectl by an
//! executable of its own name; both get a word per line, and a last line of directives.

use std::process::ExitCode;

use anyhow::Result;
use clap::{ArgAction, Command, CommandFactory, FromArgMatches, ValueEnum};
use convoy_api::Object;
use serde_json::Value;

use super::arguments::{Leaf, STAGES};
use super::cluster::Cluster;
use super::render::Format;
use super::{Global, Plugin};
use crate::output;

/// Says that no files are to be offered.
const NO_FILES: &str = ":4";

#[derive(Debug, clap::Args)]
pub(super) struct Script {
    /// Shell to print the script for
    pub(super) shell: Option<Shell>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Shell {
    Bash,
    Fish,
    Zsh,
}

impl Leaf for Script {}

impl Script {
    pub(super) fn print(&self) -> Result<()> {
        output::print(match self.shell {
            Some(Shell::Bash) => BASH,
            Some(Shell::Fish) => FISH,
            Some(Shell::Zsh) => ZSH,
            None => "",
        })
    }
}

const BASH: &str = r#"_skyhook() {
    local word="${COMP_WORDS[COMP_CWORD]}" words
    words="$("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | grep -v '^:' | cut -f 1)"
    [[ "${word}" == "=" ]] && word=""
    COMPREPLY=( $(compgen -W "${words}" -- "${word}") )
}
complete -F _skyhook skyhook kubectl-skyhook
"#;

const FISH: &str = r"function __skyhook_words
    set -l words (commandline -opc) (commandline -ct)
    $words[1] __complete $words[2..-1] 2>/dev/null | string match -v -r '^:'
end
complete -c skyhook -f -a '(__skyhook_words)'
complete -c kubectl-skyhook -f -a '(__skyhook_words)'
";

const ZSH: &str = r#"#compdef skyhook kubectl-skyhook
_skyhook() {
    local -a found
    found=(${(f)"$("${words[1]}" __complete "${(@)words[2,$CURRENT]}" 2>/dev/null)"})
    found=(${${found:#:*}%%$'\t'*})
    compadd -a found
}
compdef _skyhook skyhook kubectl-skyhook
"#;

/// The values that complete a command line.
#[derive(Debug, PartialEq, Eq)]
enum Completion {
    /// One of these words, with what each means.
    Words(Vec<(String, String)>),
    Skyhook,
    Node,
    /// A package, of this Skyhook if it is known.
    Package(Option<String>),
    Namespace,
    Nothing,
}

/// Prints what the last of `words` can be.
pub(super) fn main(words: &[String]) -> ExitCode {
    let found = crate::command::block_on(candidates(words)).unwrap_or_default();
    let lines = output::lines(&found);
    _ = output::print(&format!("{lines}{NO_FILES}\n"));
    ExitCode::SUCCESS
}

async fn candidates(words: &[String]) -> Result<Vec<String>> {
    let command = Plugin::command();
    let words = joined(words);
    let (last, before) = words.split_last().map_or(("", &[][..]), |(last, rest)| (last, rest));
    let begins = last.split_once('=').map_or(last, |(_, value)| value);
    let offered = match completion(&command, before, last) {
        Completion::Words(words) => words,
        completion => {
            let names = names(&global(before)?, completion).await?;
            names.into_iter().map(|name| (name, String::new())).collect()
        }
    };
    let fitting = offered.into_iter().filter(|(word, _)| word.starts_with(begins));
    let shown = fitting.map(
        |(word, meaning)| {
            if meaning.is_empty() { word } else { format!("{word}\t{meaning}") }
        },
    );
    Ok(shown.collect())
}

/// The words of a shell that takes `--flag=value` apart, put together.
fn joined(words: &[String]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for word in words {
        match all.last_mut() {
            Some(flag) if word == "=" && flag.starts_with("--") => flag.push('='),
            Some(flag) if flag.starts_with("--") && flag.ends_with('=') => flag.push_str(word),
            _ => all.push(word.clone()),
        }
    }
    all
}

/// The flags for the connection that are on an unfinished command line.
fn global(before: &[String]) -> Result<Global> {
    let words = std::iter::once("skyhook").chain(before.iter().map(String::as_str));
    let matches = Plugin::command().ignore_errors(true).try_get_matches_from(words)?;
    Ok(Plugin::from_arg_matches(&matches)?.global)
}

/// What may stand after `before`, if `last` is the beginning of it.
fn completion(command: &Command, before: &[String], last: &str) -> Completion {
    let (mut within, mut path, mut positions, mut skyhook) = (command, Vec::new(), 0, None);
    let mut expecting: Option<String> = None;
    for word in before {
        if let Some(flag) = expecting.take() {
            if flag == "skyhook" {
                skyhook = Some(word.clone());
            }
        } else if let Some(rest) = word.strip_prefix("--skyhook=") {
            skyhook = Some(rest.to_owned());
        } else if word.starts_with('-') {
            expecting = flag_with_value(command, within, word);
        } else if let Some(inner) = within.find_subcommand(word) {
            within = inner;
            path.push(inner.get_name());
        } else {
            positions += 1;
        }
    }
    if let Some(flag) = expecting {
        return value_of(&flag);
    }
    if let Some((flag, _)) = last.split_once('=') {
        return flag_with_value(command, within, flag)
            .map_or(Completion::Nothing, |it| value_of(&it));
    }
    if last.starts_with('-') {
        return Completion::Words(flags(command, within));
    }
    if within.has_subcommands() {
        return Completion::Words(commands(within));
    }
    match (path.as_slice(), positions) {
        (["pause" | "resume" | "disable" | "enable" | "reset"] | ["deployment-policy", _], 0) => {
            Completion::Skyhook
        }
        (["node", "status" | "reset" | "ignore" | "unignore"], _) => Completion::Node,
        (["package", _], 0) => Completion::Package(skyhook),
        (["completion"], 0) => plain(&["bash", "fish", "zsh"]),
        _ => Completion::Nothing,
    }
}

/// The long name of a flag that takes the next word.
fn flag_with_value(root: &Command, within: &Command, word: &str) -> Option<String> {
    let all = within.get_arguments().chain(root.get_arguments());
    let mut valued = all.filter(|arg| !matches!(arg.get_action(), ArgAction::SetTrue));
    let found = valued.find(|arg| match word.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => arg.get_short().is_some_and(|short| word == format!("-{short}")),
    });
    found?.get_long().map(str::to_owned)
}

fn value_of(flag: &str) -> Completion {
    match flag {
        "skyhook" => Completion::Skyhook,
        "node" => Completion::Node,
        "namespace" => Completion::Namespace,
        "output" => plain(&Format::WORDS),
        "stage" => plain(&STAGES.map(|(word, _)| word)),
        _ => Completion::Nothing,
    }
}

fn plain(words: &[&str]) -> Completion {
    Completion::Words(words.iter().map(|word| ((*word).to_owned(), String::new())).collect())
}

fn flags(root: &Command, within: &Command) -> Vec<(String, String)> {
    let own = within.get_arguments();
    let inherited = root.get_arguments().filter(|arg| arg.is_global_set());
    let shown = own.chain(inherited).filter_map(|arg| {
        let meaning = arg.get_help().map(ToString::to_string).unwrap_or_default();
        Some((format!("--{}", arg.get_long()?), meaning))
    });
    let mut shown: Vec<(String, String)> = shown.collect();
    shown.sort();
    shown.dedup();
    shown
}

fn commands(within: &Command) -> Vec<(String, String)> {
    let shown = within.get_subcommands().filter(|command| !command.is_hide_set());
    let meaning = |command: &Command| command.get_about().map(ToString::to_string);
    shown
        .map(|command| (command.get_name().to_owned(), meaning(command).unwrap_or_default()))
        .collect()
}

/// The names in the cluster that complete a command line.
async fn names(global: &Global, completion: Completion) -> Result<Vec<String>> {
    let of = |objects: &[Object]| objects.iter().map(|it| it.name().to_string()).collect();
    let cluster = Cluster::connect(global).await?;
    Ok(match completion {
        Completion::Skyhook => of(&cluster.skyhooks().await?),
        Completion::Node => of(&cluster.nodes().await?),
        Completion::Namespace => of(&cluster.list("/api/v1/namespaces").await?),
        Completion::Package(skyhook) => {
            let mut skyhooks = cluster.skyhooks().await?;
            skyhooks.retain(|it| skyhook.as_deref().is_none_or(|skyhook| it.name() == skyhook));
            let packages = skyhooks
                .iter()
                .filter_map(|skyhook| skyhook.spec().get("packages").and_then(Value::as_object));
            let mut names: Vec<String> =
                packages.flat_map(|packages| packages.keys().cloned()).collect();
            names.sort();
            names.dedup();
            names
        }
        Completion::Words(_) | Completion::Nothing => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: &str) -> Completion {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let words = joined(&words);
        let (last, before) = words.split_last().expect("there is a word");
        completion(&Plugin::command(), before, last)
    }

    #[test]
    fn a_command_line_is_completed() {
        assert_eq!(at("pause "), Completion::Skyhook);
        assert_eq!(at("-n x dp reset a"), Completion::Skyhook);
        assert_eq!(at("pause a "), Completion::Nothing);
        assert_eq!(at("node list --skyhook "), Completion::Skyhook);
        assert_eq!(at("node list --skyhook = g"), Completion::Skyhook);
        assert_eq!(at("node ignore a b"), Completion::Node);
        assert_eq!(at("package rerun --skyhook gpu "), Completion::Package(Some("gpu".to_owned())));
        assert_eq!(at("package logs d --node "), Completion::Node);
        assert_eq!(at("package logs -f "), Completion::Package(None));
        assert_eq!(at("node status -o "), plain(&["table", "json", "yaml", "wide"]));
        assert_eq!(at("pause -n "), Completion::Namespace);
        let Completion::Words(words) = at("nod") else { panic!("commands") };
        assert!(words.iter().any(|(word, _)| word == "deployment-policy"));
        let Completion::Words(words) = at("package rerun --s") else { panic!("flags") };
        assert!(words.iter().any(|(word, _)| word == "--stage"));
        assert!(words.iter().any(|(word, _)| word == "--server"));
    }
}
