//! The member clusters of `convoy up`: logical clusters with simulated nodes and the controllers of
//! a cluster, registered on the hub, which is the first logical cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use convoy_api::schema::crds;
use convoy_apiserver::kubeconfig::ContextNames;
use convoy_apiserver::server::Server;
use convoy_apiserver::transport::Transport;
use convoy_controllers::Cluster;
use convoy_plan::dialect::fleet_agent::AgentTimings;
use convoy_sim::fleet::Fleet;
use convoy_sim::scenario::Scenario;
use http::Method;
use serde_json::{Value, json};

use super::{ControllerTask, LOGICAL_CLUSTERS, client, simulate};
use crate::command::agent;
use crate::command::controller::{Controller, Options};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MEMBERS: &str = "/apis/cluster.kubernetes-fleet.io/v1beta1/memberclusters";

/// How long to wait for a cluster, or a definition, to become ready.
const READY_TIMEOUT: Duration = Duration::from_mins(1);
/// Number of nodes of a member for which nobody gives one.
const NODES: u32 = 3;
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
    /// Number of simulated nodes in each member cluster, or a list with one number for each
    /// [default: those of the scenario, or 3]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    member_nodes: Vec<u32>,
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
    /// In the order of the flags.
    members: Vec<Member>,
    is_registered: bool,
    timings: AgentTimings,
}

/// A member cluster to run.
#[derive(Debug)]
struct Member {
    name: String,
    /// Labels of its MemberCluster.
    labels: BTreeMap<String, String>,
    nodes: u32,
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
    /// Whether no flag asks for a member.
    pub(super) fn is_none(&self) -> bool {
        self.members.is_none() && self.member_names.is_empty()
    }

    /// The members, with the labels and node counts that the scenario gives unless a flag does.
    pub(super) fn resolve(
        self,
        scenario: Option<&Scenario>,
        timings: AgentTimings,
    ) -> Result<MemberSettings> {
        let Self { members, member_names, member_nodes, member_labels, register_members } = self;
        let numbered = (1..=members.unwrap_or(0)).map(|number| format!("member-{number}"));
        let names: Vec<String> = member_names.into_iter().chain(numbered).collect();
        let count = names.len();
        ensure!(
            member_nodes.len() <= 1 || member_nodes.len() == count,
            "--member-nodes has {} numbers for {count} member clusters; \
             pass one number for all, or one for each",
            member_nodes.len()
        );
        let mut members: Vec<Member> = Vec::with_capacity(count);
        for (index, name) in names.into_iter().enumerate() {
            ensure!(
                members.iter().all(|member| member.name != name),
                "--member-names has {name:?} twice"
            );
            let given = member_nodes.get(index).or(member_nodes.first()).copied();
            let nodes = given.or_else(|| scenario?.nodes_of_member(&name)).unwrap_or(NODES);
            let labels = scenario.map(|scenario| scenario.labels_of_member(&name));
            members.push(Member { name, labels: labels.unwrap_or_default(), nodes });
        }
        for label in member_labels {
            set_label(&mut members, &label)?;
        }
        Ok(MemberSettings { members, is_registered: register_members, timings })
    }
}

/// Sets a label of the flag on all members, or on the one that it names.
fn set_label(members: &mut [Member], label: &str) -> Result<()> {
    let (assignment, of) = match label.split_once(':') {
        Some((name, assignment)) => (assignment, Some(name)),
        None => (label, None),
    };
    let (key, value) = assignment
        .split_once('=')
        .with_context(|| format!("invalid label {label:?}; use KEY=VALUE or NAME:KEY=VALUE"))?;
    if let Some(name) = of {
        let is_known = members.iter().any(|member| member.name == name);
        ensure!(is_known, "no member cluster is named {name:?}");
    }
    for member in members.iter_mut().filter(|member| of.is_none_or(|of| of == member.name)) {
        member.labels.insert(key.to_owned(), value.to_owned());
    }
    Ok(())
}

impl MemberSettings {
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.members.iter().map(|member| member.name.as_str()).collect()
    }

    /// Refuses names with which two clusters would have the same context.
    pub(super) fn check(&self, contexts: &ContextNames) -> Result<()> {
        for name in self.names() {
            ensure!(
                contexts.of(name) != contexts.first,
                "the hub and the member cluster {name:?} would have the same context; \
                 change --context or --context-prefix"
            );
        }
        Ok(())
    }

    /// Makes the clusters, and starts what runs in them.
    pub(super) async fn start(
        &self,
        server: &Arc<Server>,
        scenario: &Scenario,
    ) -> Result<MemberTasks> {
        let hub = Transport::trusted(server, "");
        for name in self.names() {
            let cluster = json!({"apiVersion": "convoy.dev/v1", "kind": "LogicalCluster",
                "metadata": {"name": name}});
            create(&hub, LOGICAL_CLUSTERS, &cluster).await?;
        }
        for name in self.names() {
            let is_ready = |cluster: &Value| cluster["status"]["phase"] == "Ready";
            await_object(&hub, &format!("{LOGICAL_CLUSTERS}/{name}"), is_ready).await?;
        }
        install(&hub, |_| true).await?;
        if self.is_registered {
            self.register(&hub).await?;
        }
        let mut tasks = Vec::new();
        for member in &self.members {
            tasks.push(member.start(server, scenario, self.timings).await?);
        }
        for fleet in tasks.iter_mut().filter_map(|task| task.fleet.as_mut()) {
            fleet.ready().await;
        }
        Ok(MemberTasks { tasks })
    }

    /// Creates a MemberCluster for each member.
    async fn register(&self, hub: &Transport) -> Result<()> {
        for Member { name, labels, .. } in &self.members {
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

impl Member {
    async fn start(
        &self,
        server: &Arc<Server>,
        scenario: &Scenario,
        timings: AgentTimings,
    ) -> Result<MemberTask> {
        let name = self.name.as_str();
        // The agent notes on the member what it has applied.
        let own = |definition: &str| definition.starts_with("appliedworks.");
        install(&Transport::trusted(server, name), own).await?;
        let dialects = Controller::dialects(Controller::of_cluster(), &Options::default());
        let control = ControllerTask::start(client(server, name), dialects, None).await?;
        let [hub, member] = ["", name].map(|cluster| Cluster::new(client(server, cluster)));
        let clusters = agent::clusters(name, hub, member);
        let agent =
            ControllerTask::start(clusters, vec![agent::agent(name, timings)], None).await?;
        let scenario = (self.nodes > 0).then(|| scenario.clone().with_nodes(self.nodes));
        let fleet = scenario.map(|scenario| simulate(server, name, scenario));
        Ok(MemberTask { agent, control, fleet })
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
    use clap::Parser;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Up {
        #[command(flatten)]
        flags: MemberFlags,
    }

    fn flags(names: &str, nodes: &[u32], labels: &[&str]) -> MemberFlags {
        let mut arguments = vec!["up".to_owned(), format!("--member-names={names}")];
        arguments.extend(nodes.iter().map(|count| format!("--member-nodes={count}")));
        arguments.extend(labels.iter().map(|label| format!("--member-labels={label}")));
        Up::parse_from(arguments).flags
    }

    fn labels(settings: &MemberSettings, index: usize) -> Vec<String> {
        let labels = settings.members[index].labels.iter();
        labels.map(|(key, value)| format!("{key}={value}")).collect()
    }

    #[test]
    fn labels_are_for_all_members_or_for_one() {
        let resolved =
            |labels: &[&str]| flags("b,a", &[], labels).resolve(None, AgentTimings::default());
        let settings = resolved(&["env=prod", "a:region=eu"]).expect("they are valid");
        assert_eq!(settings.names(), ["b", "a"], "in the order of the flag");
        assert_eq!(labels(&settings, 0), ["env=prod"]);
        assert_eq!(labels(&settings, 1), ["env=prod", "region=eu"]);
        let unknown = resolved(&["c:a=b"]).expect_err("there is none").to_string();
        assert_eq!(unknown, "no member cluster is named \"c\"");
        assert!(resolved(&["prod"]).is_err());
    }

    #[test]
    fn node_counts_are_for_all_members_or_for_each() {
        let counts = |nodes: &[u32]| {
            let settings = flags("c,a,b", nodes, &[]).resolve(None, AgentTimings::default());
            settings.map(|settings| settings.members.iter().map(|one| one.nodes).collect())
        };
        let cases: [(&[u32], Vec<u32>); 3] =
            [(&[], vec![3, 3, 3]), (&[5], vec![5, 5, 5]), (&[2, 3, 4], vec![2, 3, 4])];
        for (given, expected) in cases {
            let found: Vec<u32> = counts(given).expect("they are valid");
            assert_eq!(found, expected);
        }
        let refused = counts(&[1, 2]).expect_err("one is missing").to_string();
        assert!(refused.contains("2 numbers for 3 member clusters"), "{refused}");
        let twice = flags("a,b,a", &[], &[])
            .resolve(None, AgentTimings::default())
            .expect_err("it is there twice");
        assert_eq!(twice.to_string(), "--member-names has \"a\" twice");
    }

    #[test]
    fn flags_win_over_the_scenario() {
        let scenario = "memberClusters: [{name: '*', labels: {env: prod, tier: '1'}, nodes: 7}]";
        let scenario = Scenario::from_yaml(scenario).expect("it is valid");
        let given =
            flags("a", &[], &["env=canary"]).resolve(Some(&scenario), AgentTimings::default());
        let settings = given.expect("they are valid");
        assert_eq!(settings.members[0].nodes, 7);
        assert_eq!(labels(&settings, 0), ["env=canary", "tier=1"]);
        let settings = flags("a", &[1], &[])
            .resolve(Some(&scenario), AgentTimings::default())
            .expect("they are valid");
        assert_eq!(settings.members[0].nodes, 1);
    }
}
