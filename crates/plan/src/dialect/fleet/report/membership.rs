//! What is told about a cluster that joins or leaves.

use convoy_api::Object;

use crate::dialect::fleet::decide::membership::{Membership, Phase};
use crate::dialect::fleet::decide::profile::Profile;
use crate::dialect::fleet::names::{DIALECT, SYSTEM_NAMESPACE, member_namespace};
use crate::hold::{Hold, HoldReason};
use crate::step::{Action, Step, Verdict};

/// `actions` are those that joining or leaving, and the profile, come to.
pub(crate) fn step(
    member: &Object,
    membership: &Membership<'_>,
    profile: &Profile<'_>,
    actions: Vec<Action>,
) -> Step {
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
    let hold = hold.or_else(|| profile_hold(member, profile, &actions));
    if let Profile::Kept { until, .. } = profile {
        step.wake_at = [step.wake_at, *until].into_iter().flatten().min();
    }
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

/// What keeps the profile from being as it should.
fn profile_hold(member: &Object, profile: &Profile<'_>, actions: &[Action]) -> Option<Hold> {
    let name = format!("ClusterProfile {SYSTEM_NAMESPACE}/{}", member.name());
    match profile {
        Profile::Foreign { manager } => {
            let detail = format!("{name} belongs to cluster manager {manager:?}; delete it");
            Some(Hold::of_rollout(HoldReason::NotAvailable { detail }))
        }
        Profile::Withdrawn { found: Some(_) } if actions.is_empty() => {
            Some(Hold::of_rollout(HoldReason::Depends { on: format!("deletion of {name}") }))
        }
        Profile::Unwanted | Profile::Kept { .. } | Profile::Withdrawn { .. } => None,
    }
}
