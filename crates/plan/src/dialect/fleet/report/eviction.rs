//! What is told about an eviction.

use convoy_api::Object;
use serde_json::json;

use crate::dialect::fleet::decide::eviction::Eviction;
use crate::dialect::fleet::names::DIALECT;
use crate::hold::{Hold, HoldReason};
use crate::step::{Step, Verdict};

pub(crate) fn step(eviction: &Object, decided: &Eviction<'_>) -> Step {
    let mut step = Step::new(DIALECT, eviction, Verdict::Done);
    let mut remove = Vec::new();
    match decided {
        Eviction::Over => {}
        Eviction::Invalid { message } => {
            step.verdict = Verdict::Stopped;
            let reason = HoldReason::Failed { detail: message.clone() };
            step.holds.push(Hold::of_rollout(reason));
        }
        Eviction::Evicted { delete, .. } => {
            step.verdict = Verdict::Moving;
            remove.extend(delete.map(|(binding, _)| binding.name()));
        }
        Eviction::Refused { reason, .. } => {
            step.verdict = Verdict::Stopped;
            step.holds.push(Hold::of_rollout(reason.clone()));
        }
    }
    step.decision = json!({"remove": remove});
    step
}
