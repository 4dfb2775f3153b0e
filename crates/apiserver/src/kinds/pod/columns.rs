//! Pods in a table: one word for what may be wrong with any of many containers.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::column::Cell::{Made, Text};
use crate::column::{AGE, Column, NAME, Row, age, condition, string, wide};

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    string("Ready", Made(ready)),
    string("Status", Made(status)),
    string("Restarts", Made(restarts)),
    AGE,
    wide("IP", Text("/status/podIPs/0/ip", "<none>")),
    wide("Node", Text("/spec/nodeName", "<none>")),
    wide("Nominated Node", Text("/status/nominatedNodeName", "<none>")),
    wide("Readiness Gates", Made(gates)),
];

/// Tells clients which rows are of pods that have ended.
pub(super) fn row_conditions(pod: &Value) -> Option<Value> {
    let (reason, message) = match pod["status"]["phase"].as_str() {
        Some("Succeeded") => ("Succeeded", "The pod has completed successfully."),
        Some("Failed") => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

/// What the containers of a pod amount to.
struct Summary {
    ready: usize,
    total: usize,
    reason: String,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

fn ready(row: &Row<'_>) -> Value {
    let summary = Summary::of(row);
    json!(format!("{}/{}", summary.ready, summary.total))
}

fn status(row: &Row<'_>) -> Value {
    json!(Summary::of(row).reason)
}

fn restarts(row: &Row<'_>) -> Value {
    let summary = Summary::of(row);
    json!(match summary.last_restart {
        Some(last) if summary.restarts != 0 => {
            format!("{} ({} ago)", summary.restarts, age(Some(&last.to_string()), row.now))
        }
        _ => summary.restarts.to_string(),
    })
}

/// How many of the conditions that a pod waits for hold.
fn gates(row: &Row<'_>) -> Value {
    let conditions = &row.object["status"]["conditions"];
    let gates: Vec<&str> = row
        .items("/spec/readinessGates")
        .filter_map(|gate| gate["conditionType"].as_str())
        .collect();
    if gates.is_empty() {
        return json!("<none>");
    }
    let holds =
        |gate: &&&str| condition(conditions, gate).is_some_and(|one| one["status"] == "True");
    json!(format!("{}/{}", gates.iter().filter(holds).count(), gates.len()))
}

impl Summary {
    fn of(row: &Row<'_>) -> Self {
        let total = row.items("/spec/containers").count()
            + row.items("/spec/initContainers").filter(|one| is_sidecar(one)).count();
        let mut summary =
            Self { ready: 0, total, reason: initial_reason(row), restarts: 0, last_restart: None };
        let conditions = &row.object["status"]["conditions"];
        let is = |of: &str| condition(conditions, of).is_some_and(|one| one["status"] == "True");
        let is_initializing = summary.add_init_containers(row);
        if !is_initializing || is("Initialized") {
            summary.forget_finished_init(row);
            summary.add_containers(row, is("Ready"));
        }
        let phase = row.text("/status/phase");
        if row.is_deleting() && row.text("/status/reason") == "NodeLost" {
            "Unknown".clone_into(&mut summary.reason);
        } else if row.is_deleting() && !matches!(phase, "Succeeded" | "Failed") {
            "Terminating".clone_into(&mut summary.reason);
        }
        summary
    }

    /// Goes through the init containers up to the first that is not done; says whether there is
    /// one.
    fn add_init_containers(&mut self, row: &Row<'_>) -> bool {
        let wanted = row.items("/spec/initContainers").count();
        for (index, status) in row.items("/status/initContainerStatuses").enumerate() {
            self.add_restarts(status);
            let terminated = &status["state"]["terminated"];
            if terminated["exitCode"] == 0 {
                continue;
            }
            if is_named_sidecar(row, status) && status["started"] == true {
                self.ready += usize::from(status["ready"] == true);
                continue;
            }
            let waiting = status["state"]["waiting"]["reason"].as_str().unwrap_or_default();
            self.reason = if terminated.is_object() {
                format!("Init:{}", ending(terminated))
            } else if !waiting.is_empty() && waiting != "PodInitializing" {
                format!("Init:{waiting}")
            } else {
                format!("Init:{index}/{wanted}")
            };
            return true;
        }
        false
    }

    /// Once a pod runs, only init containers that go on running count for its restarts.
    fn forget_finished_init(&mut self, row: &Row<'_>) {
        (self.restarts, self.last_restart) = (0, None);
        let statuses = row.items("/status/initContainerStatuses");
        for status in statuses.filter(|status| is_named_sidecar(row, status)) {
            self.add_restarts(status);
        }
    }

    fn add_containers(&mut self, row: &Row<'_>, is_pod_ready: bool) {
        let mut some_run = false;
        let mut failure = None;
        let statuses: Vec<&Value> = row.items("/status/containerStatuses").collect();
        for status in statuses.into_iter().rev() {
            self.add_restarts(status);
            let state = &status["state"];
            let waiting = state["waiting"]["reason"].as_str().unwrap_or_default();
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if state["terminated"].is_object() {
                self.reason = ending(&state["terminated"]);
                if state["terminated"]["exitCode"].as_i64().unwrap_or(0) != 0 {
                    failure = Some(self.reason.clone());
                }
            } else if status["ready"] == true && state["running"].is_object() {
                some_run = true;
                self.ready += 1;
            }
        }
        // One container has ended well, which says little about the others.
        if self.reason == "Completed" {
            match (some_run, is_pod_ready, failure) {
                (true, true, _) => "Running".clone_into(&mut self.reason),
                (_, _, Some(failure)) => self.reason = failure,
                (true, false, None) => "NotReady".clone_into(&mut self.reason),
                (false, _, None) => {}
            }
        }
    }

    fn add_restarts(&mut self, status: &Value) {
        self.restarts += status["restartCount"].as_i64().unwrap_or(0);
        let ended = status["lastState"]["terminated"]["finishedAt"].as_str();
        let ended = ended.and_then(|text| text.parse::<Timestamp>().ok());
        self.last_restart = self.last_restart.max(ended);
    }
}

fn initial_reason(row: &Row<'_>) -> String {
    let gated = row
        .items("/status/conditions")
        .any(|one| one["type"] == "PodScheduled" && one["reason"] == "SchedulingGated");
    if gated {
        return "SchedulingGated".to_owned();
    }
    row.text_or("/status/reason", row.text("/status/phase"))
}

/// Why a container ended.
fn ending(terminated: &Value) -> String {
    match (terminated["reason"].as_str(), terminated["signal"].as_i64()) {
        (Some(reason), _) if !reason.is_empty() => reason.to_owned(),
        (_, Some(signal)) if signal != 0 => format!("Signal:{signal}"),
        _ => format!("ExitCode:{}", terminated["exitCode"].as_i64().unwrap_or(0)),
    }
}

/// An init container that goes on running beside the others.
fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

fn is_named_sidecar(row: &Row<'_>, status: &Value) -> bool {
    row.items("/spec/initContainers").any(|one| one["name"] == status["name"] && is_sidecar(one))
}
