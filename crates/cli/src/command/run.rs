//! `convoy run`: the control loop against any Kubernetes API server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use convoy_controllers::connect::{Connection, connect, connect_to_lead};
use convoy_controllers::lease::Election;
use convoy_controllers::tenure::LeaseTiming;
use convoy_controllers::{Settings, run as run_loop};

use super::controller::{Controller, DialectFlags};
use super::ending::Ending;
use super::leadership::{identity, lead};
use super::signal::shutdown_signal;
use super::webhooks::Webhooks;
use super::{decision_log, metrics};
use crate::logging::LogFlags;
use crate::{logging, output};

/// Run the controllers against a Kubernetes API server
///
/// SIGINT or SIGTERM stops them after the writes in progress. Webhooks are answered for five seconds
/// from then on, or until a second signal.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Kubeconfig file [default: as kubectl, or the pod's service account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: the current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Controllers to run, separated by commas
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "apps",
        env = "CONVOY_DIALECTS"
    )]
    dialects: Vec<Controller>,
    /// Make decisions and log them, but write nothing to the API server
    #[arg(long)]
    observe: bool,
    /// Append every decision to a file, as JSON lines
    #[arg(long, value_name = "FILE")]
    decision_log: Option<PathBuf>,
    /// Maximum number of rollouts with writes in progress
    #[arg(long, value_name = "NUMBER", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    concurrency: u16,
    /// Run only while holding a Lease, for several replicas of which one is active
    #[arg(long)]
    leader_elect: bool,
    /// Namespace of the Lease
    #[arg(long, value_name = "NAMESPACE", default_value = "convoy-system")]
    lease_namespace: String,
    /// Name of the Lease
    #[arg(long, value_name = "NAME", default_value = "convoy")]
    lease_name: String,
    /// Seconds for which the Lease is valid; no write may take longer than a third of it
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(3..=3600))]
    lease_duration: u64,
    /// Serve /metrics, /healthz, /readyz and /debug/log-level here; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS")]
    metrics_listen: Option<SocketAddr>,
    #[command(flatten)]
    log: LogFlags,
    #[command(flatten)]
    webhooks: Webhooks,
    #[command(flatten)]
    flags: DialectFlags,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    super::block_on_one(serve(args))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(args: Args) -> Result<()> {
    let Args {
        kubeconfig,
        context,
        dialects,
        observe,
        decision_log,
        concurrency,
        leader_elect,
        lease_namespace,
        lease_name,
        lease_duration,
        metrics_listen,
        log,
        webhooks,
        flags,
    } = args;
    logging::init(log, tracing::Level::INFO);
    let (shutdown, mut ending) = (shutdown_signal()?, Ending::watch()?);
    let (kubeconfig, context) = (kubeconfig.as_deref(), context.as_deref());
    // An observer writes nothing, so it takes no Lease either.
    let timing =
        (leader_elect && !observe).then_some(LeaseTiming::new(Duration::from_secs(lease_duration)));
    let connection = match timing {
        Some(timing) => connect_to_lead(kubeconfig, context, timing).await?,
        None => connect(kubeconfig, context).await?,
    };
    let settings = Settings {
        observe,
        concurrency: usize::from(concurrency),
        decision_log: decision_log::open(decision_log)?,
        ..Settings::new(Controller::dialects(dialects, &flags.options()?))
    };
    if let Some(address) = metrics_listen {
        metrics::serve(address, Arc::clone(&settings.metrics)).await?;
    }
    let has_webhooks = webhooks.start(&connection, &settings.dialects).await?;
    announce(&connection, &settings)?;
    let metrics = Arc::clone(&settings.metrics);
    let shutdown = ending.begins(shutdown, &metrics);
    if let Some(timing) = timing {
        let election = Election::new(&lease_namespace, &lease_name, &identity());
        let (client, election) = (connection.client, Election { timing, ..election });
        lead(client.clone(), client, settings, election, shutdown).await?;
    } else {
        run_loop(connection.client, settings, shutdown).await;
    }
    if has_webhooks {
        ending.answers_on().await;
    }
    Ok(())
}

fn announce(connection: &Connection, settings: &Settings) -> Result<()> {
    let names: Vec<&str> = settings.dialects.iter().map(|dialect| dialect.name()).collect();
    let does = if settings.observe { "Observing" } else { "Running" };
    output::print(&format!("{does} {} on {}\n", names.join(", "), connection.url))
}
