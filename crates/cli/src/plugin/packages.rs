//! Commands on packages.

use anyhow::{Result, bail};
use clap::Subcommand;
use convoy_api::Object;
use convoy_api::object::member::{list, text};
use convoy_api::skyhook::Stage;
use convoy_plan::dialect::skyhook::manual::{self, PackageRecord};
use serde_json::Value;

use super::cluster::{Cluster, Part};
use super::nodes::{chosen, package_json};
use super::{Format, Global, agrees, shown};
use crate::output;

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// How far a package is on the nodes of a Skyhook
    Status {
        package: String,
        #[arg(long)]
        skyhook: String,
        /// A node by name or pattern; may be given several times
        #[arg(long = "node")]
        nodes: Vec<String>,
    },
    /// Runs a package again on nodes
    Rerun {
        package: String,
        #[arg(long)]
        skyhook: String,
        /// A node by name or pattern; may be given several times
        #[arg(long = "node", required = true)]
        nodes: Vec<String>,
        /// apply, config, interrupt or post-interrupt [default: from its start]
        #[arg(long)]
        stage: Option<String>,
        /// Do not ask
        #[arg(short = 'y', long = "confirm")]
        confirm: bool,
    },
    /// What the pods of a package print
    Logs {
        package: String,
        #[arg(long)]
        skyhook: String,
        #[arg(long = "node")]
        nodes: Vec<String>,
        #[arg(long)]
        stage: Option<String>,
        /// Go on as more comes
        #[arg(short, long)]
        follow: bool,
        /// The last lines only; -1 for all
        #[arg(long, default_value_t = -1, allow_negative_numbers = true)]
        tail: i64,
    },
}

pub(super) async fn act(
    cluster: &Cluster,
    global: &Global,
    format: Format,
    action: Action,
) -> Result<()> {
    match action {
        Action::Status { package, skyhook, nodes } => {
            let (all, hook) = (cluster.nodes().await?, cluster.skyhook(&skyhook).await?);
            status(&hook, &chosen(&all, &nodes)?, format, &package)
        }
        Action::Rerun { package, skyhook, nodes, stage, confirm } => {
            let all = cluster.nodes().await?;
            let stage = stage.as_deref().map(stage_of).transpose()?;
            let patches: Vec<(&Object, Value)> = chosen(&all, &nodes)?
                .into_iter()
                .filter_map(|node| Some((node, manual::rerun(node, &skyhook, &package, stage)?)))
                .collect();
            rerun(cluster, global, &package, &patches, confirm).await
        }
        Action::Logs { package, skyhook, nodes, stage, follow, tail } => {
            let wanted = Wanted { package, skyhook, nodes, stage, follow, tail };
            logs(cluster, global, &wanted).await
        }
    }
}

fn stage_of(word: &str) -> Result<Stage> {
    Ok(match word {
        "apply" => Stage::Apply,
        "config" => Stage::Config,
        "interrupt" => Stage::Interrupt,
        "post-interrupt" => Stage::PostInterrupt,
        _ => bail!("invalid stage {word:?}: want apply, config, interrupt or post-interrupt"),
    })
}

fn status(hook: &Object, nodes: &[&Object], format: Format, package: &str) -> Result<()> {
    let of_node = |node: &&Object| -> Vec<(Value, PackageRecord)> {
        let packages = manual::packages(node, hook.name()).unwrap_or_default();
        let known = packages.into_iter().filter(|known| known.name == package);
        known.map(|known| (Value::from(node.name().as_str()), known)).collect()
    };
    let found: Vec<(Value, PackageRecord)> = nodes.iter().flat_map(of_node).collect();
    let entries = found.iter().map(|(node, package)| {
        let mut entry = package_json(package);
        entry["nodeName"] = node.clone();
        entry
    });
    if shown::raw(format, &entries.collect())? {
        return Ok(());
    }
    let mut headers = vec!["NODE", "PACKAGE", "VERSION", "STAGE", "STATE"];
    let wide = format == Format::Wide;
    headers.extend(["RESTARTS", "IMAGE"].iter().filter(|_| wide));
    let rows: Vec<Vec<String>> = found
        .iter()
        .map(|(node, package)| {
            let mut row = vec![
                node.as_str().unwrap_or_default().to_owned(),
                package.name.clone(),
                package.version.clone(),
                package.stage.to_owned(),
                package.state_word().to_owned(),
            ];
            if wide {
                row.extend([package.restarts.to_string(), package.image.clone()]);
            }
            row
        })
        .collect();
    let packages = hook.spec().get("packages").and_then(Value::as_object);
    let packages: Vec<String> = packages
        .into_iter()
        .flatten()
        .map(|(name, package)| format!("{name}:{}", text(package, "version")))
        .collect();
    let head = format!("Skyhook: {}\nPackages: {}\n\n", hook.name(), packages.join(", "));
    output::print(&format!("{head}{}", shown::table(&headers, &rows)))
}

async fn rerun(
    cluster: &Cluster,
    global: &Global,
    package: &str,
    patches: &[(&Object, Value)],
    confirm: bool,
) -> Result<()> {
    let count = patches.len();
    if count == 0 {
        bail!("none of these nodes has package {package:?}");
    }
    if global.dry_run {
        return output::print(&format!(
            "[dry-run] Would reset package {package:?} on {count} node(s)\n"
        ));
    }
    if !agrees(&format!("This will run package {package:?} again on {count} node(s)."), confirm)? {
        return Ok(());
    }
    for (node, patch) in patches {
        cluster.patch(Part::Node, node.name(), patch).await?;
    }
    output::print(&format!("Successfully reset package {package:?} on {count} node(s)\n"))
}

/// Whose output is wanted.
struct Wanted {
    package: String,
    skyhook: String,
    nodes: Vec<String>,
    stage: Option<String>,
    follow: bool,
    tail: i64,
}

async fn logs(cluster: &Cluster, global: &Global, wanted: &Wanted) -> Result<()> {
    let namespace = &global.namespace;
    let path = format!(
        "/api/v1/namespaces/{namespace}/pods?labelSelector=skyhook.nvidia.com%2Fname%3D{}",
        wanted.skyhook
    );
    let mut pods = cluster.list(&path).await?;
    let all = cluster.nodes().await?;
    let nodes = chosen(&all, &wanted.nodes)?;
    pods.retain(|pod| {
        let label = pod.label("skyhook.nvidia.com/package").unwrap_or_default();
        let on = pod.spec_text("nodeName");
        label.starts_with(&format!("{}-", wanted.package))
            && (wanted.nodes.is_empty() || nodes.iter().any(|node| node.name() == on))
    });
    pods.sort_by_key(|pod| std::cmp::Reverse(pod.created_at()));
    if pods.is_empty() {
        return output::print(&format!("No pods found for package {:?}\n", wanted.package));
    }
    for (at, pod) in pods.iter().enumerate() {
        if at > 0 {
            output::print("---\n")?;
        }
        for container in containers(pod, wanted.stage.as_deref()) {
            of_container(cluster, wanted, pod, &container).await?;
        }
    }
    Ok(())
}

/// The containers that do the work: not the one that only copies files.
fn containers(pod: &Object, stage: Option<&str>) -> Vec<String> {
    let all = list(pod.spec(), "initContainers").iter().map(|container| text(container, "name"));
    let fits = |name: &&str| match stage {
        Some(stage) => name.ends_with(stage) || name.contains(&format!("-{stage}")),
        None => !name.ends_with("-init"),
    };
    all.filter(fits).map(str::to_owned).collect()
}

async fn of_container(
    cluster: &Cluster,
    wanted: &Wanted,
    pod: &Object,
    container: &str,
) -> Result<()> {
    let statuses = list(pod.status(), "initContainerStatuses");
    let state = statuses.iter().find(|status| text(status, "name") == container);
    let state = state.map_or_else(|| "Waiting".to_owned(), |status| said(&status["state"]));
    let (name, on) = (pod.name(), pod.spec_text("nodeName"));
    output::print(&format!("==> Pod: {name}, Container: {container} [{state}], Node: {on} <==\n"))?;
    let tail = if wanted.tail < 0 { String::new() } else { format!("&tailLines={}", wanted.tail) };
    let path = format!(
        "/api/v1/namespaces/{}/pods/{name}/log?container={container}&follow={}{tail}",
        pod.namespace(),
        wanted.follow
    );
    // One that has not begun has nothing to say, which is no reason to leave out the others.
    if let Err(error) = cluster.follow(&path).await {
        output::print(&format!("({error})\n"))?;
    }
    Ok(())
}

/// A container's state in a word.
fn said(state: &Value) -> String {
    if state["running"].is_object() {
        return "Running".to_owned();
    }
    match state["terminated"]["exitCode"].as_i64() {
        Some(0) => "Completed".to_owned(),
        Some(code) => format!("Exit: {code}"),
        None => state["waiting"]["reason"].as_str().unwrap_or("Waiting").to_owned(),
    }
}
