//! `kubectl skyhook package logs`.

use anyhow::{Context, Result};
use convoy_api::Object;
use convoy_api::object::member::{list, text};
use convoy_api::skyhook::names::PACKAGE;
use serde_json::Value;

use super::Session;
use super::arguments::{Leaf, exactly_one, number, parse_stage, skyhook_required};
use super::nodes::select_nodes;
use crate::output;

#[derive(Debug, clap::Args)]
pub(super) struct Logs {
    /// Name of the package
    package: Option<String>,
    #[arg(hide = true)]
    more: Vec<String>,
    /// Name of the Skyhook
    #[arg(long)]
    skyhook: Option<String>,
    /// Only pods on this node, or on nodes that match a regular expression
    #[arg(long)]
    node: Option<String>,
    /// Only containers of this stage
    #[arg(long)]
    stage: Option<String>,
    /// Stream new lines
    #[arg(short, long)]
    follow: bool,
    /// Number of lines from the end; -1 for all
    #[arg(long, default_value = "-1", allow_negative_numbers = true, value_parser = number)]
    tail: i64,
}

impl Leaf for Logs {
    fn arity(&self) -> Result<()> {
        exactly_one(self.package.as_ref(), &self.more)
    }

    fn required(&self) -> Result<()> {
        skyhook_required(self.skyhook.as_deref())?;
        parse_stage(self.stage.as_deref()).map(|_| ())
    }
}

impl Logs {
    pub(super) async fn print(&self, session: &Session) -> Result<()> {
        let (skyhook, namespace) =
            (self.skyhook.as_deref().unwrap_or_default(), session.global.namespace());
        let path = format!(
            "/api/v1/namespaces/{namespace}/pods?labelSelector=skyhook.nvidia.com%2Fname%3D{skyhook}"
        );
        let pods = session.cluster.list(&path).await.context("listing pods")?;
        if pods.is_empty() {
            return output::print(&format!(
                "No pods found for skyhook {skyhook:?} in namespace {namespace:?}\n"
            ));
        }
        let pods = self.selected(pods)?;
        if pods.is_empty() {
            return output::print("No pods matched the specified filters\n");
        }
        for (at, pod) in pods.iter().enumerate() {
            if at > 0 {
                output::print("\n---\n")?;
            }
            self.print_pod(session, pod).await?;
        }
        Ok(())
    }

    /// The pods of the package, newest first.
    fn selected(&self, pods: Vec<Object>) -> Result<Vec<Object>> {
        let package = self.package.as_deref().unwrap_or_default();
        let nodes = self.node.as_ref().filter(|node| !node.is_empty()).map(std::slice::from_ref);
        let mut selected = Vec::new();
        for pod in pods {
            let label = pod.label(PACKAGE).unwrap_or_default();
            let is_its = label.strip_prefix(package);
            if !is_its.is_some_and(|rest| rest.is_empty() || rest.starts_with('-')) {
                continue;
            }
            let node = node_of(&pod)?;
            let is_there = match nodes {
                Some(names) => !select_nodes(std::iter::once(&node), names)?.is_empty(),
                None => true,
            };
            if is_there {
                selected.push(pod);
            }
        }
        selected.sort_by_key(|pod| std::cmp::Reverse(pod.created_at()));
        Ok(selected)
    }

    async fn print_pod(&self, session: &Session, pod: &Object) -> Result<()> {
        let containers = self.containers(pod);
        for (at, container) in containers.iter().enumerate() {
            if containers.len() > 1 {
                let gap = if at > 0 { "\n" } else { "" };
                output::print(&format!("{gap}=== Container: {container} ===\n"))?;
            }
            // A container without a log is no reason to keep back the others.
            if let Err(error) = self.print_container(session, pod, container).await {
                if output::is_closed_pipe(&error) {
                    return Err(error);
                }
                let name = pod.name();
                output::print(&format!("Error getting logs for {name}/{container}: {error:#}\n"))?;
            }
        }
        Ok(())
    }

    /// The container of the stage. Without one, those that have started, but for the one that copies
    /// files unless nothing else has; before that, the first.
    fn containers<'p>(&self, pod: &'p Object) -> Vec<&'p str> {
        let names = |field: &str| list(pod.spec(), field).iter().map(|it| text(it, "name"));
        if let Some(stage) = self.stage.as_deref().filter(|stage| !stage.is_empty()) {
            let wanted = format!("{}-{stage}", self.package.as_deref().unwrap_or_default());
            let all = names("initContainers").chain(names("containers"));
            return all.filter(|name| *name == wanted).take(1).collect();
        }
        let statuses = list(pod.status(), "initContainerStatuses");
        let started: Vec<&str> = statuses
            .iter()
            .filter(|status| status["state"].get("waiting").is_none_or(Value::is_null))
            .map(|status| text(status, "name"))
            .collect();
        let steps: Vec<&str> =
            started.iter().copied().filter(|name| !name.ends_with("-init")).collect();
        if !steps.is_empty() {
            return steps;
        }
        if !started.is_empty() {
            return started;
        }
        names("initContainers").take(1).collect()
    }

    async fn print_container(&self, session: &Session, pod: &Object, name: &str) -> Result<()> {
        let statuses = list(pod.status(), "initContainerStatuses")
            .iter()
            .chain(list(pod.status(), "containerStatuses"));
        let state = statuses.into_iter().find(|status| text(status, "name") == name);
        let state = state.map_or(&Value::Null, |status| &status["state"]);
        let (pod_name, node) = (pod.name(), pod.spec_text("nodeName"));
        let shown = shown(state);
        output::print(&format!(
            "==> Pod: {pod_name}, Container: {name}{shown}, Node: {node} <==\n"
        ))?;
        if let Some(waiting) = state.get("waiting") {
            let message = match text(waiting, "message") {
                "" => "Container has not started yet",
                message => message,
            };
            let reason = text(waiting, "reason");
            return output::print(&format!("(no logs available: {reason} - {message})\n"));
        }
        let tail = if self.tail < 0 { String::new() } else { format!("&tailLines={}", self.tail) };
        let follow = if self.follow { "&follow=true" } else { "" };
        let path = format!(
            "/api/v1/namespaces/{}/pods/{pod_name}/log?container={name}{follow}{tail}",
            pod.namespace(),
        );
        session.cluster.follow(&path).await
    }
}

/// The node of a pod, of which only the name matters.
fn node_of(pod: &Object) -> Result<Object> {
    let node = serde_json::json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": pod.spec_text("nodeName")}});
    Ok(Object::from_value(node)?)
}

/// A container's state in brackets; nothing if it has none.
fn shown(state: &Value) -> String {
    let word = if let Some(waiting) = state.get("waiting") {
        match text(waiting, "reason") {
            "" => "Waiting".to_owned(),
            reason => reason.to_owned(),
        }
    } else if state.get("running").is_some() {
        "Running".to_owned()
    } else if let Some(terminated) = state.get("terminated") {
        match terminated["exitCode"].as_i64() {
            Some(0) | None => "Completed".to_owned(),
            Some(code) => format!("Exit: {code}"),
        }
    } else {
        return String::new();
    };
    format!(" [{word}]")
}
