//! What is told about managed clusters, cluster sets and their bindings.

use convoy_api::Object;
use serde_json::{Value, json};

use crate::dialect::ocm::decide::registration::{Heartbeat, Phase, Registration};
use crate::dialect::ocm::names::{CLUSTER_AVAILABLE, DIALECT, HUB_ACCEPTED};
use crate::hold::{Hold, HoldReason};
use crate::step::{Action, Event, EventType, Step, Verdict};

/// The step of a managed cluster.
pub(crate) fn cluster(
    cluster: &Object,
    registration: &Registration<'_>,
    actions: Vec<Action>,
    status: Option<Value>,
) -> Step {
    let mut step = Step::new(DIALECT, cluster, Verdict::Done);
    let hold = match &registration.phase {
        Phase::Unaccepted => Some("somebody to set spec.hubAcceptsClient to true".to_owned()),
        Phase::Leaving(leftovers) if leftovers.works > 0 => {
            Some(format!("deletion of {} ManifestWorks in its namespace", leftovers.works))
        }
        _ => None,
    };
    if let Some(on) = hold {
        step.verdict = Verdict::Held;
        step.holds.push(Hold::of_rollout(HoldReason::Depends { on }));
    }
    if let Heartbeat::Fresh { until } = registration.heartbeat {
        step.wake_at = Some(until);
    }
    step.decision = json!({
        "accepted": cluster.condition_status(HUB_ACCEPTED),
        "available": cluster.condition_status(CLUSTER_AVAILABLE),
    });
    step.events = events(cluster, registration, status.is_some());
    step.status = status;
    with(step, actions)
}

/// Told when the status changes, so that nobody hears of it twice.
fn events(cluster: &Object, registration: &Registration<'_>, changes: bool) -> Vec<Event> {
    let mut events = Vec::new();
    let mut tell = |kind, reason: &str, message: String| {
        events.push(Event::new(cluster.key(), kind, reason, message));
    };
    let name = cluster.name();
    match registration.phase {
        Phase::Accepted { has_namespace: true }
            if cluster.condition_status(HUB_ACCEPTED) != Some("True") =>
        {
            let message = format!("managed cluster {name} is accepted by hub cluster admin");
            tell(EventType::Normal, "ManagedClusterAccepted", message);
        }
        Phase::Denied { .. } if cluster.condition_status(HUB_ACCEPTED) == Some("True") => {
            let message = format!("managed cluster {name} is denied by hub cluster admin");
            tell(EventType::Normal, "ManagedClusterDenied", message);
        }
        _ => {}
    }
    let is_known = cluster.condition_status(CLUSTER_AVAILABLE) != Some("Unknown");
    if changes && is_known && registration.heartbeat == Heartbeat::Stopped {
        let message = format!(
            "the agent of managed cluster {name} no longer renews its Lease; look at the agent \
             and at its way to the hub"
        );
        tell(EventType::Warning, "AvailableUnknown", message);
    }
    events
}

/// The step of an object that has nothing to wait for.
pub(crate) fn simple(rollout: &Object, actions: Vec<Action>, status: Option<Value>) -> Step {
    let mut step = Step::new(DIALECT, rollout, Verdict::Done);
    step.status = status;
    with(step, actions)
}

fn with(mut step: Step, actions: Vec<Action>) -> Step {
    if !actions.is_empty() {
        step.verdict = Verdict::Moving;
    }
    step.actions = actions;
    step
}
