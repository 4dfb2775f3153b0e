//! The member clusters of `convoy up`: logical clusters with simulated nodes and the controllers of
//! a cluster, registered on the hub, which is the first logical cluster.

mod registration;

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use convoy_apiserver::kubeconfig::ContextNames;
use convoy_apiserver::server::Server;
use convoy_apiserver::transport::Transport;
use convoy_controllers::Cluster;
use convoy_plan::dialect::fleet::names::SYSTEM_NAMESPACE;
use convoy_sim::fleet::link::Link;
use convoy_sim::fleet::{Client, Fleet};
use convoy_sim::scenario::{LinkSchedule, Scenario, Towards};
use serde_json::{Value, json};

use super::control::ControllerTask;
use super::objects::{await_object, create, install, namespace};
use super::{LOGICAL_CLUSTERS, client, simulate};
use crate::command::agent::{self, Agents, MemberAccess};
use crate::command::controller::{Controller, Options};

/// Number of nodes of a member for which nobody gives one.
const NODES: u32 = 3;

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
    /// Labels of each MemberCluster and ManagedCluster, separated by commas: KEY=VALUE for all,
    /// NAME:KEY=VALUE for one
    #[arg(long, value_name = "LABELS", value_delimiter = ',')]
    member_labels: Vec<String>,
    /// Whether to create a MemberCluster on the hub for each member cluster, and a ManagedCluster
    /// if the ocm controller runs
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, default_value_t = true)]
    register_members: bool,
}

/// What the flags ask for.
#[derive(Debug, Default)]
pub(super) struct MemberSettings {
    /// In the order of the flags.
    members: Vec<Member>,
    is_registered: bool,
    agents: Agents,
}

/// A member cluster to run.
#[derive(Debug)]
struct Member {
    name: String,
    /// Labels of its MemberCluster and ManagedCluster.
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
        agents: Agents,
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
        Ok(MemberSettings { members, is_registered: register_members, agents })
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

    /// Whether the members are registered on the hub.
    pub(super) fn are_registered(&self) -> bool {
        self.is_registered
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

    /// Makes the clusters, and starts what runs in them. `url` is the hub's, as in the kubeconfig.
    pub(super) async fn start(
        &self,
        server: &Arc<Server>,
        url: &str,
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
        let has_ocm = self.agents.ocm.is_some();
        install(&hub, "fleet", |_| true).await?;
        namespace(&hub, SYSTEM_NAMESPACE).await?;
        if has_ocm {
            install(&hub, "ocm", |_| true).await?;
        }
        for member in self.members.iter().filter(|_| self.is_registered) {
            registration::member_cluster(&hub, member).await?;
            if has_ocm {
                registration::managed_cluster(&hub, member).await?;
            }
        }
        let mut tasks = Vec::new();
        for member in &self.members {
            tasks.push(member.start(server, url, scenario, &self.agents).await?);
        }
        for fleet in tasks.iter_mut().filter_map(|task| task.fleet.as_mut()) {
            fleet.ready().await;
        }
        Ok(MemberTasks { tasks })
    }
}

impl Member {
    async fn start(
        &self,
        server: &Arc<Server>,
        url: &str,
        scenario: &Scenario,
        agents: &Agents,
    ) -> Result<MemberTask> {
        let name = self.name.as_str();
        let member = Transport::trusted(server, name);
        // The agents note on the member what they have applied.
        install(&member, "fleet", |definition| definition.starts_with("appliedworks.")).await?;
        if agents.ocm.is_some() {
            let own = ["appliedmanifestworks.", "clusterclaims."];
            let is_own = |name: &str| own.iter().any(|start| name.starts_with(start));
            install(&member, "ocm", is_own).await?;
            registration::claims(&member, name).await?;
        }
        let dialects = Controller::dialects(Controller::of_cluster(), &Options::default());
        let clock = server.clock();
        let control =
            ControllerTask::start(client(server, name), dialects, clock, None, ready(())).await?;
        // What the agents are told at their start does not depend on the scenario.
        let access = MemberAccess {
            client: &client(server, name),
            server: &format!("{url}/clusters/{name}"),
            certificate_authority: &server.access.authority,
        };
        let dialects = agents.dialects(name, url, access).await;
        let link = |cluster: &str, towards: Towards| {
            linked(server, cluster, scenario.link_of_member(name, towards))
        };
        let [hub, member] = [("", Towards::Hub), (name, Towards::Member)]
            .map(|(cluster, towards)| Cluster::new(link(cluster, towards)));
        let clusters = agent::clusters(name, hub, member);
        let agent = ControllerTask::start(clusters, dialects, clock, None, ready(())).await?;
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

/// A client of a logical cluster, with what a scenario does to its connection.
fn linked(server: &Arc<Server>, cluster: &str, schedule: LinkSchedule) -> Client {
    if schedule.is_empty() {
        return client(server, cluster);
    }
    Client::new(Link::new(Transport::trusted(server, cluster), schedule), "default")
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
        let resolved = |labels: &[&str]| flags("b,a", &[], labels).resolve(None, Agents::default());
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
            let settings = flags("c,a,b", nodes, &[]).resolve(None, Agents::default());
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
            .resolve(None, Agents::default())
            .expect_err("it is there twice");
        assert_eq!(twice.to_string(), "--member-names has \"a\" twice");
    }

    #[test]
    fn flags_win_over_the_scenario() {
        let scenario = "memberClusters: [{name: '*', labels: {env: prod, tier: '1'}, nodes: 7}]";
        let scenario = Scenario::from_yaml(scenario).expect("it is valid");
        let given = flags("a", &[], &["env=canary"]).resolve(Some(&scenario), Agents::default());
        let settings = given.expect("they are valid");
        assert_eq!(settings.members[0].nodes, 7);
        assert_eq!(labels(&settings, 0), ["env=canary", "tier=1"]);
        let settings = flags("a", &[1], &[])
            .resolve(Some(&scenario), Agents::default())
            .expect("they are valid");
        assert_eq!(settings.members[0].nodes, 1);
    }
}
