//! What is told about a cluster that joins or leaves.

use convoy_api::Object;

use crate::dialect::fleet::decide::membership::{Membership, Phase};
use crate::dialect::fleet::names::{DIALECT, member_namespace};
use crate::hold::{Hold, HoldReason};
use crate::step::{Action, Step, Verdict};

/// `actions` are those that joining or leaving comes to.
pub(crate) fn step(member: &Object, membership: &Membership<'_>, actions: Vec<Action>) -> Step {
    let mut step = Step::new(DIALECT, member, Verdict::Done);
    let hold = match membership.phase {
        Phase::Joining if actions.is_empty() && membership.joined != "True" => {
            let detail = "the member agent has not joined yet".to_owned();
            Some(Hold::of_rollout(HoldReason::NotAvailable { detail }))
        }
        Phase::AwaitingAgent { until } => {
            step.wake_at = until;
            let on = "the member agent to leave".to_owned();
            Some(Hold::of_rollout(HoldReason::Depends { on }).until(until))
        }
        Phase::AwaitingNamespace => {
            let on = format!("deletion of namespace {}", member_namespace(member.name()));
            Some(Hold::of_rollout(HoldReason::Depends { on }))
        }
        Phase::Joining | Phase::DeletingNamespace(_) | Phase::Left => None,
    };
    if hold.is_some() {
        step.verdict = Verdict::Held;
    }
    if !actions.is_empty() {
        step.verdict = Verdict::Moving;
    }
    step.holds.extend(hold);
    step.actions = actions;
    step
}
