//! A decision about a budget as a [`Step`].

use convoy_api::Object;
use jiff::Timestamp;
use serde_json::json;

use crate::dialect::workloads::decide::budget::Count;
use crate::dialect::workloads::read::budget::Budget;
use crate::dialect::workloads::status::budget::status;
use crate::hold::{Hold, HoldReason};
use crate::step::{Event, EventType, Step, Verdict};

pub(crate) fn step(
    dialect: &'static str,
    object: &Object,
    decision: Result<(Budget<'_>, Count<'_>), String>,
    now: Timestamp,
) -> Step {
    let mut step = Step::new(dialect, object, Verdict::Done);
    match decision {
        Ok((budget, count)) => {
            step.status = status(object, Ok(&count), now);
            step.wake_at = count.recheck_at;
            step.decision = json!({
                "expectedPods": count.expected,
                "desiredHealthy": count.desired,
                "currentHealthy": count.healthy,
                "disruptionsAllowed": count.allowed,
            });
            if step.status.is_some() {
                step.events = events(&budget, &count);
            }
        }
        Err(why) => {
            step.verdict = Verdict::Stopped;
            step.status = status(object, Err(&why), now);
            if step.status.is_some() {
                let message = format!("Failed to calculate the number of expected pods: {why}");
                step.events.push(Event::new(
                    object.key(),
                    EventType::Warning,
                    "CalculateExpectedPodCountFailed",
                    message,
                ));
            }
            step.holds.push(Hold::of_rollout(HoldReason::Failed { detail: why }));
        }
    }
    step
}

/// What people should be told, whenever the status changes.
fn events(budget: &Budget<'_>, count: &Count<'_>) -> Vec<Event> {
    let object = budget.object;
    let path = format!("{}/{}", object.namespace(), object.name());
    let mut events: Vec<Event> = Vec::new();
    let mut tell = |regarding: &Object, kind: EventType, reason: &str, message: String| {
        events.push(Event::new(regarding.key(), kind, reason, message));
    };
    if budget.pods.is_empty() {
        tell(object, EventType::Normal, "NoPods", "No matching pods found".to_owned());
    }
    if count.has_unmanaged {
        let message = "Some of the selected pods have no controller and do not count towards a \
            percentage or maxUnavailable; set spec.minAvailable to an integer to count them";
        tell(object, EventType::Warning, "UnmanagedPods", message.to_owned());
    }
    for pod in &count.overdue {
        let message = format!("Pod was expected by PDB {path} to be deleted but it wasn't");
        tell(pod, EventType::Warning, "NotDeleted", message);
    }
    events
}
