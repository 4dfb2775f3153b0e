//! `convoy up`: a Kubernetes API server in one process.

mod background;
mod control;
mod directory;
mod members;
mod objects;
pub(super) mod process_file;
mod server_flags;
mod wait;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::ValueEnum;
use convoy_apiserver::home::{Home, OwnWebhooks};
use convoy_apiserver::server::Server;
use convoy_apiserver::transport::Transport;
use convoy_plan::DIALECTS;
use convoy_plan::dialect::fleet::names as fleet_names;
use convoy_sim::fleet::{self, Client, Fleet};
use convoy_sim::scenario::Scenario;
use serde_json::json;
use tokio::sync::{Notify, oneshot};

use self::background::BackgroundFlags;
use self::control::ControllerTask;
pub(super) use self::directory::default_directory;
use self::members::{MemberFlags, MemberSettings, MemberTasks};
use self::objects::Prerequisites;
use self::process_file::ProcessFile;
use self::server_flags::ServerFlags;
use self::wait::Wait;
use super::agent::{Agents, FleetAgentFlags};
use super::controller::{Controller, DialectFlags, Options};
use super::fleet::Simulation;
use super::ocm_agent::OcmAgentFlags;
use super::signal::{second_signal, shutdown_signal};
use crate::logging::LogFlags;
use crate::{logging, output, process};

/// Where the API server keeps its logical clusters.
pub(super) const LOGICAL_CLUSTERS: &str = "/apis/convoy.dev/v1/logicalclusters";

/// Run a Kubernetes API server in this process
///
/// Objects, certificates and keys persist in the data directory. SIGINT or SIGTERM shuts the
/// server down after the requests in progress; a second signal stops it immediately.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    server: ServerFlags,
    #[command(flatten)]
    simulation: Simulation,
    #[command(flatten)]
    members: MemberFlags,
    /// Controllers to run in this process: `all`, `none`, or a comma-separated list [default: all
    /// but fleet and ocm with simulated nodes, fleet and ocm with member clusters, otherwise none]
    #[arg(long, value_name = "NAMES", value_parser = controllers)]
    controllers: Option<Controllers>,
    /// Serve the controllers' /metrics, /healthz, /readyz and /debug/log-level here; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS")]
    metrics_listen: Option<SocketAddr>,
    #[command(flatten)]
    log: LogFlags,
    #[command(flatten)]
    background: BackgroundFlags,
    /// Skip defaulting and validation of the dialects' objects at admission
    #[arg(long)]
    skip_admission: bool,
    /// Format of the message printed when the server is ready
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    flags: DialectFlags,
    #[command(flatten)]
    agent: FleetAgentFlags,
    #[command(flatten)]
    ocm_agent: OcmAgentFlags,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    /// For people
    Text,
    /// One JSON object on one line
    Json,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    if args.background.detach {
        return background::start();
    }
    logging::init(args.log, tracing::Level::WARN);
    process::keep_files_private();
    super::block_on(serve(args))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(args: Args) -> Result<()> {
    let Args {
        server,
        simulation,
        members,
        controllers,
        metrics_listen,
        log: _,
        background,
        skip_admission,
        output,
        flags,
        agent,
        ocm_agent,
    } = args;
    let simulates_hub = members.is_none() || simulation.has_nodes();
    let scenario = simulation.scenario()?;
    let options = flags.options()?;
    let controllers = chosen(controllers, scenario.is_some() && simulates_hub, !members.is_none());
    let agents = agents(agent, ocm_agent, &controllers, &options)?;
    let members = members.resolve(scenario.as_ref(), agents)?;
    let wait = background.wait.then(|| Wait::of(&controllers, scenario.is_some() && simulates_hub));
    let own_webhooks = built_in_rules(skip_admission, &options);
    let (settings, directory) = server.settings(own_webhooks)?;
    members.check(&settings.contexts)?;
    // Registered before anything starts, so that no signal is missed.
    let (shutdown, hurry) = (shutdown_signal()?, second_signal()?);
    let home = Home::start(settings).await?;
    let prepared = Arc::new(Notify::new());
    let start = Start {
        prerequisites: prerequisites(&controllers, &options),
        prepared: Arc::clone(&prepared),
        members,
        scenario: scenario.clone().unwrap_or_default(),
        wait,
        output,
        directory: directory.path().to_owned(),
        leaves_terminal: background.in_background,
    };
    let process_file = ProcessFile::hold(directory.path())?;
    // Beside members, a scenario describes the members' machines.
    let scenario = scenario.filter(|_| simulates_hub);
    let dialects = Controller::dialects(controllers, &options);
    let (hub, clock) = (client(&home.server, ""), home.server.clock());
    let prepared = async move { prepared.notified().await };
    let control = ControllerTask::start(hub, dialects, clock, metrics_listen, prepared).await?;
    let mut fleet = scenario.map(|scenario| simulate(&home.server, "", scenario));
    if let Some(fleet) = &mut fleet {
        fleet.ready().await;
    }
    Box::pin(run_until(home, control, fleet, start, shutdown, hurry)).await?;
    drop(process_file);
    directory.end()
}

/// What is done once the server serves, before it says so.
struct Start {
    prerequisites: Prerequisites,
    /// Told once they are there.
    prepared: Arc<Notify>,
    members: MemberSettings,
    /// What happens on the members.
    scenario: Scenario,
    /// What has to be ready as well.
    wait: Option<Wait>,
    output: Output,
    /// Where the files of the server are.
    directory: PathBuf,
    /// Whether it runs in the background from then on.
    leaves_terminal: bool,
}

impl Start {
    async fn run(&self, server: &Arc<Server>, url: &str, kubeconfig: &Path) -> Result<MemberTasks> {
        self.prerequisites.create(&Transport::trusted(server, "")).await?;
        self.prepared.notify_one();
        let tasks = if self.members.is_empty() {
            MemberTasks::none()
        } else {
            self.members.start(server, url, &self.scenario).await?
        };
        if let Some(wait) = &self.wait {
            wait.until_ready(server, &self.members).await?;
        }
        output::print(&self.announcement(url, kubeconfig))?;
        if self.leaves_terminal {
            background::leave_terminal(&self.directory)?;
        }
        Ok(tasks)
    }

    /// What is printed when everything is ready; its last line says how to stop a server that leaves
    /// the terminal.
    fn announcement(&self, url: &str, kubeconfig: &Path) -> String {
        let (kubeconfig, directory) = (kubeconfig.display(), self.directory.display());
        let names = self.members.names();
        if let Output::Json = self.output {
            let mut ready = json!({"ready": true, "url": url,
                "kubeconfig": kubeconfig.to_string(), "dataDir": directory.to_string()});
            if !names.is_empty() {
                ready["members"] = json!(names);
            }
            return format!("{ready}\n");
        }
        let mut text = format!(
            "Kubernetes API server is ready at {url}\n\n  export KUBECONFIG={kubeconfig}\n\n"
        );
        if !names.is_empty() {
            text.extend(["Member clusters: ", &names.join(", "), "\n\n"]);
        }
        if self.leaves_terminal {
            text.extend(["To stop it: convoy down --data-dir ", &directory.to_string(), "\n"]);
        }
        text
    }
}

/// The definitions and namespaces that the controllers need.
fn prerequisites(controllers: &[Controller], options: &Options) -> Prerequisites {
    let dialects = Controller::dialects(controllers.to_vec(), options);
    let namespaces = controllers.iter().filter_map(|controller| match controller {
        Controller::Skyhook => Some(options.skyhook.namespace.to_string()),
        Controller::Fleet => Some(fleet_names::SYSTEM_NAMESPACE.to_owned()),
        _ => None,
    });
    Prerequisites {
        dialects: dialects.iter().map(|dialect| dialect.name()).collect(),
        namespaces: namespaces.collect(),
    }
}

/// The agents of each member: those of Open Cluster Management where its controller runs.
fn agents(
    fleet: FleetAgentFlags,
    ocm: OcmAgentFlags,
    controllers: &[Controller],
    options: &Options,
) -> Result<Agents> {
    let ocm = ocm.resolve(options.ocm_agents.clone(), options.ocm_features);
    let ocm = controllers.contains(&Controller::Ocm).then_some(ocm);
    Ok(Agents { fleet: Some(fleet.resolve()?), ocm })
}

/// The dialects whose admission rules the server has.
fn built_in_rules(skip_admission: bool, options: &Options) -> OwnWebhooks {
    let is_on = |name: &str| !skip_admission && (name != "ocm" || options.ocm.admission);
    let all = DIALECTS.iter().filter(|dialect| is_on(dialect.name()));
    // The hub, unlike the dialect of plans, may have a guard rail.
    let rules = all.map(|dialect| match dialect.name() {
        fleet_names::DIALECT => Controller::Fleet.dialect(options),
        _ => *dialect,
    });
    OwnWebhooks(rules.collect())
}

/// Serves until `shutdown` is done, then ends everything in order.
async fn run_until(
    home: Home,
    control: ControllerTask,
    fleet: Option<Fleet>,
    start: Start,
    shutdown: impl Future<Output = ()> + Send + 'static,
    hurry: impl Future<Output = ()> + Send + 'static,
) -> Result<()> {
    let server = Arc::clone(&home.server);
    let (url, kubeconfig) = (home.url(), home.kubeconfig.clone());
    let (fails, failed) = oneshot::channel();
    let ended = async move {
        // Definitions and logical clusters are made while the server runs.
        let begun = start.run(&server, &url, &kubeconfig);
        let mut shutdown = std::pin::pin!(shutdown);
        let tasks = tokio::select! {
            begun = begun => Some(begun),
            () = &mut shutdown => None,
        };
        match tasks {
            Some(Ok(tasks)) => {
                shutdown.await;
                tasks.end().await;
            }
            Some(Err(error)) => drop(fails.send(error)),
            None => {}
        }
        // Before the server stops, so that they can finish their writes.
        control.end().await;
        if let Some(fleet) = fleet {
            fleet.end().await;
        }
    };
    home.run_until(Box::pin(ended), Box::pin(hurry)).await?;
    // Without a failure the sender is dropped.
    failed.await.map_or(Ok(()), Err)
}

/// A client of a logical cluster, which the server trusts as itself.
fn client(server: &Arc<Server>, cluster: &str) -> Client {
    Client::new(Transport::trusted(server, cluster), "default")
}

/// Simulated nodes in a logical cluster, with a scheduler and a node controller.
fn simulate(server: &Arc<Server>, cluster: &str, scenario: Scenario) -> Fleet {
    let client = client(server, cluster);
    let settings = fleet::Settings {
        runs_scheduler: true,
        runs_node_lifecycle: true,
        clock: server.clock(),
        ..fleet::Settings::new(scenario)
    };
    Fleet::start(client, settings)
}

/// A list of controllers, which may be empty.
#[derive(Clone, Debug)]
struct Controllers(Vec<Controller>);

/// The controllers named by the flag; without it, those of a cluster if nodes are simulated, and
/// those of a hub if it has members.
fn chosen(named: Option<Controllers>, simulates: bool, has_members: bool) -> Vec<Controller> {
    if let Some(Controllers(named)) = named {
        return named;
    }
    let of_cluster = if simulates { Controller::of_cluster() } else { Vec::new() };
    let of_hub = [Controller::Fleet, Controller::Ocm].into_iter().filter(|_| has_members);
    of_cluster.into_iter().chain(of_hub).collect()
}

fn controllers(text: &str) -> Result<Controllers, String> {
    match text {
        "none" => return Ok(Controllers(Vec::new())),
        "all" => return Ok(Controllers(Controller::all())),
        _ => {}
    }
    let names = text.split(',').map(|name| {
        let all = Controller::all().into_iter().filter_map(|known| known.to_possible_value());
        let names: Vec<String> = all.map(|known| known.get_name().to_owned()).collect();
        Controller::from_str(name, false).map_err(|_| {
            format!("unknown controller {name:?}; valid: all, none, {}", names.join(", "))
        })
    });
    names.collect::<Result<_, _>>().map(Controllers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_read_or_refused() {
        assert_eq!(controllers("none").expect("it is a list").0, []);
        assert_eq!(controllers("all").expect("it is a list").0, Controller::all());
        let two = controllers("jobs,apps").expect("both are known").0;
        assert_eq!(two, [Controller::Jobs, Controller::Apps]);
        let refused = controllers("apps,cron").expect_err("it is not known");
        assert!(refused.contains("\"cron\"") && refused.contains("statefulsets"), "{refused}");
    }
}
