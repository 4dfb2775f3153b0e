//! `convoy clusters`: manages the logical clusters of a running `convoy up`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Subcommand;
use http::Method;
use kube::config::Kubeconfig;
use serde_json::{Value, json};

use super::up::{LOGICAL_CLUSTERS, default_directory};
use crate::client::{self, Client};
use crate::output::{self, Format};
use crate::text;

/// Create, delete and list the logical clusters of a running `convoy up`
///
/// Each logical cluster is an independent API server under /clusters/NAME, with a context in the
/// kubeconfig: convoy-NAME, unless `convoy up --context-prefix` says otherwise.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
    /// Kubeconfig file [default: admin.kubeconfig in ~/.local/share/convoy]
    #[arg(long, value_name = "FILE", env = "KUBECONFIG", global = true, hide_env_values = true)]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: the current context]
    #[arg(long, value_name = "NAME", global = true)]
    context: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Create clusters and wait until they are ready
    Create {
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// Description stored with the clusters
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
    },
    /// Delete clusters with all their objects and wait until they are gone
    Delete {
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// List the clusters
    List {
        /// Output format
        #[arg(short, long, value_enum, default_value_t = Format::Text)]
        output: Format,
    },
}

/// How long to wait for a cluster to become ready, or to be deleted.
const PHASE_TIMEOUT: Duration = Duration::from_mins(1);
/// How long to wait for the server to add the contexts to the kubeconfig.
const KUBECONFIG_TIMEOUT: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    super::block_on(act(args))?;
    Ok(ExitCode::SUCCESS)
}

async fn act(args: Args) -> Result<()> {
    let Args { action, kubeconfig, context } = args;
    let files = match kubeconfig {
        Some(files) => files,
        None => default_directory()?.join("admin.kubeconfig"),
    };
    let client = Client::new(client::read(&files)?, context.as_deref()).await?;
    match action {
        Action::Create { names, description } => {
            for name in &names {
                create(&client, name, description.as_deref()).await?;
            }
            await_phase(&client, &names, Some("Ready")).await?;
            let known = await_contexts(&client, &files, &names).await?;
            for name in &names {
                let command = kubectl_command(&client, &known, name);
                output::print(&format!("cluster {name} is ready: {command}\n"))?;
            }
        }
        Action::Delete { names } => {
            for name in &names {
                client.send(Method::DELETE, &format!("{LOGICAL_CLUSTERS}/{name}"), None).await?;
            }
            await_phase(&client, &names, None).await?;
            for name in &names {
                output::print(&format!("cluster {name} deleted\n"))?;
            }
        }
        Action::List { output } => list(&client, &client::read(&files)?, output).await?,
    }
    Ok(())
}

async fn create(client: &Client, name: &str, description: Option<&str>) -> Result<()> {
    let mut cluster = json!({
        "apiVersion": "convoy.dev/v1", "kind": "LogicalCluster", "metadata": {"name": name},
    });
    if let Some(description) = description {
        cluster["spec"] = json!({"description": description});
    }
    client.send(Method::POST, LOGICAL_CLUSTERS, Some(&cluster)).await?;
    Ok(())
}

/// Waits until all clusters have reached a phase, or without one until they are gone. Lists all
/// of them in one request, so that a hundred clusters cost no more requests than one.
async fn await_phase(client: &Client, names: &[String], phase: Option<&str>) -> Result<()> {
    let begun = Instant::now();
    loop {
        let answer = client.send(Method::GET, LOGICAL_CLUSTERS, None).await?;
        let found = |name: &str| {
            let mut items = answer["items"].as_array().into_iter().flatten();
            items.find(|item| item["metadata"]["name"] == name)
        };
        let is_there = |name: &&String| match (phase, found(name)) {
            (None, found) => found.is_none(),
            (Some(phase), found) => found.is_some_and(|item| item["status"]["phase"] == phase),
        };
        let Some(late) = names.iter().find(|name| !is_there(name)) else { return Ok(()) };
        if begun.elapsed() > PHASE_TIMEOUT {
            bail!(
                "timed out waiting for cluster {late} to be {}; the server continues",
                phase.unwrap_or("deleted")
            );
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Waits until the kubeconfig has a context for each cluster, and returns it as it is then.
async fn await_contexts(
    client: &Client,
    files: &std::path::Path,
    names: &[String],
) -> Result<Kubeconfig> {
    let begun = Instant::now();
    loop {
        let config = client::read(files)?;
        let has_all = names.iter().all(|name| context_of(client, &config, name).is_some());
        if has_all || begun.elapsed() > KUBECONFIG_TIMEOUT {
            return Ok(config);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// The kubectl command that reaches a cluster: by its context, or by its address if the kubeconfig
/// is a copy that the server does not update.
fn kubectl_command(client: &Client, config: &Kubeconfig, name: &str) -> String {
    match context_of(client, config, name) {
        Some(context) => format!("kubectl --context {context}"),
        None => format!("kubectl --server {}/clusters/{name}", client.url),
    }
}

/// The context that reaches a logical cluster.
fn context_of<'a>(client: &Client, config: &'a Kubeconfig, name: &str) -> Option<&'a str> {
    client::context_of(config, &format!("{}/clusters/{name}", client.url))
}

async fn list(client: &Client, config: &Kubeconfig, output: Format) -> Result<()> {
    let answer = client.send(Method::GET, LOGICAL_CLUSTERS, None).await?;
    let items = answer["items"].as_array().into_iter().flatten();
    let clusters: Vec<Value> = items
        .map(|item| {
            let name = item["metadata"]["name"].as_str().unwrap_or_default();
            let leaves = !item["metadata"]["deletionTimestamp"].is_null();
            let phase = item["status"]["phase"].as_str().unwrap_or("Pending");
            json!({
                "name": name,
                "phase": if leaves { "Terminating" } else { phase },
                "context": context_of(client, config, name),
                "url": format!("{}/clusters/{name}", client.url),
            })
        })
        .collect();
    match output {
        Format::Text => output::print(&text::clusters(&clusters)),
        format => output::print_value(&json!({"clusters": clusters}), format),
    }
}
