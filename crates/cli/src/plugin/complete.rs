//! Completion of `kubectl skyhook` command lines: where the names of Skyhooks, nodes, packages and
//! namespaces stand, and those of the cluster that the line chooses.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Command, CommandFactory, FromArgMatches};
use convoy_api::Object;
use serde_json::Value;

use super::arguments::{Leaf, STAGES};
use super::cluster::Cluster;
use super::render::Format;
use super::{Global, NAMES, Plugin};
use crate::completion::scripts::{self, Shell};
use crate::completion::{self, CommandLine, Completion, NextWord};
use crate::output;

#[derive(Debug, clap::Args)]
pub(super) struct Script {
    /// Shell to print the script for
    pub(super) shell: Option<Shell>,
}

impl Leaf for Script {}

impl Script {
    pub(super) fn print(&self) -> Result<()> {
        let [of_kubectl, own] = NAMES;
        let script = self.shell.map(|shell| scripts::script(shell, &[own, of_kubectl]));
        output::print(&script.unwrap_or_default())
    }
}

/// Names that complete a command line.
#[derive(Debug, PartialEq, Eq)]
enum Named {
    Skyhook,
    Node,
    /// A package, of this Skyhook if it is known.
    Package(Option<String>),
    Namespace,
}

/// Prints what the last of `words` can be.
pub(super) fn main(words: &[String]) -> ExitCode {
    let mut command = Plugin::command();
    command.build();
    let line = CommandLine::read(&command, words);
    let found = match named(&line) {
        None => known(&line),
        Some(named) => {
            let found = async { names(&global(&command, words)?, named).await };
            let found = crate::command::block_on(found).unwrap_or_default();
            completion::names(found)
        }
    };
    line.print(found)
}

/// The flags for the connection that are on an unfinished command line.
fn global(command: &Command, words: &[String]) -> Result<Global> {
    let before = words.split_last().map_or(&[][..], |(_, before)| before);
    let words = std::iter::once("skyhook").chain(before.iter().map(String::as_str));
    let matches = command.clone().ignore_errors(true).try_get_matches_from(words)?;
    Ok(Plugin::from_arg_matches(&matches)?.global)
}

/// What is completed without a cluster.
fn known(line: &CommandLine<'_>) -> Completion {
    match &line.next {
        NextWord::Value(flag) if flag == "output" => completion::words(&Format::WORDS),
        NextWord::Value(flag) if flag == "stage" => {
            completion::words(&STAGES.map(|(word, _)| word))
        }
        _ => line.described(),
    }
}

/// Names of which objects complete the line; none if it is completed without.
fn named(line: &CommandLine<'_>) -> Option<Named> {
    let skyhook = || line.value("skyhook").map(str::to_owned);
    let position = line.positions.len();
    Some(match &line.next {
        NextWord::Value(flag) => match flag.as_str() {
            "skyhook" => Named::Skyhook,
            "node" => Named::Node,
            "namespace" => Named::Namespace,
            _ => return None,
        },
        NextWord::Flag | NextWord::Command => return None,
        NextWord::Position => match (line.path.as_slice(), position) {
            (
                ["pause" | "resume" | "disable" | "enable" | "reset"] | ["deployment-policy", _],
                0,
            ) => Named::Skyhook,
            (["node", "status" | "reset" | "ignore" | "unignore"], _) => Named::Node,
            (["package", _], 0) => Named::Package(skyhook()),
            _ => return None,
        },
    })
}

/// The names in the cluster that complete a command line.
async fn names(global: &Global, named: Named) -> Result<Vec<String>> {
    let of = |objects: &[Object]| objects.iter().map(|it| it.name().to_string()).collect();
    let cluster = Cluster::connect(global).await?;
    Ok(match named {
        Named::Skyhook => of(&cluster.skyhooks().await?),
        Named::Node => of(&cluster.nodes().await?),
        Named::Namespace => of(&cluster.list("/api/v1/namespaces").await?),
        Named::Package(skyhook) => {
            let mut skyhooks = cluster.skyhooks().await?;
            skyhooks.retain(|it| skyhook.as_deref().is_none_or(|skyhook| it.name() == skyhook));
            let packages = skyhooks
                .iter()
                .filter_map(|skyhook| skyhook.spec().get("packages").and_then(Value::as_object));
            packages.flat_map(|packages| packages.keys().cloned()).collect()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at<T>(line: &str, look: impl Fn(&CommandLine<'_>) -> T) -> T {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let mut command = Plugin::command();
        command.build();
        look(&CommandLine::read(&command, &words))
    }

    fn words(line: &str) -> Vec<String> {
        match at(line, known) {
            Completion::Words(words) => words.into_iter().map(|(word, _)| word).collect(),
            Completion::Files => vec!["FILES".to_owned()],
        }
    }

    #[test]
    fn names_stand_where_objects_are_meant() {
        for (line, expected) in [
            ("pause ", Some(Named::Skyhook)),
            ("-n x dp reset a", Some(Named::Skyhook)),
            ("pause a ", None),
            ("node list --skyhook ", Some(Named::Skyhook)),
            ("node list --skyhook = g", Some(Named::Skyhook)),
            ("node ignore a b", Some(Named::Node)),
            ("package rerun --skyhook gpu ", Some(Named::Package(Some("gpu".to_owned())))),
            ("package logs --skyhook=gpu ", Some(Named::Package(Some("gpu".to_owned())))),
            ("package logs d --node ", Some(Named::Node)),
            ("package logs -f ", Some(Named::Package(None))),
            ("pause -n ", Some(Named::Namespace)),
            ("nod", None),
        ] {
            assert_eq!(at(line, named), expected, "{line:?}");
        }
    }

    #[test]
    fn commands_flags_and_their_values_are_completed() {
        assert_eq!(words("node status -o "), ["json", "table", "wide", "yaml"]);
        assert_eq!(words("completion "), ["bash", "fish", "zsh"]);
        assert!(words("nod").contains(&"deployment-policy".to_owned()));
        let flags = words("package rerun --s");
        assert!(flags.contains(&"--stage".to_owned()) && flags.contains(&"--server".to_owned()));
        assert_eq!(words("pause --kubeconfig "), ["FILES"]);
    }
}
