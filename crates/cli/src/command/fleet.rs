//! `convoy fleet`: attaches simulated nodes to any API server.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use convoy_sim::fleet::{Fleet, Settings, connect};
use convoy_sim::scenario::Scenario;

use super::signal::shutdown_signal;
use crate::output;

/// Attach simulated nodes to an API server and run the pods bound to them
///
/// Nodes register and renew their leases; pods start, become ready, crash and complete. The
/// scenario sets latencies and failures. SIGINT or SIGTERM stops the simulation.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Kubeconfig file [default: as kubectl]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: the current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    #[command(flatten)]
    simulation: Simulation,
    /// Schedule pods to the simulated nodes, for API servers without a scheduler
    #[arg(long)]
    schedule: bool,
    /// Delete the simulated nodes at exit
    #[arg(long)]
    remove_nodes: bool,
}

/// The flags that describe a simulated fleet.
#[derive(Debug, clap::Args)]
pub(crate) struct Simulation {
    /// Number of simulated nodes, in the proportions of the scenario's groups
    #[arg(long, value_name = "N")]
    nodes: Option<u32>,
    /// Scenario file with nodes, latencies and failures
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Random seed of the simulation; overrides the scenario's seed
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
}

impl Simulation {
    /// Whether the flags give a number of nodes.
    pub(crate) fn has_nodes(&self) -> bool {
        self.nodes.is_some()
    }

    /// The scenario of the flags; without any, the default one.
    pub(crate) fn scenario_or_default(self) -> Result<Scenario> {
        let seed = self.seed;
        let mut found = self.scenario()?.unwrap_or_default();
        found.seed = seed.unwrap_or(found.seed);
        Ok(found)
    }

    /// The scenario to simulate, if any flag asks for one.
    pub(crate) fn scenario(self) -> Result<Option<Scenario>> {
        let Self { nodes, scenario, seed } = self;
        if nodes.is_none() && scenario.is_none() {
            return Ok(None);
        }
        let mut found = match scenario {
            None => Scenario::default(),
            Some(file) => {
                let name = file.display();
                let text = std::fs::read_to_string(&file)
                    .with_context(|| format!("could not read the scenario {name}"))?;
                Scenario::from_yaml(&text).with_context(|| format!("invalid scenario {name}"))?
            }
        };
        if let Some(nodes) = nodes {
            let spread = found.with_nodes_in_every_group(nodes);
            found = spread.context("invalid value for --nodes")?;
        }
        if let Some(seed) = seed {
            found.seed = seed;
        }
        Ok(Some(found))
    }
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    super::block_on(attach(args))?;
    Ok(ExitCode::SUCCESS)
}

async fn attach(args: Args) -> Result<()> {
    let Args { kubeconfig, context, simulation, schedule, remove_nodes } = args;
    let Some(scenario) = simulation.scenario()? else {
        bail!("no nodes to simulate; pass --nodes or --scenario");
    };
    let count: u32 = scenario.nodes.iter().map(|template| template.count).sum();
    let shutdown = shutdown_signal()?;
    let client = connect(kubeconfig.as_deref(), context).await?;
    let settings = Settings {
        runs_scheduler: schedule,
        removes_nodes: remove_nodes,
        ..Settings::new(scenario)
    };
    let mut fleet = Fleet::start(client, settings);
    tokio::pin!(shutdown);
    tokio::select! {
        _ = fleet.ready() => {
            output::print(&format!("{count} simulated nodes are ready\n"))?;
            shutdown.await;
        }
        () = &mut shutdown => {}
    }
    fleet.end().await;
    Ok(())
}
