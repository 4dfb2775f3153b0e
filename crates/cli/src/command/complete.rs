//! Completion of `convoy` command lines: the names of rollouts, of their members and of namespaces,
//! from the cluster or the files that the line chooses, and the contexts of the kubeconfig.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, Command, FromArgMatches};
use convoy_api::GroupKind;
use convoy_controllers::live_objects;
use convoy_plan::{Step, World};
use kube::config::Kubeconfig;

use super::up::default_directory;
use crate::cluster::{ClusterArgs, READERS};
use crate::completion::{self, CommandLine, NextWord};
use crate::input::{self, Limits};
use crate::rollouts::{self, Target};

/// Name of the executable that kubectl calls to complete a command line of `kubectl convoy`.
pub(crate) const COMPLETER: &str = "kubectl_complete-convoy";

/// A shell that waits for longer is taken for one that hangs.
const PATIENCE: Duration = Duration::from_secs(3);

/// Commands that take the name of a rollout.
const NAMING: [&str; 11] = [
    "get", "status", "why", "history", "pause", "resume", "abort", "retry", "undo", "approve",
    "reset",
];

/// Names that complete a command line.
#[derive(Debug, PartialEq, Eq)]
enum Named {
    /// Of a rollout, after its kind if there is one.
    Rollout(Option<String>),
    /// Of members, by the word for them.
    Member(String),
    Namespace,
    LogicalCluster,
    Context,
}

/// Prints what the last of `words`, which follow the name of the program, can be.
pub(crate) fn main(mut command: Command, words: &[String]) -> ExitCode {
    command.build();
    let line = CommandLine::read(&command, words);
    let found = match named(&line) {
        None => line.described(),
        Some(named) => completion::names(names(&line, named).unwrap_or_default()),
    };
    line.print(found)
}

/// Names of which objects complete the line; none if it is completed without.
fn named(line: &CommandLine<'_>) -> Option<Named> {
    match (&line.next, line.path.as_slice()) {
        (NextWord::Value(flag), _) if flag == "context" => Some(Named::Context),
        (NextWord::Value(flag), [command]) if flag == "namespace" && is_daily(command) => {
            Some(Named::Namespace)
        }
        (NextWord::Position, ["clusters", "delete"]) => Some(Named::LogicalCluster),
        (NextWord::Position, [command]) if NAMING.contains(command) => {
            match line.positions.as_slice() {
                [] => Some(Named::Rollout(None)),
                [noun] if *command == "why" && !member_kinds(noun).is_empty() => {
                    Some(Named::Member(noun.clone()))
                }
                [kind] => Some(Named::Rollout(Some(kind.clone()))),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether a command has the flags of the daily ones.
fn is_daily(command: &str) -> bool {
    NAMING.contains(&command) || command == "plan"
}

/// The kinds of members that `why` has a word for.
fn member_kinds(noun: &str) -> BTreeSet<GroupKind> {
    let kinds: &[(&'static str, &'static str)] = match noun {
        "node" | "nodes" | "no" => &[("", "Node")],
        "cluster" | "clusters" => &[
            ("cluster.kubernetes-fleet.io", "MemberCluster"),
            ("cluster.open-cluster-management.io", "ManagedCluster"),
        ],
        "pod" | "pods" | "po" => &[("", "Pod")],
        _ => &[],
    };
    kinds.iter().map(|(group, kind)| GroupKind::new(group, kind)).collect()
}

fn names(line: &CommandLine<'_>, named: Named) -> Result<Vec<String>> {
    match named {
        Named::Context => contexts(line),
        Named::Rollout(kind) => {
            let (world, namespace) = world(line, None)?;
            let steps = rollouts::undecided(&world, namespace.as_deref());
            let mut words = rollout_words(&steps, kind.as_deref(), &line.begins);
            if kind.is_none() && line.path == ["why"] {
                words.extend(["node", "cluster", "pod"].map(str::to_owned));
            }
            Ok(words)
        }
        Named::Member(noun) => of_kinds(line, &member_kinds(&noun)),
        Named::Namespace => of_kinds(line, &[GroupKind::new("", "Namespace")].into()),
        Named::LogicalCluster => {
            of_kinds(line, &[GroupKind::new("convoy.dev", "LogicalCluster")].into())
        }
    }
}

/// Names of rollouts: alone, or with their kinds where several have the name and where a kind is
/// being typed.
fn rollout_words(steps: &[Step], kind: Option<&str>, begins: &str) -> Vec<String> {
    let name = |step: &Step| step.rollout.name.to_string();
    if let Some(kind) = kind {
        let target = Target { kind: Some(kind.to_owned()), name: None };
        return steps.iter().filter(|step| target.matches(step)).map(name).collect();
    }
    if let Some((kind, _)) = begins.split_once('/') {
        let names = rollout_words(steps, Some(kind), "");
        return names.into_iter().map(|name| format!("{kind}/{name}")).collect();
    }
    let with_kind =
        |step: &Step| format!("{}/{}", step.rollout.kind.kind.to_lowercase(), name(step));
    let mut called: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for step in steps {
        called.entry(name(step)).or_default().insert(with_kind(step));
    }
    let mut words = Vec::new();
    for (name, with_kinds) in called {
        let is_ambiguous = with_kinds.len() > 1;
        words.extend(with_kinds.into_iter().filter(|_| is_ambiguous || !begins.is_empty()));
        words.extend((!is_ambiguous).then_some(name));
    }
    words
}

fn of_kinds(line: &CommandLine<'_>, kinds: &BTreeSet<GroupKind>) -> Result<Vec<String>> {
    let (world, _) = world(line, Some(kinds))?;
    let found = world.iter().filter(|object| kinds.contains(object.kind()));
    Ok(found.map(|object| object.name().to_string()).collect())
}

/// The objects of these kinds, or all rollouts, and the namespace that is meant.
fn world(
    line: &CommandLine<'_>,
    kinds: Option<&BTreeSet<GroupKind>>,
) -> Result<(World, Option<String>)> {
    let args = cluster_args(line)?;
    let files: Vec<PathBuf> = line
        .flags
        .iter()
        .filter(|(flag, _)| flag == "filename")
        .map(|(_, path)| path.into())
        .collect();
    if !files.is_empty() {
        let namespace = args.given_namespace();
        return Ok((input::read(&files, Limits::default()).world, namespace));
    }
    let cluster = args.connect()?;
    let (client, namespace) = (cluster.client(), cluster.namespace.as_deref());
    let live = cluster.wait(async {
        let read = match kinds {
            Some(kinds) => live_objects::list(client, kinds, namespace),
            None => live_objects::rollouts(client, &READERS, namespace),
        };
        tokio::time::timeout(PATIENCE, read).await
    });
    let live = live.context("the server takes too long")??;
    Ok((live.world, cluster.namespace))
}

/// The flags on the line that choose a cluster.
fn cluster_args(line: &CommandLine<'_>) -> Result<ClusterArgs> {
    let command = ClusterArgs::augment_args(Command::new("convoy")).ignore_errors(true);
    let words = line.flags.iter().map(|(flag, value)| match value.as_str() {
        "" => format!("--{flag}"),
        value => format!("--{flag}={value}"),
    });
    let mut words: Vec<String> = std::iter::once("convoy".to_owned()).chain(words).collect();
    let is_chosen = line.value("kubeconfig").is_some() || std::env::var_os("KUBECONFIG").is_some();
    if line.path.first() == Some(&"clusters") && !is_chosen {
        let own = default_directory()?.join("admin.kubeconfig");
        words.push(format!("--kubeconfig={}", own.display()));
    }
    let matches = command.try_get_matches_from(words)?;
    Ok(ClusterArgs::from_arg_matches(&matches)?)
}

fn contexts(line: &CommandLine<'_>) -> Result<Vec<String>> {
    let config = match line.value("kubeconfig") {
        Some(path) => Kubeconfig::read_from(path)?,
        None => Kubeconfig::read()?,
    };
    Ok(config.contexts.into_iter().map(|context| context.name).collect())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use convoy_plan::Verdict;
    use convoy_testkit::object;

    use super::*;

    fn at(line: &str) -> Option<Named> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let mut command = crate::Args::command();
        command.build();
        named(&CommandLine::read(&command, &words))
    }

    fn rollout(kind: Option<&str>) -> Named {
        Named::Rollout(kind.map(str::to_owned))
    }

    #[test]
    fn names_stand_where_rollouts_and_members_are_meant() {
        for command in NAMING {
            assert_eq!(at(&format!("{command} ")), Some(rollout(None)), "{command}");
            assert_eq!(at(&format!("{command} -n shop deploy ")), Some(rollout(Some("deploy"))));
            assert_eq!(at(&format!("{command} --context ")), Some(Named::Context));
            assert_eq!(at(&format!("{command} -n ")), Some(Named::Namespace));
            assert_eq!(at(&format!("{command} a b ")), None);
        }
        assert_eq!(at("why node "), Some(Named::Member("node".to_owned())));
        assert_eq!(at("status node "), Some(rollout(Some("node"))));
        assert_eq!(at("pause --reason 'x' "), Some(rollout(None)));
        assert_eq!(at("clusters delete a b"), Some(Named::LogicalCluster));
        for line in ["", "pau", "get -", "get -o ", "plan -f ", "up ", "pause --reason "] {
            assert_eq!(at(line), None, "{line:?}");
        }
    }

    #[test]
    fn a_name_that_several_rollouts_have_needs_its_kind() {
        let steps = [("Deployment", "web"), ("ReplicaSet", "web"), ("Deployment", "api")]
            .map(|(kind, name)| object("apps/v1", kind, name).namespace("shop").build())
            .map(|rollout| Step::new("apps", &rollout, Verdict::Held));
        let words = |kind, begins| rollout_words(&steps, kind, begins);
        assert_eq!(words(None, ""), ["api", "deployment/web", "replicaset/web"]);
        assert!(words(None, "d").contains(&"deployment/api".to_owned()));
        assert_eq!(words(None, "deploy/"), ["deploy/web", "deploy/api"]);
        assert_eq!(words(Some("rs"), ""), ["web"]);
        assert!(words(Some("node"), "").is_empty());
    }
}
