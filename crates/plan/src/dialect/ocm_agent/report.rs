//! What is told about works, and about those that are gone from the hub.

use convoy_api::Object;
use serde_json::json;

use super::decide::applied_work::AppliedPhase;
use super::decide::manifest::{ApplyResult, Processed};
use super::decide::removal::Removal;
use super::decide::work::{Deletion, WorkPhase};
use super::names::DIALECT;
use crate::hold::{Hold, HoldReason};
use crate::step::{Action, Step, Verdict};

pub(crate) fn work(work: &Object, phase: &WorkPhase<'_>, actions: Vec<Action>) -> Step {
    let mut step = Step::new(DIALECT, work, Verdict::Done);
    step.holds = match phase {
        WorkPhase::AwaitingOld => waits("deletion of the AppliedManifestWork of an earlier work"),
        WorkPhase::Deleting(Deletion::Awaiting) => waits("deletion of the objects on the member"),
        WorkPhase::Applying(application) => {
            let objects = application.processed.iter().map(|it| it.item.identifier.shown());
            step.decision = json!({"objects": objects.collect::<Vec<_>>()});
            let going = application.removals.iter().filter_map(removal_hold);
            application.processed.iter().filter_map(hold).chain(going).collect()
        }
        WorkPhase::Owning | WorkPhase::Deleting(_) => Vec::new(),
    };
    step.judged(actions)
}

pub(crate) fn applied_work(
    applied_work: &Object,
    phase: &AppliedPhase<'_>,
    actions: Vec<Action>,
) -> Step {
    let mut step = Step::new(DIALECT, applied_work, Verdict::Done);
    step.holds = match phase {
        AppliedPhase::Unmanaged { until } => {
            step.wake_at = *until;
            let hold = HoldReason::Depends { on: "its work to return to the hub".to_owned() };
            vec![Hold::of_rollout(hold).until(*until)]
        }
        AppliedPhase::Removing(removals) => removals.iter().filter_map(removal_hold).collect(),
        AppliedPhase::Managed
        | AppliedPhase::Evicted
        | AppliedPhase::Removed
        | AppliedPhase::Released => Vec::new(),
    };
    step.judged(actions)
}

fn waits(on: &str) -> Vec<Hold> {
    vec![Hold::of_rollout(HoldReason::Depends { on: on.to_owned() })]
}

/// Why one object is not as it should be.
fn hold(processed: &Processed<'_>) -> Option<Hold> {
    let reason = match &processed.result {
        ApplyResult::Retried { message, .. }
        | ApplyResult::Failed { message }
        | ApplyResult::Misconfigured { message } => HoldReason::Failed { detail: message.clone() },
        ApplyResult::Applied | ApplyResult::Pending { .. } | ApplyResult::Frozen => return None,
    };
    Some(Hold::of_member(processed.item.identifier.shown(), reason))
}

/// An object that is going.
fn removal_hold(removal: &Removal<'_>) -> Option<Hold> {
    let resource = &removal.resource;
    let shown = format!("{} {}/{}", resource.resource, resource.namespace, resource.name);
    let reason = HoldReason::Depends { on: "its deletion".to_owned() };
    removal.is_listed().then(|| Hold::of_member(shown, reason))
}
