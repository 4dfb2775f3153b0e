//! What is told about the registration.

use convoy_api::Object;
use serde_json::Value;

use super::decide::{Registration, Renewal};
use super::names::DIALECT;
use crate::hold::{Hold, HoldReason};
use crate::step::{Action, Step, Verdict};

pub(crate) fn step(
    cluster: &Object,
    registration: &Registration<'_>,
    actions: Vec<Action>,
    status: Option<Value>,
) -> Step {
    let mut step = Step::new(DIALECT, cluster, Verdict::Done);
    let waits = |on: &str| Hold::of_rollout(HoldReason::Depends { on: on.to_owned() });
    match registration {
        Registration::Unaccepted => {
            step.holds.push(waits("the hub to accept the cluster (spec.hubAcceptsClient)"));
        }
        Registration::Accepted { renewal, report } => {
            match renewal {
                Renewal::Missing => {
                    step.holds.push(waits("the hub to create the Lease of the cluster"));
                }
                Renewal::Fresh { until } => step.wake_at = Some(*until),
                Renewal::Due(_) => {}
            }
            if report.is_none() {
                step.holds.push(waits("the clocks of hub and cluster to be synchronized"));
            }
        }
    }
    step.verdict = if !actions.is_empty() {
        Verdict::Moving
    } else if step.holds.is_empty() {
        Verdict::Done
    } else {
        Verdict::Held
    };
    step.actions = actions;
    step.status = status;
    step
}
