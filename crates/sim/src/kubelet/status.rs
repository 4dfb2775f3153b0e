//! The status of a pod as a kubelet writes it: phase, conditions, containers, addresses.

use convoy_api::object::member::{field, list, text};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::container::{Ended, Standing, State};
use super::{Addresses, Lifetime, PodContainers};
use crate::component::assembled;

/// An instant as Kubernetes writes it, in whole seconds.
pub fn stamp(instant: Timestamp) -> String {
    format!("{instant:.0}")
}

fn text_of(known: &str, otherwise: impl FnOnce() -> String) -> Value {
    Value::String(if known.is_empty() { otherwise() } else { known.to_owned() })
}

pub(super) fn status(
    pod: &Value,
    parts: &PodContainers,
    lifetime: &Lifetime,
    addresses: &Addresses,
    now: Timestamp,
) -> Value {
    let (spec, old) = (field(pod, "spec"), field(pod, "status"));
    let phase = phase(parts);
    let init = statuses(pod, "initContainers", &parts.init, "initContainerStatuses");
    let containers = statuses(pod, "containers", &parts.containers, "containerStatuses");
    let begun = text(old, "startTime");
    let mut status = assembled([
        ("phase", json!(phase)),
        ("conditions", conditions(pod, parts, phase, now)),
        ("hostIP", json!(addresses.host)),
        ("hostIPs", json!([{"ip": addresses.host}])),
        ("startTime", text_of(begun, || stamp(lifetime.begun))),
        ("containerStatuses", containers),
    ]);
    let has_begun = parts.containers.iter().chain(&parts.init).any(|c| c.first_started.is_some());
    let address = if field(spec, "hostNetwork") == &Value::Bool(true) {
        &addresses.host
    } else {
        &addresses.pod
    };
    if has_begun || !text(old, "podIP").is_empty() {
        status["podIP"] = json!(address);
        status["podIPs"] = json!([{"ip": address}]);
    }
    if !parts.init.is_empty() {
        status["initContainerStatuses"] = init;
    }
    if let Some(ephemeral) = ephemeral_statuses(pod, parts, now) {
        status["ephemeralContainerStatuses"] = ephemeral;
    }
    if let Some(generation) = generation(pod) {
        status["observedGeneration"] = json!(generation);
    }
    if parts.is_overdue {
        status["reason"] = json!("DeadlineExceeded");
        status["message"] = json!("Pod was active on the node longer than the specified deadline");
    }
    status
}

/// The generation of the specification; servers before 1.33 keep none of pods.
pub(crate) fn generation(pod: &Value) -> Option<i64> {
    field(field(pod, "metadata"), "generation").as_i64().filter(|generation| *generation > 0)
}

/// Containers that somebody adds to look into a pod: they run at once, and as long as it does.
fn ephemeral_statuses(pod: &Value, parts: &PodContainers, now: Timestamp) -> Option<Value> {
    let containers = list(field(pod, "spec"), "ephemeralContainers");
    if containers.is_empty() || !parts.is_initialized {
        return None;
    }
    let before = list(field(pod, "status"), "ephemeralContainerStatuses");
    let is_over = parts.containers.iter().all(Standing::is_done);
    let status = |container: &Value| {
        let (name, image) = (text(container, "name"), text(container, "image"));
        let known = before.iter().find(|status| text(status, "name") == name);
        let known = known.map_or(&Value::Null, |status| field(status, "state"));
        let since = text(field(known, "running"), "startedAt");
        let state = match (is_over, known.get("terminated")) {
            (_, Some(_)) => known.clone(),
            (true, None) => json!({"terminated": {"exitCode": 0, "reason": "Completed",
                "startedAt": text_of(since, || stamp(now)), "finishedAt": stamp(now)}}),
            (false, None) => json!({"running": {"startedAt": text_of(since, || stamp(now))}}),
        };
        json!({"name": name, "image": image, "imageID": image, "ready": false, "restartCount": 0,
            "containerID": identity(pod, name, 0), "state": state, "lastState": {}})
    };
    Some(containers.iter().map(status).collect())
}

pub(super) fn phase(parts: &PodContainers) -> &'static str {
    if parts.is_overdue {
        return "Failed";
    }
    let failed = |standing: &Standing| match &standing.state {
        State::Ended(ended) => standing.is_done() && ended.code != 0,
        _ => false,
    };
    if !parts.is_initialized {
        return if parts.init.iter().any(failed) { "Failed" } else { "Pending" };
    }
    if parts.containers.iter().all(Standing::is_done) && !parts.containers.is_empty() {
        return if parts.containers.iter().any(failed) { "Failed" } else { "Succeeded" };
    }
    let never_ran = |standing: &Standing| standing.first_started.is_none();
    if parts.containers.iter().any(never_ran) { "Pending" } else { "Running" }
}

/// What the kubelet says, in its order, and the conditions of others as they are.
fn conditions(pod: &Value, parts: &PodContainers, phase: &str, now: Timestamp) -> Value {
    let old = list(field(pod, "status"), "conditions");
    let is_over = matches!(phase, "Succeeded" | "Failed");
    let is_ready = |standing: &Standing| standing.is_ready;
    let sandbox = parts.init.iter().chain(&parts.containers).any(|c| c.first_started.is_some());
    let unready = names(pod, "containers", &parts.containers, |c| !is_ready(c));
    let uninitialized = names(pod, "initContainers", &parts.init, |c| {
        c.first_started.is_none() || !matches!(c.state, State::Ended(_) | State::Running { .. })
    });
    let gate = list(field(pod, "spec"), "readinessGates").iter().find(|gate| {
        let kind = text(gate, "conditionType");
        !old.iter().any(|c| text(c, "type") == kind && text(c, "status") == "True")
    });
    let containers_ready = match (is_over, unready.is_empty()) {
        (true, _) if phase == "Succeeded" => Said::no("PodCompleted", String::new()),
        (true, _) => Said::no("PodFailed", String::new()),
        (false, true) => Said::YES,
        (false, false) => {
            Said::no("ContainersNotReady", format!("containers with unready status: [{unready}]"))
        }
    };
    let ready = match gate {
        Some(gate) if containers_ready.is_true => {
            let kind = text(gate, "conditionType");
            let message =
                format!("corresponding condition of pod readiness gate {kind:?} does not exist.");
            Said::no("ReadinessGatesNotReady", message)
        }
        _ => containers_ready.clone(),
    };
    let initialized = if parts.is_initialized {
        Said::YES
    } else {
        let message = format!("containers with incomplete status: [{uninitialized}]");
        Said::no("ContainersNotInitialized", message)
    };
    let started =
        if sandbox && !is_over { Said::YES } else { Said { is_true: false, ..Said::YES } };
    let said = [
        ("PodReadyToStartContainers", started),
        ("Initialized", initialized),
        ("Ready", ready),
        ("ContainersReady", containers_ready),
        ("PodScheduled", Said::YES),
    ];
    let is_ours = |kind: &str| said.iter().any(|(ours, _)| *ours == kind);
    let others = old.iter().filter(|condition| !is_ours(text(condition, "type"))).cloned();
    let ours = said.iter().map(|(kind, said)| said.condition(kind, pod, now));
    ours.chain(others).collect()
}

/// What one condition says.
#[derive(Clone)]
struct Said {
    is_true: bool,
    reason: &'static str,
    message: String,
}

impl Said {
    const YES: Self = Self { is_true: true, reason: "", message: String::new() };

    fn no(reason: &'static str, message: String) -> Self {
        Self { is_true: false, reason, message }
    }

    /// The instant of a condition is that of its last turn.
    fn condition(&self, kind: &str, pod: &Value, now: Timestamp) -> Value {
        let old = list(field(pod, "status"), "conditions");
        let status = if self.is_true { "True" } else { "False" };
        let before = old.iter().find(|condition| text(condition, "type") == kind);
        let unturned = before.filter(|before| text(before, "status") == status);
        let turned = unturned.map_or("", |before| text(before, "lastTransitionTime"));
        let mut condition = assembled([
            ("type", json!(kind)),
            ("status", json!(status)),
            ("lastProbeTime", Value::Null),
            ("lastTransitionTime", text_of(turned, || stamp(now))),
        ]);
        if let Some(generation) = generation(pod) {
            condition["observedGeneration"] = json!(generation);
        }
        if !self.reason.is_empty() {
            condition["reason"] = json!(self.reason);
        }
        if !self.message.is_empty() {
            condition["message"] = json!(self.message);
        }
        condition
    }
}

fn names(
    pod: &Value,
    kind: &str,
    standings: &[Standing],
    which: impl Fn(&Standing) -> bool,
) -> String {
    let containers = list(field(pod, "spec"), kind).iter().zip(standings);
    let chosen = containers.filter(|(_, standing)| which(standing));
    chosen.map(|(container, _)| text(container, "name")).collect::<Vec<_>>().join(" ")
}

fn statuses(pod: &Value, kind: &str, standings: &[Standing], reported: &str) -> Value {
    let containers = list(field(pod, "spec"), kind);
    let before = list(field(pod, "status"), reported);
    let is_init = kind == "initContainers";
    let status = |(container, standing): (&Value, &Standing)| {
        let name = text(container, "name");
        let counted = before.iter().find(|status| text(status, "name") == name);
        let counted = counted.and_then(|status| field(status, "restartCount").as_u64());
        let identity = identity(pod, name, standing.restarts);
        let is_running = matches!(standing.state, State::Running { .. });
        // An init container is ready when it has done its work.
        let is_done = matches!(&standing.state, State::Ended(ended) if ended.code == 0);
        // A count never falls, though reboots before our own start are unknown.
        let restarts = counted.unwrap_or(0).max(u64::from(standing.restarts));
        let mut status = assembled([
            ("name", json!(name)),
            ("image", json!(text(container, "image"))),
            ("imageID", json!("")),
            ("ready", json!(standing.is_ready || is_init && is_done)),
            ("started", json!(is_running)),
            ("restartCount", json!(restarts)),
            ("state", state(&standing.state, &identity)),
            ("lastState", json!({})),
        ]);
        if standing.first_started.is_some() {
            status["containerID"] = json!(identity);
            status["imageID"] = json!(text(container, "image"));
        }
        if let Some(last) = &standing.last {
            let before = self::identity(pod, name, standing.restarts.saturating_sub(1));
            status["lastState"] = json!({"terminated": terminated(last, &before)});
        }
        status
    };
    containers.iter().zip(standings).map(status).collect()
}

fn identity(pod: &Value, container: &str, run: u32) -> String {
    let uid = text(field(pod, "metadata"), "uid");
    let seed = crate::seed::Seed::new(0).child(uid, container).nth(run);
    let [first, second, third, fourth] = [0, 1, 2, 3].map(|n| seed.nth(n).number());
    format!("containerd://{first:016x}{second:016x}{third:016x}{fourth:016x}")
}

fn state(state: &State, identity: &str) -> Value {
    match state {
        State::Waiting { reason, message } if message.is_empty() => {
            json!({"waiting": {"reason": reason}})
        }
        State::Waiting { reason, message } => {
            json!({"waiting": {"reason": reason, "message": message}})
        }
        State::Running { since } => json!({"running": {"startedAt": stamp(*since)}}),
        State::Ended(ended) => json!({"terminated": terminated(ended, identity)}),
    }
}

fn terminated(ended: &Ended, identity: &str) -> Value {
    json!({
        "exitCode": ended.code,
        "reason": if ended.code == 0 { "Completed" } else { "Error" },
        "startedAt": stamp(ended.started),
        "finishedAt": stamp(ended.finished),
        "containerID": identity,
    })
}
