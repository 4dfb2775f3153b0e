//! `convoy fleet`: simulated nodes on any API server.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use convoy_sim::fleet::{Fleet, Settings, connect};
use convoy_sim::scenario::Scenario;

use super::up::shutdown_signal;
use crate::output;

/// Attaches simulated nodes to an API server, and runs the pods that are bound to them
///
/// Nodes register, renew their leases and misbehave, and pods start, become ready, crash and
/// end, as the scenario says. Stops on SIGINT and SIGTERM.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How to reach the API server [default: as kubectl]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use [default: its current one]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    #[command(flatten)]
    simulation: Simulation,
    /// Bind pods that name no node, too: for API servers without a scheduler
    #[arg(long)]
    schedule: bool,
    /// Delete the nodes when ending
    #[arg(long)]
    remove_nodes: bool,
}

/// What a simulated fleet is made of.
#[derive(Debug, clap::Args)]
pub(crate) struct Simulation {
    /// Simulate so many nodes, like the scenario's first ones
    #[arg(long, value_name = "N")]
    nodes: Option<u32>,
    /// How the simulated fleet looks and misbehaves
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Where the fleet's draws come from, in place of the scenario's seed
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
}

impl Simulation {
    /// What was asked for; none if nothing was.
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
                Scenario::from_yaml(&text)
                    .with_context(|| format!("the scenario {name} is refused"))?
            }
        };
        if let Some(nodes) = nodes {
            found = found.with_nodes(nodes);
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
        bail!("nothing to simulate: give --nodes, or --scenario");
    };
    let count: u32 = scenario.nodes.iter().map(|template| template.count).sum();
    let shutdown = shutdown_signal()?;
    let client = connect(kubeconfig.as_deref(), context).await?;
    let settings =
        Settings { schedules: schedule, removes_nodes: remove_nodes, ..Settings::new(scenario) };
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
