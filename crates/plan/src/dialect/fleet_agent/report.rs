//! What is told about Works and about the membership.

pub(crate) mod counts;

use convoy_api::Object;
use jiff::Timestamp;
use serde_json::json;

use super::decide::manifest::{ApplyOrReportResult, Processed};
use super::decide::membership::{Membership, next_heartbeat};
use super::decide::work::{Deletion, WorkPhase};
use super::names::DIALECT;
use crate::availability::Availability;
use crate::hold::{Hold, HoldReason};
use crate::step::{Action, Step, Verdict};

pub(crate) fn work(work: &Object, phase: &WorkPhase<'_>, actions: Vec<Action>) -> Step {
    let mut step = Step::new(DIALECT, work, Verdict::Done);
    let waits = |on: &str| vec![Hold::of_rollout(HoldReason::Depends { on: on.to_owned() })];
    step.holds = match phase {
        WorkPhase::NotJoined => waits("the hub to ask the member to join"),
        WorkPhase::AwaitingOld => waits("deletion of the AppliedWork of an earlier Work"),
        WorkPhase::Deleting(Deletion::Awaiting { until }) => {
            step.wake_at = *until;
            waits("deletion of the objects on the member")
        }
        WorkPhase::Deleting(Deletion::Unblocking { .. }) => {
            waits("deletion of the objects on the member")
        }
        WorkPhase::Applying(application) => {
            let objects: Vec<String> =
                application.processed.iter().map(|it| it.manifest.identifier.shown()).collect();
            step.decision = json!({"objects": objects});
            let differs = |it: &Processed<'_>| !it.drifts.is_empty() || !it.diffs.is_empty();
            let is_observed = application.processed.iter().any(differs);
            step.wake_at = application.looks.next.filter(|_| is_observed);
            application.processed.iter().filter_map(hold).collect()
        }
        WorkPhase::Released | WorkPhase::Owning | WorkPhase::Deleting(_) => Vec::new(),
    };
    step.judged(actions)
}

/// Why one object is not as it should be.
fn hold(processed: &Processed<'_>) -> Option<Hold> {
    let reason = match &processed.result {
        ApplyOrReportResult::Applied {
            availability: Availability::NotYetAvailable { detail },
            ..
        } => HoldReason::NotAvailable { detail: detail.clone() },
        ApplyOrReportResult::Applied { availability: Availability::Failed { detail }, .. }
        | ApplyOrReportResult::Retried { message: detail, .. }
        | ApplyOrReportResult::Failed { message: detail, .. } => {
            HoldReason::Failed { detail: detail.clone() }
        }
        ApplyOrReportResult::Applied { .. }
        | ApplyOrReportResult::Pending { .. }
        | ApplyOrReportResult::Reported => return None,
    };
    Some(Hold::of_member(processed.manifest.identifier.shown(), reason))
}

pub(crate) fn membership(internal: &Object, membership: &Membership, now: Timestamp) -> Step {
    let mut step = Step::new(DIALECT, internal, Verdict::Done);
    let reason = match membership {
        Membership::Reporting(_) => {
            step.wake_at = next_heartbeat(internal, now);
            None
        }
        Membership::Quiet { until } => {
            step.wake_at = *until;
            None
        }
        Membership::Unasked => Some("the hub to ask the member to join or to leave".to_owned()),
        Membership::Leaving { works } => Some(format!("{works} Works to be let go")),
        Membership::Left => None,
    };
    if let Some(on) = reason {
        step.verdict = Verdict::Held;
        step.holds.push(Hold::of_rollout(HoldReason::Depends { on }));
    }
    step
}
