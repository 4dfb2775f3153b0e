//! Commands on nodes.

use anyhow::{Result, ensure};
use clap::Subcommand;
use convoy_api::Object;
use convoy_api::skyhook::PackageState;
use convoy_plan::dialect::skyhook::manual::{self, PackageRecord, standing};
use regex::Regex;
use serde_json::{Value, json};

use super::cluster::{Cluster, Part};
use super::{Format, Global, agrees, shown};
use crate::output;

/// In a name, one of these makes it a pattern.
const PATTERN: &str = r".*+?^${}[]|()\";

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// How far the nodes of a Skyhook are
    List {
        #[arg(long)]
        skyhook: String,
    },
    /// How far nodes are with each Skyhook
    Status {
        nodes: Vec<String>,
        #[arg(long)]
        skyhook: Option<String>,
    },
    /// Makes nodes start over with a Skyhook
    Reset {
        #[arg(required = true)]
        nodes: Vec<String>,
        #[arg(long)]
        skyhook: String,
        /// Do not ask
        #[arg(short = 'y', long = "confirm")]
        confirm: bool,
    },
    /// Takes nodes out of all rollouts
    Ignore {
        #[arg(required = true)]
        nodes: Vec<String>,
    },
    /// Puts nodes back
    Unignore {
        #[arg(required = true)]
        nodes: Vec<String>,
    },
}

pub(super) async fn act(
    cluster: &Cluster,
    global: &Global,
    format: Format,
    action: Action,
) -> Result<()> {
    let all = cluster.nodes().await?;
    match action {
        Action::List { skyhook } => list(&all, format, &skyhook),
        Action::Status { nodes, skyhook } => {
            status(&chosen(&all, &nodes)?, format, skyhook.as_deref())
        }
        Action::Reset { nodes, skyhook, confirm } => {
            reset(cluster, global, &chosen(&all, &nodes)?, &skyhook, confirm).await
        }
        Action::Ignore { nodes } => ignore(cluster, global, &chosen(&all, &nodes)?, true).await,
        Action::Unignore { nodes } => ignore(cluster, global, &chosen(&all, &nodes)?, false).await,
    }
}

/// The nodes that are named, or match a pattern; all where none is given.
pub(super) fn chosen<'n>(all: &'n [Object], names: &[String]) -> Result<Vec<&'n Object>> {
    if names.is_empty() {
        return Ok(all.iter().collect());
    }
    let mut chosen = Vec::new();
    for name in names {
        let pattern = if name.contains(|letter| PATTERN.contains(letter)) {
            Some(Regex::new(&format!("^(?:{name})$"))?)
        } else {
            None
        };
        let fits = |node: &&Object| match &pattern {
            Some(pattern) => pattern.is_match(node.name()),
            None => node.name() == name,
        };
        let found: Vec<&Object> = all.iter().filter(fits).collect();
        ensure!(!found.is_empty(), "no node matches {name:?}");
        chosen.extend(found);
    }
    chosen.sort_by_key(|node| node.name());
    chosen.dedup_by_key(|node| node.name());
    Ok(chosen)
}

fn complete(packages: &[PackageRecord]) -> usize {
    packages.iter().filter(|package| package.state == PackageState::Complete).count()
}

fn restarts(packages: &[PackageRecord]) -> i64 {
    packages.iter().map(|package| package.restarts).sum()
}

fn loud(word: &str) -> String {
    if word == "erroring" { word.to_uppercase() } else { word.to_owned() }
}

fn list(all: &[Object], format: Format, skyhook: &str) -> Result<()> {
    let nodes: Vec<(&Object, Vec<PackageRecord>)> =
        all.iter().filter_map(|node| Some((node, manual::packages(node, skyhook)?))).collect();
    if nodes.is_empty() && format != Format::Json && format != Format::Yaml {
        return output::print(&format!("No nodes found for Skyhook {skyhook:?}\n"));
    }
    let entries: Vec<Value> = nodes
        .iter()
        .map(|(node, packages)| {
            json!({"nodeName": node.name(), "status": standing(packages),
                "packagesComplete": complete(packages), "packagesTotal": packages.len(),
                "restarts": restarts(packages)})
        })
        .collect();
    if shown::raw(format, &json!({"skyhookName": skyhook, "nodes": entries}))? {
        return Ok(());
    }
    let of = |word: &str| entries.iter().filter(|entry| entry["status"] == word).count();
    let mut headers = vec!["NODE", "STATUS", "PACKAGES"];
    headers.extend((format == Format::Wide).then_some("RESTARTS"));
    let rows: Vec<Vec<String>> = nodes
        .iter()
        .map(|(node, packages)| {
            let share = format!("{}/{}", complete(packages), packages.len());
            let mut row = vec![node.name().to_string(), loud(standing(packages)), share];
            row.extend((format == Format::Wide).then(|| restarts(packages).to_string()));
            row
        })
        .collect();
    output::print(&format!(
        "Skyhook: {skyhook}\nSummary: {} nodes ({} complete, {} erroring, {} in progress)\n\n{}",
        nodes.len(),
        of("complete"),
        of("erroring"),
        of("in_progress"),
        shown::table(&headers, &rows),
    ))
}

/// The Skyhooks that a node records, by name.
fn skyhooks(node: &Object) -> Vec<&str> {
    let prefix = "skyhook.nvidia.com/nodeState_";
    let mut names: Vec<&str> =
        node.annotations().filter_map(|(key, _)| key.strip_prefix(prefix)).collect();
    names.sort_unstable();
    names
}

fn status(nodes: &[&Object], format: Format, skyhook: Option<&str>) -> Result<()> {
    let wanted = |name: &&str| skyhook.is_none_or(|skyhook| *name == skyhook);
    let pairs = nodes.iter().flat_map(|node| {
        let names = skyhooks(node).into_iter().filter(wanted);
        names.filter_map(|name| Some((*node, name, manual::packages(node, name)?)))
    });
    let pairs: Vec<(&Object, &str, Vec<PackageRecord>)> = pairs.collect();
    let entries: Vec<Value> = pairs
        .iter()
        .map(|(node, name, packages)| {
            json!({"nodeName": node.name(), "skyhookName": name, "status": standing(packages),
                "packagesComplete": complete(packages), "packagesTotal": packages.len(),
                "packages": packages.iter().map(package_json).collect::<Vec<_>>()})
        })
        .collect();
    if shown::raw(format, &Value::Array(entries))? {
        return Ok(());
    }
    if format == Format::Wide {
        let headers =
            ["NODE", "SKYHOOK", "PACKAGE", "VERSION", "STAGE", "STATE", "RESTARTS", "IMAGE"];
        let rows = pairs.iter().flat_map(|(node, name, packages)| {
            packages.iter().map(|package| {
                vec![
                    node.name().to_string(),
                    (*name).to_owned(),
                    package.name.clone(),
                    package.version.clone(),
                    package.stage.to_owned(),
                    loud(package.state_word()),
                    package.restarts.to_string(),
                    package.image.clone(),
                ]
            })
        });
        return output::print(&shown::table(&headers, &rows.collect::<Vec<_>>()));
    }
    let rows = pairs.iter().map(|(node, name, packages)| {
        let share = format!("{}/{}", complete(packages), packages.len());
        vec![node.name().to_string(), (*name).to_owned(), loud(standing(packages)), share]
    });
    let headers = ["NODE", "SKYHOOK", "STATUS", "PACKAGES"];
    output::print(&shown::table(&headers, &rows.collect::<Vec<_>>()))
}

pub(super) fn package_json(package: &PackageRecord) -> Value {
    json!({"name": package.name, "version": package.version, "stage": package.stage,
        "state": package.state_word(), "restarts": package.restarts, "image": package.image})
}

async fn reset(
    cluster: &Cluster,
    global: &Global,
    nodes: &[&Object],
    skyhook: &str,
    confirm: bool,
) -> Result<()> {
    let patches: Vec<(&Object, Value)> = nodes
        .iter()
        .filter_map(|node| Some((*node, manual::forget_packages(node, skyhook)?)))
        .collect();
    let count = patches.len();
    if global.dry_run {
        let text = format!("[dry-run] Would reset {count} node(s) for Skyhook {skyhook:?}\n");
        return output::print(&text);
    }
    if !agrees(&format!("This will reset {count} node(s) for Skyhook {skyhook:?}."), confirm)? {
        return Ok(());
    }
    for (node, patch) in &patches {
        cluster.patch(Part::Node, node.name(), patch).await?;
    }
    output::print(&format!("Successfully reset {count} node(s) for Skyhook {skyhook:?}\n"))
}

async fn ignore(
    cluster: &Cluster,
    global: &Global,
    nodes: &[&Object],
    ignored: bool,
) -> Result<()> {
    let (doing, already, done) = if ignored {
        ("Ignoring", "already ignored", "ignored")
    } else {
        ("Unignoring", "not ignored", "unignored")
    };
    output::print(&format!("{doing} {} node(s):\n", nodes.len()))?;
    let mut count = 0;
    for node in nodes {
        let name = node.name();
        let Some(patch) = manual::ignore(node, ignored) else {
            output::print(&format!("  {name}: {already}\n"))?;
            continue;
        };
        output::print(&format!("  {name}\n"))?;
        if !global.dry_run {
            cluster.patch(Part::Node, name, &patch).await?;
        }
        count += 1;
    }
    if global.dry_run {
        return output::print("[dry-run] No changes applied\n");
    }
    output::print(&format!("Successfully {done} {count} node(s)\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_chosen_by_name_or_pattern() {
        let node = |name: &str| {
            Object::from_value(
                json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}),
            )
            .expect("it is whole")
        };
        let all = [node("a-1"), node("a-2"), node("b-1")];
        let names = |given: &[&str]| -> Vec<String> {
            let given: Vec<String> = given.iter().map(|name| (*name).to_owned()).collect();
            let found = chosen(&all, &given).expect("some match");
            found.iter().map(|node| node.name().to_string()).collect()
        };
        assert_eq!(names(&[]).len(), 3);
        assert_eq!(names(&["a-1"]), ["a-1"]);
        assert_eq!(names(&["a-.*", "a-1"]), ["a-1", "a-2"]);
        assert!(chosen(&all, &["a".to_owned()]).is_err());
    }
}
