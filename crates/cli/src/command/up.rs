//! `convoy up`: a Kubernetes API server in one process.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use convoy_apiserver::access::{AccessSettings, Authorization};
use convoy_apiserver::home::{Home, Settings};
use convoy_apiserver::server::Limits;
use convoy_apiserver::transport::Transport;
use convoy_plan::Dialect;
use convoy_sim::fleet::{self, Client, Fleet};
use convoy_sim::scenario::Scenario;
use convoy_store::backend::Durability;
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::controller::Controller;
use super::fleet::Simulation;
use super::metrics;
use super::skyhook::SkyhookFlags;
use crate::output;

/// Runs a Kubernetes API server in this process, with its own store
///
/// Everything is kept in the data directory and is there again at the next start. Stops on
/// SIGINT and SIGTERM; a second signal ends it without waiting for requests.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where objects, certificates and keys are kept [default: ~/.local/share/convoy]
    #[arg(long, value_name = "DIR", env = "CONVOY_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// Keep nothing: objects live in memory, certificates are made anew
    #[arg(long, conflicts_with = "data_dir")]
    ephemeral: bool,
    /// The address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6443")]
    listen: SocketAddr,
    /// Where to write the kubeconfig [default: admin.kubeconfig in the data directory]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// When a write is acknowledged: `sync` (it survives power loss), `interval:50ms` (it
    /// survives the process; power loss takes up to so much), `none`
    #[arg(long, value_name = "MODE", default_value = "sync", value_parser = durability)]
    durability: Durability,
    /// Accept the tokens of a CSV file: `token,user,uid,"group1,group2"`, one a line
    #[arg(long, value_name = "FILE")]
    token_auth_file: Option<PathBuf>,
    /// What callers may do: what roles and bindings allow them, or everything
    #[arg(long, value_enum, default_value_t = AuthorizationMode::Rbac)]
    authorization: AuthorizationMode,
    /// Log every request to a file, one line of JSON each
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
    /// How much of which requests is logged: a file with an `audit.k8s.io/v1` Policy [default:
    /// everything but bodies]
    #[arg(long, value_name = "FILE", requires = "audit_log")]
    audit_policy: Option<PathBuf>,
    /// How long requests may go on after the first signal; with none on their way it ends at once
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    shutdown_timeout: Duration,
    #[command(flatten)]
    simulation: Simulation,
    /// Controllers to run beside the server: `all`, `none`, or some with commas [default: all
    /// where nodes are simulated, else none]
    #[arg(long, value_name = "NAMES", value_parser = controllers)]
    controllers: Option<Controllers>,
    /// Serve /metrics, /healthz and /readyz of the controllers here; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS")]
    metrics_listen: Option<SocketAddr>,
    /// Store Skyhooks and their policies without the rules that upstream's webhooks hold
    #[arg(long)]
    skip_admission: bool,
    /// What to print when ready
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    skyhook: SkyhookFlags,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    Text,
    /// One line of JSON
    Json,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum AuthorizationMode {
    Rbac,
    /// For tests: whoever is known may do anything
    AlwaysAllow,
}

impl From<AuthorizationMode> for Authorization {
    fn from(mode: AuthorizationMode) -> Self {
        match mode {
            AuthorizationMode::Rbac => Self::Rbac,
            AuthorizationMode::AlwaysAllow => Self::AlwaysAllow,
        }
    }
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    super::block_on(serve(args))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(args: Args) -> Result<()> {
    let Args {
        data_dir,
        ephemeral,
        listen,
        kubeconfig,
        durability,
        token_auth_file,
        authorization,
        audit_log,
        audit_policy,
        shutdown_timeout,
        simulation,
        controllers,
        metrics_listen,
        skip_admission,
        output,
        skyhook,
    } = args;
    let scenario = simulation.scenario()?;
    let data_directory = match (ephemeral, data_dir) {
        (true, _) => None,
        (false, Some(directory)) => Some(directory),
        (false, None) => Some(default_directory()?),
    };
    if durability != Durability::Sync && data_directory.is_some() {
        eprintln!("warning: with --durability {durability:?} acknowledged writes can be lost");
    }
    let kubeconfig = kubeconfig.unwrap_or_else(|| default_kubeconfig(data_directory.as_deref()));
    // Before anything is started, so that no signal is missed.
    let (shutdown, hurry) = (shutdown_signal()?, second_signal()?);
    let access = AccessSettings {
        authorization: authorization.into(),
        token_file: token_auth_file,
        audit_log,
        audit_policy,
    };
    let limits = Limits { shutdown_timeout, ..Limits::default() };
    let own_webhooks = !skip_admission;
    let settings =
        Settings { data_directory, durability, listen, kubeconfig, limits, access, own_webhooks };
    let home = Home::start(settings).await?;
    let controllers = chosen(controllers, scenario.is_some());
    let controllers = Controller::dialects(controllers, &skyhook.options());
    let control = Control::start(&home, controllers, metrics_listen).await?;
    let mut fleet = scenario.map(|scenario| simulate(&home, scenario));
    if let Some(fleet) = &mut fleet {
        fleet.ready().await;
    }
    announce(&home, output)?;
    let ended = async {
        shutdown.await;
        // While there is a server to end on.
        control.end().await;
        if let Some(fleet) = fleet {
            fleet.end().await;
        }
    };
    home.run_until(ended, hurry).await?;
    Ok(())
}

/// The controllers that run beside the server, in its first cluster.
struct Control {
    ending: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

impl Control {
    async fn start(
        home: &Home,
        dialects: Vec<&'static dyn Dialect>,
        metrics_listen: Option<SocketAddr>,
    ) -> Result<Self> {
        let (ending, ended) = oneshot::channel();
        let client = Client::new(Transport::trusted(&home.server, ""), "default");
        let settings = convoy_controllers::Settings::new(dialects);
        if let Some(address) = metrics_listen {
            metrics::serve(address, Arc::clone(&settings.metrics)).await?;
        }
        let running = tokio::spawn(async move {
            if !settings.dialects.is_empty() {
                let ended = async { _ = ended.await };
                convoy_controllers::run(client, settings, ended).await;
            }
        });
        Ok(Self { ending, running })
    }

    async fn end(self) {
        let Self { ending, running } = self;
        drop(ending);
        // One that panicked has ended too.
        _ = running.await;
    }
}

/// Simulated nodes in the first cluster, with what a control plane does for them.
fn simulate(home: &Home, scenario: Scenario) -> Fleet {
    let client = Client::new(Transport::trusted(&home.server, ""), "default");
    let settings =
        fleet::Settings { schedules: true, tends_nodes: true, ..fleet::Settings::new(scenario) };
    Fleet::start(client, settings)
}

fn announce(home: &Home, output: Output) -> Result<()> {
    let (url, kubeconfig) = (home.url(), home.kubeconfig.display());
    let text = match output {
        Output::Json => {
            format!(
                "{}\n",
                json!({"ready": true, "url": url, "kubeconfig": kubeconfig.to_string()})
            )
        }
        Output::Text => {
            format!("Convoy serves Kubernetes on {url}\n\n  export KUBECONFIG={kubeconfig}\n\n")
        }
    };
    output::print(&text)
}

/// Done when the process is asked to end.
pub(super) fn shutdown_signal() -> Result<impl Future<Output = ()>> {
    let mut signals = Signals::watch()?;
    Ok(async move { signals.next().await })
}

/// Done when it is asked a second time.
fn second_signal() -> Result<impl Future<Output = ()>> {
    let mut signals = Signals::watch()?;
    Ok(async move {
        signals.next().await;
        signals.next().await;
    })
}

/// Those that ask the process to end.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn watch() -> Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).context("could not watch for SIGINT")?,
            terminate: signal(SignalKind::terminate()).context("could not watch for SIGTERM")?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Where everything is kept unless somebody says where.
pub(super) fn default_directory() -> Result<PathBuf> {
    let from_home =
        || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    let base =
        std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    match base.or_else(from_home) {
        Some(base) => Ok(base.join("convoy")),
        None => bail!("neither HOME nor XDG_DATA_HOME is set: give --data-dir, or --ephemeral"),
    }
}

fn default_kubeconfig(data_directory: Option<&Path>) -> PathBuf {
    let temporary = || std::env::temp_dir().join(format!("convoy-{}", std::process::id()));
    data_directory.map_or_else(temporary, Path::to_owned).join("admin.kubeconfig")
}

/// A list of controllers, which may be empty.
#[derive(Clone, Debug)]
struct Controllers(Vec<Controller>);

/// Those that were named; otherwise all of them where there are nodes to work on.
fn chosen(named: Option<Controllers>, simulates: bool) -> Vec<Controller> {
    match named {
        Some(Controllers(named)) => named,
        None if simulates => Controller::all(),
        None => Vec::new(),
    }
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
        Controller::from_str(name, false)
            .map_err(|_| format!("want all, none, or some of {}, not {name:?}", names.join(", ")))
    });
    names.collect::<Result<_, _>>().map(Controllers)
}

fn durability(text: &str) -> Result<Durability, String> {
    match text.split_once(':') {
        None if text == "sync" => Ok(Durability::Sync),
        None if text == "none" => Ok(Durability::None),
        Some(("interval", interval)) => duration(interval)
            .ok()
            .filter(|interval| !interval.is_zero())
            .map(Durability::Interval)
            .ok_or_else(|| format!("{interval:?} is no positive duration such as 50ms")),
        _ => Err("want sync, interval:DURATION or none".to_owned()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let parsed: Option<convoy_api::text::GoDuration> = text.parse().ok();
    let duration = parsed.and_then(|parsed| Duration::try_from(parsed.signed()).ok());
    duration.ok_or_else(|| format!("{text:?} is no duration such as 60s"))
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

    #[test]
    fn durability_is_read_or_refused() {
        assert_eq!(durability("sync"), Ok(Durability::Sync));
        assert_eq!(
            durability("interval:50ms"),
            Ok(Durability::Interval(Duration::from_millis(50)))
        );
        for text in ["", "fast", "interval:", "interval:-1s", "interval:0s"] {
            assert!(durability(text).is_err(), "{text}");
        }
    }
}
