//! `convoy agent`: applies what a hub asks of one member cluster.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use convoy_controllers::connect::connect;
use convoy_controllers::{Cluster, Clusters, Members, Settings, run as run_loop};
use convoy_plan::dialect::fleet::names::member_namespace;
use convoy_plan::dialect::fleet_agent::FleetAgent;

use super::signal::shutdown_signal;
use super::{decision_log, metrics};
use crate::{logging, output};

/// Apply the Works of a KubeFleet hub on a member cluster; replaces KubeFleet's member agent
///
/// Start one process for each member cluster. SIGINT or SIGTERM stops it after the writes in
/// progress.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the member cluster, as its MemberCluster on the hub
    #[arg(long, value_name = "NAME")]
    cluster: String,
    /// Kubeconfig file of the hub
    #[arg(long, value_name = "FILE")]
    hub_kubeconfig: PathBuf,
    /// Context of the hub's kubeconfig [default: the current context]
    #[arg(long, value_name = "NAME")]
    hub_context: Option<String>,
    /// Kubeconfig file of the member cluster [default: as kubectl, or the pod's service account]
    #[arg(long, value_name = "FILE")]
    member_kubeconfig: Option<PathBuf>,
    /// Context of the member cluster's kubeconfig [default: the current context]
    #[arg(long, value_name = "NAME")]
    member_context: Option<String>,
    /// Seconds that a request other than a watch may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    request_timeout: u64,
    /// Make decisions and log them, but write nothing
    #[arg(long)]
    observe: bool,
    /// Append every decision to a file, as JSON lines
    #[arg(long, value_name = "FILE")]
    decision_log: Option<PathBuf>,
    /// Serve /metrics, /healthz and /readyz here; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS")]
    metrics_listen: Option<SocketAddr>,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    super::block_on_one(serve(args))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(args: Args) -> Result<()> {
    let Args {
        cluster,
        hub_kubeconfig,
        hub_context,
        member_kubeconfig,
        member_context,
        request_timeout,
        observe,
        decision_log,
        metrics_listen,
    } = args;
    logging::init(tracing::Level::INFO);
    let shutdown = shutdown_signal()?;
    let hub = connect(Some(&hub_kubeconfig), hub_context.as_deref()).await;
    let hub = hub.context("could not connect to the hub")?;
    let member = connect(member_kubeconfig.as_deref(), member_context.as_deref()).await;
    let member = member.context("could not connect to the member cluster")?;
    let settings = Settings {
        observe,
        decision_log: decision_log::open(decision_log)?,
        ..Settings::new(vec![agent(&cluster)])
    };
    if let Some(address) = metrics_listen {
        metrics::serve(address, Arc::clone(&settings.metrics)).await?;
    }
    let limit = Duration::from_secs(request_timeout);
    let clusters = clusters(
        &cluster,
        Cluster { request_limit: limit, ..Cluster::new(hub.client) },
        Cluster { request_limit: limit, ..Cluster::new(member.client) },
    );
    let does = if observe { "Observing" } else { "Running" };
    output::print(&format!(
        "{does} the agent of {cluster} between {} and {}\n",
        hub.url, member.url
    ))?;
    run_loop(clusters, settings, shutdown).await;
    Ok(())
}

/// The dialect of one member's agent. Created once, and used until the process exits.
pub(super) fn agent(cluster: &str) -> &'static FleetAgent {
    Box::leak(Box::new(FleetAgent::new(cluster)))
}

/// The hub and one member. On the hub an agent may read its own namespace only.
pub(super) fn clusters(name: &str, hub: Cluster, member: Cluster) -> Clusters {
    let namespace = member_namespace(name);
    let members = Members::from([(name.into(), Arc::new(member))]);
    Clusters::fixed(Cluster { namespace, ..hub }, members)
}
