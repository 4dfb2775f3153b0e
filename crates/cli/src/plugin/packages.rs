//! `kubectl skyhook package`.

use anyhow::{Result, bail};
use clap::Subcommand;
use convoy_api::Object;
use convoy_api::object::member::{list, text};
use convoy_api::skyhook::Stage;
use convoy_plan::dialect::skyhook::manual::{self, PackageRecord};
use serde_json::Value;

use super::cluster::{Cluster, PatchTarget};
use super::nodes::{package_json, select_nodes};
use super::{Format, Global, render};
use crate::output::{self, confirmed};

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Show the status of a package on the nodes of a Skyhook
    Status {
        /// Name of the package
        package: String,
        /// Name of the Skyhook
        #[arg(long)]
        skyhook: String,
        /// Node, by name or regular expression; can be repeated
        #[arg(long = "node")]
        nodes: Vec<String>,
    },
    /// Run a package again on nodes
    Rerun {
        /// Name of the package
        package: String,
        /// Name of the Skyhook
        #[arg(long)]
        skyhook: String,
        /// Node, by name or regular expression; can be repeated
        #[arg(long = "node", required = true)]
        nodes: Vec<String>,
        /// Stage to start from: apply, config, interrupt or post-interrupt [default: the first]
        #[arg(long)]
        stage: Option<String>,
        /// Skip the confirmation prompt
        #[arg(short = 'y', long = "confirm")]
        confirm: bool,
    },
    /// Print the logs of a package
    Logs {
        /// Name of the package
        package: String,
        /// Name of the Skyhook
        #[arg(long)]
        skyhook: String,
        /// Node, by name or regular expression; can be repeated
        #[arg(long = "node")]
        nodes: Vec<String>,
        /// Only containers of this stage
        #[arg(long)]
        stage: Option<String>,
        /// Stream new lines
        #[arg(short, long)]
        follow: bool,
        /// Number of lines from the end; -1 for all
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
            status(&hook, &select_nodes(&all, &nodes)?, format, &package)
        }
        Action::Rerun { package, skyhook, nodes, stage, confirm } => {
            let all = cluster.nodes().await?;
            let stage = stage.as_deref().map(parse_stage).transpose()?;
            let patches: Vec<(&Object, Value)> = select_nodes(&all, &nodes)?
                .into_iter()
                .filter_map(|node| Some((node, manual::rerun(node, &skyhook, &package, stage)?)))
                .collect();
            rerun(cluster, global, &package, &patches, confirm).await
        }
        Action::Logs { package, skyhook, nodes, stage, follow, tail } => {
            let query = LogQuery { package, skyhook, nodes, stage, follow, tail };
            logs(cluster, global, &query).await
        }
    }
}

fn parse_stage(word: &str) -> Result<Stage> {
    Ok(match word {
        "apply" => Stage::Apply,
        "config" => Stage::Config,
        "interrupt" => Stage::Interrupt,
        "post-interrupt" => Stage::PostInterrupt,
        _ => bail!("invalid stage {word:?}; valid: apply, config, interrupt, post-interrupt"),
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
    if render::print_structured(format, &entries.collect())? {
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
    output::print(&format!("{head}{}", render::table(&headers, &rows)))
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
        bail!("package {package:?} not found on the selected nodes");
    }
    if global.dry_run {
        return output::print(&format!(
            "[dry-run] Would reset package {package:?} on {count} node(s)\n"
        ));
    }
    if !confirmed(&format!("This will run package {package:?} again on {count} node(s)."), confirm)?
    {
        return Ok(());
    }
    for (node, patch) in patches {
        cluster.patch(PatchTarget::Node, node.name(), patch).await?;
    }
    output::print(&format!("Successfully reset package {package:?} on {count} node(s)\n"))
}

/// Which package logs to print.
struct LogQuery {
    package: String,
    skyhook: String,
    nodes: Vec<String>,
    stage: Option<String>,
    follow: bool,
    tail: i64,
}

async fn logs(cluster: &Cluster, global: &Global, query: &LogQuery) -> Result<()> {
    let namespace = &global.namespace;
    let path = format!(
        "/api/v1/namespaces/{namespace}/pods?labelSelector=skyhook.nvidia.com%2Fname%3D{}",
        query.skyhook
    );
    let mut pods = cluster.list(&path).await?;
    let all = cluster.nodes().await?;
    let nodes = select_nodes(&all, &query.nodes)?;
    pods.retain(|pod| {
        let label = pod.label("skyhook.nvidia.com/package").unwrap_or_default();
        let on = pod.spec_text("nodeName");
        label.starts_with(&format!("{}-", query.package))
            && (query.nodes.is_empty() || nodes.iter().any(|node| node.name() == on))
    });
    pods.sort_by_key(|pod| std::cmp::Reverse(pod.created_at()));
    if pods.is_empty() {
        return output::print(&format!("No pods found for package {:?}\n", query.package));
    }
    for (at, pod) in pods.iter().enumerate() {
        if at > 0 {
            output::print("---\n")?;
        }
        for container in containers(pod, query.stage.as_deref()) {
            print_container_log(cluster, query, pod, &container).await?;
        }
    }
    Ok(())
}

/// The init containers of a stage; by default all but the one that copies files.
fn containers(pod: &Object, stage: Option<&str>) -> Vec<String> {
    let all = list(pod.spec(), "initContainers").iter().map(|container| text(container, "name"));
    let fits = |name: &&str| match stage {
        Some(stage) => name.ends_with(stage) || name.contains(&format!("-{stage}")),
        None => !name.ends_with("-init"),
    };
    all.filter(fits).map(str::to_owned).collect()
}

async fn print_container_log(
    cluster: &Cluster,
    query: &LogQuery,
    pod: &Object,
    container: &str,
) -> Result<()> {
    let statuses = list(pod.status(), "initContainerStatuses");
    let state = statuses.iter().find(|status| text(status, "name") == container);
    let state =
        state.map_or_else(|| "Waiting".to_owned(), |status| container_state(&status["state"]));
    let (name, on) = (pod.name(), pod.spec_text("nodeName"));
    output::print(&format!("==> Pod: {name}, Container: {container} [{state}], Node: {on} <==\n"))?;
    let tail = if query.tail < 0 { String::new() } else { format!("&tailLines={}", query.tail) };
    let path = format!(
        "/api/v1/namespaces/{}/pods/{name}/log?container={container}&follow={}{tail}",
        pod.namespace(),
        query.follow
    );
    // A container that has not started has no log; the others are still printed.
    if let Err(error) = cluster.follow(&path).await {
        output::print(&format!("({error})\n"))?;
    }
    Ok(())
}

/// A container's state as a word.
fn container_state(state: &Value) -> String {
    if state["running"].is_object() {
        return "Running".to_owned();
    }
    match state["terminated"]["exitCode"].as_i64() {
        Some(0) => "Completed".to_owned(),
        Some(code) => format!("Exit: {code}"),
        None => state["waiting"]["reason"].as_str().unwrap_or("Waiting").to_owned(),
    }
}
