//! `convoy clusters`: logical clusters of a running `convoy up`, by name.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Subcommand;
use http::Method;
use serde_json::{Value, json};

use super::up::default_directory;
use crate::client::{Client, Kubeconfig};
use crate::output::{self, Format};
use crate::text;

/// Makes, removes and lists the logical clusters of a running `convoy up`
///
/// Each is an API server of its own under /clusters/NAME, with a context of its own,
/// convoy-NAME, in the kubeconfig.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
    /// How to reach the server [default: admin.kubeconfig in ~/.local/share/convoy]
    #[arg(long, value_name = "FILE", env = "KUBECONFIG", global = true, hide_env_values = true)]
    kubeconfig: Option<PathBuf>,
    /// The context to use [default: the current one]
    #[arg(long, value_name = "NAME", global = true)]
    context: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Makes clusters, and waits until they serve
    Create {
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// What the clusters are for
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
    },
    /// Removes clusters with all that they hold, and waits until it is gone
    Delete {
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// Shows which clusters there are
    List {
        /// How to print them
        #[arg(short, long, value_enum, default_value_t = Format::Text)]
        output: Format,
    },
}

const PATH: &str = "/apis/convoy.dev/v1/logicalclusters";

/// How long a cluster may take to come or to go.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long the kubeconfig may take to follow.
const REFRESH: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

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
    let config = Kubeconfig::read(&files)?;
    let client = Client::new(&config, context.as_deref())?;
    match action {
        Action::Create { names, description } => {
            for name in &names {
                create(&client, name, description.as_deref()).await?;
            }
            await_phase(&client, &names, Some("Ready")).await?;
            let known = await_contexts(&files, &names).await?;
            for name in &names {
                let way = way(&client, &known, name);
                output::print(&format!("cluster {name} is ready: {way}\n"))?;
            }
        }
        Action::Delete { names } => {
            for name in &names {
                ask(&client, Method::DELETE, &format!("{PATH}/{name}"), None).await?;
            }
            await_phase(&client, &names, None).await?;
            for name in &names {
                output::print(&format!("cluster {name} is gone\n"))?;
            }
        }
        Action::List { output } => list(&client, output).await?,
    }
    Ok(())
}

/// An answer, which must be a success.
async fn ask(client: &Client, method: Method, path: &str, body: Option<&Value>) -> Result<Value> {
    let (code, answer) = client.send(method, path, body).await?;
    if code >= 400 {
        let message = answer["message"].as_str().unwrap_or("the server gave no reason");
        bail!("{message} ({code})");
    }
    Ok(answer)
}

async fn create(client: &Client, name: &str, description: Option<&str>) -> Result<()> {
    let mut cluster = json!({
        "apiVersion": "convoy.dev/v1", "kind": "LogicalCluster", "metadata": {"name": name},
    });
    if let Some(description) = description {
        cluster["spec"] = json!({"description": description});
    }
    ask(client, Method::POST, PATH, Some(&cluster)).await?;
    Ok(())
}

/// Waits until clusters have reached a phase; none: until they are gone. All of them are looked
/// at together, so that a hundred cost no more questions than one.
async fn await_phase(client: &Client, names: &[String], phase: Option<&str>) -> Result<()> {
    let begun = Instant::now();
    loop {
        let answer = ask(client, Method::GET, PATH, None).await?;
        let found = |name: &str| {
            let mut items = answer["items"].as_array().into_iter().flatten();
            items.find(|item| item["metadata"]["name"] == name)
        };
        let is_there = |name: &&String| match (phase, found(name)) {
            (None, found) => found.is_none(),
            (Some(phase), found) => found.is_some_and(|item| item["status"]["phase"] == phase),
        };
        let Some(late) = names.iter().find(|name| !is_there(name)) else { return Ok(()) };
        if begun.elapsed() > PATIENCE {
            bail!("cluster {late} is not {} yet; it goes on without us", phase.unwrap_or("gone"));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The kubeconfig as it is once it has a context for each cluster, or after a while.
async fn await_contexts(files: &std::path::Path, names: &[String]) -> Result<Kubeconfig> {
    let begun = Instant::now();
    loop {
        let config = Kubeconfig::read(files)?;
        let has_all = names.iter().all(|name| config.has_context(&format!("convoy-{name}")));
        if has_all || begun.elapsed() > REFRESH {
            return Ok(config);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// How to reach a cluster: by its context, or where the kubeconfig is a copy that the server does
/// not refresh, by its address.
fn way(client: &Client, config: &Kubeconfig, name: &str) -> String {
    let context = format!("convoy-{name}");
    if config.has_context(&context) {
        format!("kubectl --context {context}")
    } else {
        format!("kubectl --server {}/clusters/{name}", client.url)
    }
}

async fn list(client: &Client, output: Format) -> Result<()> {
    let answer = ask(client, Method::GET, PATH, None).await?;
    let items = answer["items"].as_array().into_iter().flatten();
    let clusters: Vec<Value> = items
        .map(|item| {
            let name = item["metadata"]["name"].as_str().unwrap_or_default();
            let leaves = !item["metadata"]["deletionTimestamp"].is_null();
            let phase = item["status"]["phase"].as_str().unwrap_or("Pending");
            json!({
                "name": name,
                "phase": if leaves { "Terminating" } else { phase },
                "context": format!("convoy-{name}"),
                "url": format!("{}/clusters/{name}", client.url),
            })
        })
        .collect();
    match output {
        Format::Text => output::print(&text::clusters(&clusters)),
        format => output::print_value(&json!({"clusters": clusters}), format),
    }
}
