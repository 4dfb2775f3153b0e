//! The member clusters of `convoy up`: logical clusters with simulated nodes and the controllers of
//! a cluster, registered on the hub, which is the first logical cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use convoy_api::schema::crds;
use convoy_apiserver::server::Server;
use convoy_apiserver::transport::Transport;
use convoy_controllers::Cluster;
use convoy_plan::dialect::fleet_agent::AgentTimings;
use convoy_sim::fleet::Fleet;
use convoy_sim::scenario::Scenario;
use http::Method;
use serde_json::{Value, json};

use super::{ControllerTask, client, simulate};
use crate::command::agent;
use crate::command::clusters::PATH as CLUSTERS;
use crate::command::controller::{Controller, Options};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MEMBERS: &str = "/apis/cluster.kubernetes-fleet.io/v1beta1/memberclusters";

/// How long to wait for a cluster, or a definition, to become ready.
const READY_TIMEOUT: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The flags that describe member clusters.
#[derive(Debug, clap::Args)]
pub(super) struct MemberFlags {
    /// Number of member clusters, which are the logical clusters member-1 to member-N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    members: Option<u16>,
    /// Names of the member clusters, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "members")]
    member_names: Vec<String>,
    /// Number of simulated nodes in each member cluster
    #[arg(long, value_name = "N", default_value_t = 3)]
    member_nodes: u32,
    /// Labels of each MemberCluster, separated by commas: KEY=VALUE for all, NAME:KEY=VALUE for one
    #[arg(long, value_name = "LABELS", value_delimiter = ',')]
    member_labels: Vec<String>,
    /// Whether to create a MemberCluster on the hub for each member cluster
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, default_value_t = true)]
    register_members: bool,
}

/// What the flags ask for.
#[derive(Debug, Default)]
pub(super) struct MemberSettings {
    /// Names, each with the labels of its MemberCluster.
    members: BTreeMap<String, BTreeMap<String, String>>,
    nodes: u32,
    is_registered: bool,
    timings: AgentTimings,
}

/// Member clusters that run.
pub(super) struct MemberTasks {
    tasks: Vec<MemberTask>,
}

/// What runs for one member cluster.
struct MemberTask {
    agent: ControllerTask,
    control: ControllerTask,
    fleet: Option<Fleet>,
}

impl MemberFlags {
    pub(super) fn resolve(self, timings: AgentTimings) -> Result<MemberSettings> {
        let Self { members, member_names, member_nodes, member_labels, register_members } = self;
        let numbered = (1..=members.unwrap_or(0)).map(|number| format!("member-{number}"));
        let names = member_names.into_iter().chain(numbered);
        let mut members: BTreeMap<String, BTreeMap<String, String>> =
            names.map(|name| (name, BTreeMap::new())).collect();
        for label in member_labels {
            let (assignment, of) = match label.split_once(':') {
                Some((name, assignment)) => (assignment, Some(name)),
                None => (label.as_str(), None),
            };
            let (key, value) = assignment.split_once('=').with_context(|| {
                format!("invalid label {label:?}; use KEY=VALUE or NAME:KEY=VALUE")
            })?;
            if let Some(name) = of {
                ensure!(members.contains_key(name), "no member cluster is named {name:?}");
            }
            for (name, labels) in &mut members {
                if of.is_none_or(|of| of == name) {
                    labels.insert(key.to_owned(), value.to_owned());
                }
            }
        }
        Ok(MemberSettings {
            members,
            nodes: member_nodes,
            is_registered: register_members,
            timings,
        })
    }
}

impl MemberSettings {
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.members.keys().map(String::as_str).collect()
    }

    /// Makes the clusters, and starts what runs in them.
    pub(super) async fn start(
        &self,
        server: &Arc<Server>,
        scenario: &Scenario,
    ) -> Result<MemberTasks> {
        let hub = Transport::trusted(server, "");
        for name in self.members.keys() {
            let cluster = json!({"apiVersion": "convoy.dev/v1", "kind": "LogicalCluster",
                "metadata": {"name": name}});
            create(&hub, CLUSTERS, &cluster).await?;
        }
        for name in self.members.keys() {
            let is_ready = |cluster: &Value| cluster["status"]["phase"] == "Ready";
            await_object(&hub, &format!("{CLUSTERS}/{name}"), is_ready).await?;
        }
        install(&hub, |_| true).await?;
        if self.is_registered {
            self.register(&hub).await?;
        }
        let mut tasks = Vec::new();
        for name in self.members.keys() {
            tasks.push(self.start_member(server, name, scenario).await?);
        }
        for fleet in tasks.iter_mut().filter_map(|task| task.fleet.as_mut()) {
            fleet.ready().await;
        }
        Ok(MemberTasks { tasks })
    }

    async fn start_member(
        &self,
        server: &Arc<Server>,
        name: &str,
        scenario: &Scenario,
    ) -> Result<MemberTask> {
        // The agent notes on the member what it has applied.
        let own = |definition: &str| definition.starts_with("appliedworks.");
        install(&Transport::trusted(server, name), own).await?;
        let dialects = Controller::dialects(Controller::of_cluster(), &Options::default());
        let control = ControllerTask::start(client(server, name), dialects, None).await?;
        let [hub, member] = ["", name].map(|cluster| Cluster::new(client(server, cluster)));
        let clusters = agent::clusters(name, hub, member);
        let agent =
            ControllerTask::start(clusters, vec![agent::agent(name, self.timings)], None).await?;
        let scenario = (self.nodes > 0).then(|| scenario.clone().with_nodes(self.nodes));
        let fleet = scenario.map(|scenario| simulate(server, name, scenario));
        Ok(MemberTask { agent, control, fleet })
    }

    /// Creates a MemberCluster for each member.
    async fn register(&self, hub: &Transport) -> Result<()> {
        for (name, labels) in &self.members {
            let identity = json!({"kind": "ServiceAccount", "apiGroup": "",
                "namespace": "fleet-system", "name": name});
            let member = json!({"apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
                "kind": "MemberCluster", "metadata": {"name": name, "labels": labels},
                "spec": {"identity": identity, "heartbeatPeriodSeconds": 15}});
            create(hub, MEMBERS, &member).await?;
        }
        Ok(())
    }
}

impl MemberTasks {
    pub(super) fn none() -> Self {
        Self { tasks: Vec::new() }
    }

    pub(super) async fn end(self) {
        for MemberTask { agent, control, fleet } in self.tasks {
            agent.end().await;
            control.end().await;
            if let Some(fleet) = fleet {
                fleet.end().await;
            }
        }
    }
}

/// Installs the definitions of KubeFleet whose names are wanted, and waits until they are served.
async fn install(cluster: &Transport, is_wanted: impl Fn(&str) -> bool) -> Result<()> {
    let mut names = Vec::new();
    for definition in crds("fleet").unwrap_or_default() {
        let definition = serde_json::to_value(definition).context("could not write a CRD")?;
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        if is_wanted(name) {
            create(cluster, DEFINITIONS, &definition).await?;
            names.push(name.to_owned());
        }
    }
    for name in names {
        await_object(cluster, &format!("{DEFINITIONS}/{name}"), is_established).await?;
    }
    Ok(())
}

/// Creates an object, unless it is there from an earlier start.
async fn create(hub: &Transport, path: &str, object: &Value) -> Result<()> {
    let (code, answer) = hub.send(Method::POST, path, Some(object)).await;
    if code < 300 || code == 409 {
        return Ok(());
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let message = answer["message"].as_str().unwrap_or("the server sent no message");
    bail!("could not create {} {name}: {message} ({code})", object["kind"]);
}

async fn await_object(
    hub: &Transport,
    path: &str,
    is_ready: impl Fn(&Value) -> bool,
) -> Result<()> {
    let begun = Instant::now();
    while !is_ready(&hub.send(Method::GET, path, None).await.1) {
        ensure!(begun.elapsed() < READY_TIMEOUT, "timed out waiting for {path}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array();
    let mut established =
        conditions.into_iter().flatten().filter(|condition| condition["type"] == "Established");
    established.any(|condition| condition["status"] == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(labels: &[&str]) -> Result<MemberSettings> {
        let flags = MemberFlags {
            members: Some(2),
            member_names: Vec::new(),
            member_nodes: 1,
            member_labels: labels.iter().map(|&label| label.to_owned()).collect(),
            register_members: true,
        };
        flags.resolve()
    }

    #[test]
    fn labels_are_for_all_members_or_for_one() {
        let settings = resolved(&["env=prod", "member-2:region=eu"]).expect("they are valid");
        assert_eq!(settings.names(), ["member-1", "member-2"]);
        let labels = |name: &str| {
            let labels = settings.members[name].iter();
            labels.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>()
        };
        assert_eq!(labels("member-1"), ["env=prod"]);
        assert_eq!(labels("member-2"), ["env=prod", "region=eu"]);
        let unknown = resolved(&["member-3:a=b"]).expect_err("there is none").to_string();
        assert_eq!(unknown, "no member cluster is named \"member-3\"");
        assert!(resolved(&["prod"]).is_err());
    }
}
