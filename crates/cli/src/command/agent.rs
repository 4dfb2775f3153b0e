//! `convoy agent`: applies what a hub asks of one member cluster.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::ValueEnum;
use convoy_api::GroupKind;
use convoy_api::kinds::LEASE;
use convoy_api::ocm::names::{MANAGED_CLUSTER, MANIFEST_WORK};
use convoy_controllers::connect::{ConnectError, Connection, connect, connect_to_lead};
use convoy_controllers::lease::Election;
use convoy_controllers::tenure::LeaseTiming;
use convoy_controllers::{Cluster, Clusters, Members, Scope, Settings, run as run_loop};
use convoy_plan::Dialect;
use convoy_plan::dialect::fleet::names::member_namespace;
use convoy_plan::dialect::fleet_agent::names::{INTERNAL_MEMBER_CLUSTER, WORK};
use convoy_plan::dialect::fleet_agent::{AgentTimings, FleetAgent};
use kube::Client;

use super::agent_timings::AgentTimingFlags;
use super::features::FeatureFlags;
use super::leadership::{identity, lead};
use super::ocm_agent::{AgentPart, OcmAgentFlags, OcmAgents, Surroundings};
use super::property_provider::{MemberFacts, PropertyFlags};
use super::signal::shutdown_signal;
use super::{decision_log, metrics};
use crate::logging::LogFlags;
use crate::{logging, output};

/// Apply what a hub asks of a member cluster; replaces KubeFleet's member agent and the work and
/// registration agents of Open Cluster Management
///
/// Start one process for each member cluster. SIGINT or SIGTERM stops it after the writes in
/// progress.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the member cluster, as its MemberCluster or ManagedCluster on the hub
    #[arg(long, value_name = "NAME", visible_alias = "spoke-cluster-name")]
    cluster: String,
    /// APIs to serve, separated by commas
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "fleet",
        env = "CONVOY_AGENT_API"
    )]
    api: Vec<Api>,
    /// Agents of Open Cluster Management to run, separated by commas; leave out the one that
    /// upstream's agent does
    #[arg(long, value_enum, value_name = "PARTS", value_delimiter = ',', default_values = ["work-agent", "registration-agent"])]
    ocm_parts: Vec<AgentPart>,
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
    /// Serve /metrics, /healthz, /readyz and /debug/log-level here; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS")]
    metrics_listen: Option<SocketAddr>,
    #[command(flatten)]
    log: LogFlags,
    /// Run only while holding a Lease on the member cluster, for several replicas of which one is
    /// active
    #[arg(long)]
    leader_elect: bool,
    /// Namespace of the Lease
    #[arg(long, value_name = "NAMESPACE", default_value = "convoy-system")]
    lease_namespace: String,
    /// Name of the Lease
    #[arg(long, value_name = "NAME", default_value = "convoy-agent")]
    lease_name: String,
    /// Seconds for which the Lease is valid; no write may take longer than a third of it
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(3..=3600))]
    lease_duration: u64,
    #[command(flatten)]
    fleet: FleetAgentFlags,
    #[command(flatten)]
    ocm: OcmAgentFlags,
    #[command(flatten)]
    features: FeatureFlags,
}

/// The API of a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Api {
    /// KubeFleet: Works, and the membership of the cluster
    Fleet,
    /// Open Cluster Management: ManifestWorks, and the registration of the cluster
    Ocm,
}

/// The agents that run for a member cluster.
#[derive(Debug, Default)]
pub(super) struct Agents {
    pub(super) fleet: Option<FleetAgents>,
    pub(super) ocm: Option<OcmAgents>,
}

/// The flags of KubeFleet's member agent.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct FleetAgentFlags {
    #[command(flatten)]
    timings: AgentTimingFlags,
    #[command(flatten)]
    properties: PropertyFlags,
}

impl FleetAgentFlags {
    pub(super) fn resolve(self) -> Result<FleetAgents> {
        let Self { timings, properties } = self;
        Ok(FleetAgents { timings: timings.resolve()?, properties })
    }
}

/// What the flags ask of the agents of KubeFleet.
#[derive(Clone, Copy, Debug)]
pub(super) struct FleetAgents {
    timings: AgentTimings,
    properties: PropertyFlags,
}

/// How the agents of a member cluster reach it, and others do.
#[derive(Clone, Copy)]
pub(super) struct MemberAccess<'a> {
    pub(super) client: &'a Client,
    pub(super) server: &'a str,
    pub(super) certificate_authority: &'a str,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    super::block_on_one(serve(args))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(args: Args) -> Result<()> {
    let Args {
        cluster,
        api,
        ocm_parts,
        hub_kubeconfig,
        hub_context,
        member_kubeconfig,
        member_context,
        request_timeout,
        observe,
        decision_log,
        metrics_listen,
        log,
        leader_elect,
        lease_namespace,
        lease_name,
        lease_duration,
        fleet,
        ocm,
        features,
    } = args;
    let (fleet, ocm) = (fleet.resolve()?, ocm.resolve(ocm_parts, features.resolve()?.1));
    let agents = Agents {
        fleet: api.contains(&Api::Fleet).then_some(fleet),
        ocm: api.contains(&Api::Ocm).then_some(ocm),
    };
    logging::init(log, tracing::Level::INFO);
    let shutdown = shutdown_signal()?;
    // An observer writes nothing, so it takes no Lease either.
    let timing =
        (leader_elect && !observe).then_some(LeaseTiming::new(Duration::from_secs(lease_duration)));
    let hub = connected(Some(&hub_kubeconfig), hub_context.as_deref(), timing).await;
    let hub = hub.context("could not connect to the hub")?;
    let member = connected(member_kubeconfig.as_deref(), member_context.as_deref(), timing).await;
    let member = member.context("could not connect to the member cluster")?;
    let dialects = agents.dialects(&cluster, &hub.server, MemberAccess::of(&member)).await;
    let decision_log = decision_log::open(decision_log)?;
    let settings = Settings { observe, decision_log, ..Settings::new(dialects) };
    if let Some(address) = metrics_listen {
        metrics::serve(address, Arc::clone(&settings.metrics)).await?;
    }
    let limit = Duration::from_secs(request_timeout);
    let clusters = clusters(
        &cluster,
        Cluster { request_limit: limit, ..Cluster::new(hub.client) },
        Cluster { request_limit: limit, ..Cluster::new(member.client.clone()) },
    );
    let does = if observe { "Observing" } else { "Running" };
    output::print(&format!(
        "{does} the agent of {cluster} between {} and {}\n",
        hub.url, member.url
    ))?;
    let Some(timing) = timing else {
        run_loop(clusters, settings, shutdown).await;
        return Ok(());
    };
    // On the member, so that a large fleet does not burden its hub with renewals.
    let election = Election::new(&lease_namespace, &lease_name, &identity());
    lead(member.client, clusters, settings, Election { timing, ..election }, shutdown).await
}

async fn connected(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
    timing: Option<LeaseTiming>,
) -> Result<Connection, ConnectError> {
    match timing {
        Some(timing) => connect_to_lead(kubeconfig, context, timing).await,
        None => connect(kubeconfig, context).await,
    }
}

impl<'a> MemberAccess<'a> {
    fn of(connection: &'a Connection) -> Self {
        let Connection { client, server, certificate_authority, .. } = connection;
        Self { client, server, certificate_authority }
    }
}

impl Agents {
    /// The dialects of one member's agents. Created once, and used until the process exits.
    pub(super) async fn dialects(
        &self,
        cluster: &str,
        hub_server: &str,
        member: MemberAccess<'_>,
    ) -> Vec<&'static dyn Dialect> {
        let mut dialects: Vec<&'static dyn Dialect> = Vec::new();
        let asks = self.ocm.is_some() || self.fleet.is_some_and(|it| it.properties.is_on());
        let version =
            if asks { kubernetes_version(member.client).await } else { String::default() };
        let kubernetes_version = version.as_str();
        if let Some(FleetAgents { timings, properties }) = self.fleet {
            let MemberAccess { server, certificate_authority, .. } = member;
            let facts = MemberFacts { kubernetes_version, server, certificate_authority };
            let agent = FleetAgent::new(cluster).with(timings);
            dialects.push(Box::leak(Box::new(agent.providing(properties.provider(facts)))));
        }
        if let Some(ocm) = &self.ocm {
            dialects.extend(ocm.dialects(Surroundings { cluster, hub_server, kubernetes_version }));
        }
        dialects
    }
}

/// The version of an API server; empty if it does not answer.
async fn kubernetes_version(client: &Client) -> String {
    match client.apiserver_version().await {
        Ok(version) => version.git_version,
        Err(error) => {
            tracing::warn!(%error, "the version of the member cluster is not known");
            String::new()
        }
    }
}

/// The hub and one member. On the hub an agent may read only what is the member's.
pub(super) fn clusters(name: &str, hub: Cluster, member: Cluster) -> Clusters {
    let fleet = Scope::Namespace(member_namespace(name));
    let own = Scope::Namespace(name.to_owned());
    let scopes: [(GroupKind, Scope); 5] = [
        (WORK, fleet.clone()),
        (INTERNAL_MEMBER_CLUSTER, fleet),
        (MANIFEST_WORK, own.clone()),
        (LEASE, own),
        (MANAGED_CLUSTER, Scope::Name(name.to_owned())),
    ];
    let members = Members::from([(name.into(), Arc::new(member))]);
    Clusters::fixed(Cluster { scopes: scopes.into(), ..hub }, members)
}
