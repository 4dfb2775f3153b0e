//! Ordinary objects that lie in the bag beside the fleet's own: each is judged by itself, and
//! nothing is ever written.

use convoy_api::Object;
use serde_json::json;

use crate::availability::{self, Availability};
use crate::dialect::fleet::names::DIALECT;
use crate::hold::{Hold, HoldReason};
use crate::step::{Step, Verdict};

/// What is known of one object.
pub(crate) fn step(object: &Object) -> Step {
    let judged = availability::judge(object);
    let name = format!("{}/{}", object.kind().kind, object.name());
    let (verdict, reason) = match &judged {
        Availability::Available | Availability::NotTrackable { .. } => (Verdict::Done, None),
        Availability::NotYetAvailable { detail } => {
            (Verdict::Held, Some(HoldReason::NotAvailable { detail: detail.clone() }))
        }
        Availability::Failed { detail } => {
            (Verdict::Stopped, Some(HoldReason::Failed { detail: detail.clone() }))
        }
    };
    let mut step = Step::new(DIALECT, object, verdict);
    step.decision = json!({"available": {name: judged.word()}});
    step.holds.extend(reason.map(Hold::of_rollout));
    step
}
