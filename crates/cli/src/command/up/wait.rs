//! `convoy up --wait`: the server says that it is ready when all that it simulates is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use convoy_apiserver::server::Server;
use convoy_apiserver::transport::Transport;
use http::Method;
use serde_json::Value;

use super::members::MemberSettings;
use super::objects::is_true;
use crate::command::controller::Controller;

/// How long all nodes of a cluster, or all members of a hub, may take.
const READY_TIMEOUT: Duration = Duration::from_mins(5);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

const NODES: (&str, &str) = ("/api/v1/nodes", "Ready");
const MEMBER_CLUSTERS: (&str, &str) =
    ("/apis/cluster.kubernetes-fleet.io/v1beta1/memberclusters", "Joined");
const MANAGED_CLUSTERS: (&str, &str) = (
    "/apis/cluster.open-cluster-management.io/v1/managedclusters",
    "ManagedClusterConditionAvailable",
);

/// What a server waits for.
#[derive(Debug)]
pub(super) struct Wait {
    /// Whether the hub has simulated nodes.
    nodes: bool,
    /// The paths of registered clusters on the hub, each with the condition of those that are ready.
    registrations: Vec<(&'static str, &'static str)>,
}

impl Wait {
    /// What there is with these controllers: nobody else lets a member join.
    pub(super) fn of(controllers: &[Controller], simulates_hub: bool) -> Self {
        let all = [(Controller::Fleet, MEMBER_CLUSTERS), (Controller::Ocm, MANAGED_CLUSTERS)];
        let run = all.into_iter().filter(|(controller, _)| controllers.contains(controller));
        Self { nodes: simulates_hub, registrations: run.map(|(_, path)| path).collect() }
    }

    pub(super) async fn until_ready(
        &self,
        server: &Arc<Server>,
        members: &MemberSettings,
    ) -> Result<()> {
        let hub = Transport::trusted(server, "");
        if self.nodes {
            await_all(&hub, NODES, |_| true).await?;
        }
        for name in members.names() {
            await_all(&Transport::trusted(server, name), NODES, |_| true).await?;
        }
        for registration in self.registrations.iter().filter(|_| members.are_registered()) {
            let names = members.names();
            await_all(&hub, *registration, |name| names.contains(&name)).await?;
        }
        Ok(())
    }
}

/// Waits until a condition is true of all objects below a path whose names are wanted.
async fn await_all(
    cluster: &Transport,
    (path, condition): (&str, &str),
    is_wanted: impl Fn(&str) -> bool,
) -> Result<()> {
    let begun = Instant::now();
    loop {
        let list = cluster.send(Method::GET, path, None).await.1;
        let late: Vec<&str> = unready(&list, condition).filter(|name| is_wanted(name)).collect();
        if late.is_empty() {
            return Ok(());
        }
        if begun.elapsed() > READY_TIMEOUT {
            let kind = path.rsplit('/').next().unwrap_or(path);
            bail!("timed out waiting for {kind} to be {condition}: {}", late.join(", "));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// The objects of a list of which a condition is not true.
fn unready<'l>(list: &'l Value, condition: &str) -> impl Iterator<Item = &'l str> {
    let items = list["items"].as_array().into_iter().flatten();
    items
        .filter(move |object| !is_true(object, condition))
        .filter_map(|object| object["metadata"]["name"].as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_ready_when_its_condition_is_true() {
        let node = |name: &str, status: &str| {
            json!({"metadata": {"name": name}, "status": {"conditions": [
                {"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": status}]}})
        };
        let new = json!({"metadata": {"name": "new"}});
        let list = json!({"items": [node("a", "True"), node("b", "Unknown"), new]});
        assert_eq!(unready(&list, "Ready").collect::<Vec<_>>(), ["b", "new"]);
        assert_eq!(unready(&json!({}), "Ready").count(), 0);
    }

    #[test]
    fn members_join_where_the_controllers_of_the_hub_run() {
        let paths = |controllers: &[Controller]| Wait::of(controllers, false).registrations;
        assert_eq!(paths(&[Controller::Apps]), []);
        assert_eq!(paths(&[Controller::Ocm]), [MANAGED_CLUSTERS]);
        assert_eq!(
            paths(&[Controller::Ocm, Controller::Fleet]),
            [MEMBER_CLUSTERS, MANAGED_CLUSTERS]
        );
    }
}
