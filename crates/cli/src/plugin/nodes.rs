//! `kubectl skyhook node`.

use anyhow::{Result, ensure};
use clap::Subcommand;
use convoy_api::Object;
use convoy_api::skyhook::PackageState;
use convoy_plan::dialect::skyhook::manual::{self, PackageRecord, standing};
use regex::Regex;
use serde_json::{Value, json};

use super::cluster::{Cluster, PatchTarget};
use super::{Format, Global, render};
use crate::output::{self, confirmed};

/// A name with one of these characters is a regular expression.
const PATTERN: &str = r".*+?^${}[]|()\";

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// List the nodes of a Skyhook
    List {
        /// Name of the Skyhook
        #[arg(long)]
        skyhook: String,
    },
    /// Show the status of nodes for each Skyhook
    Status {
        /// Nodes, by name or regular expression [default: all]
        nodes: Vec<String>,
        /// Show only this Skyhook
        #[arg(long)]
        skyhook: Option<String>,
    },
    /// Run all packages of a Skyhook again on nodes
    Reset {
        /// Nodes, by name or regular expression
        #[arg(required = true)]
        nodes: Vec<String>,
        /// Name of the Skyhook
        #[arg(long)]
        skyhook: String,
        /// Skip the confirmation prompt
        #[arg(short = 'y', long = "confirm")]
        confirm: bool,
    },
    /// Exclude nodes from all Skyhooks
    Ignore {
        /// Nodes, by name or regular expression
        #[arg(required = true)]
        nodes: Vec<String>,
    },
    /// Include ignored nodes again
    Unignore {
        /// Nodes, by name or regular expression
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
            status(&select_nodes(&all, &nodes)?, format, skyhook.as_deref())
        }
        Action::Reset { nodes, skyhook, confirm } => {
            reset(cluster, global, &select_nodes(&all, &nodes)?, &skyhook, confirm).await
        }
        Action::Ignore { nodes } => {
            ignore(cluster, global, &select_nodes(&all, &nodes)?, true).await
        }
        Action::Unignore { nodes } => {
            ignore(cluster, global, &select_nodes(&all, &nodes)?, false).await
        }
    }
}

/// The nodes with one of `names`, or matching one as a regular expression; all if it is empty.
pub(super) fn select_nodes<'n>(all: &'n [Object], names: &[String]) -> Result<Vec<&'n Object>> {
    if names.is_empty() {
        return Ok(all.iter().collect());
    }
    let mut selected = Vec::new();
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
        selected.extend(found);
    }
    selected.sort_by_key(|node| node.name());
    selected.dedup_by_key(|node| node.name());
    Ok(selected)
}

fn complete(packages: &[PackageRecord]) -> usize {
    packages.iter().filter(|package| package.state == PackageState::Complete).count()
}

fn restarts(packages: &[PackageRecord]) -> i64 {
    packages.iter().map(|package| package.restarts).sum()
}

fn emphasized(word: &str) -> String {
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
    if render::print_structured(format, &json!({"skyhookName": skyhook, "nodes": entries}))? {
        return Ok(());
    }
    let of = |word: &str| entries.iter().filter(|entry| entry["status"] == word).count();
    let mut headers = vec!["NODE", "STATUS", "PACKAGES"];
    headers.extend((format == Format::Wide).then_some("RESTARTS"));
    let rows: Vec<Vec<String>> = nodes
        .iter()
        .map(|(node, packages)| {
            let share = format!("{}/{}", complete(packages), packages.len());
            let mut row = vec![node.name().to_string(), emphasized(standing(packages)), share];
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
        render::table(&headers, &rows),
    ))
}

/// The names of the Skyhooks with state on a node, sorted.
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
    if render::print_structured(format, &Value::Array(entries))? {
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
                    emphasized(package.state_word()),
                    package.restarts.to_string(),
                    package.image.clone(),
                ]
            })
        });
        return output::print(&render::table(&headers, &rows.collect::<Vec<_>>()));
    }
    let rows = pairs.iter().map(|(node, name, packages)| {
        let share = format!("{}/{}", complete(packages), packages.len());
        vec![node.name().to_string(), (*name).to_owned(), emphasized(standing(packages)), share]
    });
    let headers = ["NODE", "SKYHOOK", "STATUS", "PACKAGES"];
    output::print(&render::table(&headers, &rows.collect::<Vec<_>>()))
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
    if !confirmed(&format!("This will reset {count} node(s) for Skyhook {skyhook:?}."), confirm)? {
        return Ok(());
    }
    for (node, patch) in &patches {
        cluster.patch(PatchTarget::Node, node.name(), patch).await?;
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
            cluster.patch(PatchTarget::Node, name, &patch).await?;
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
    fn nodes_are_selected_by_name_or_pattern() {
        let node = |name: &str| {
            Object::from_value(
                json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}),
            )
            .expect("it is whole")
        };
        let all = [node("a-1"), node("a-2"), node("b-1")];
        let names = |given: &[&str]| -> Vec<String> {
            let given: Vec<String> = given.iter().map(|name| (*name).to_owned()).collect();
            let found = select_nodes(&all, &given).expect("some match");
            found.iter().map(|node| node.name().to_string()).collect()
        };
        assert_eq!(names(&[]).len(), 3);
        assert_eq!(names(&["a-1"]), ["a-1"]);
        assert_eq!(names(&["a-.*", "a-1"]), ["a-1", "a-2"]);
        assert!(select_nodes(&all, &["a".to_owned()]).is_err());
    }
}
