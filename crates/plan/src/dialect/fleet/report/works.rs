//! What is told about the Works of a binding.

use serde_json::json;

use crate::dialect::fleet::decide::works::{Generation, Phase};
use crate::dialect::fleet::names::{APPLIED, AVAILABLE, DIFF_REPORTED};
use crate::dialect::fleet::names::{DIALECT, ROLLOUT_STARTED};
use crate::dialect::fleet::read::work::{WorkReport, reports_differences, worst};
use crate::hold::{Hold, HoldReason};
use crate::step::{Action, Step, Verdict};

/// `failure` is why the Works cannot be made.
pub(crate) fn step(
    generation: &Generation<'_>,
    actions: Vec<Action>,
    failure: Option<String>,
) -> Step {
    let binding = &generation.binding;
    let mut step = Step::new(DIALECT, binding.object, Verdict::Done);
    let names: Vec<&str> = generation.works.iter().map(|work| work.name().as_str()).collect();
    step.decision = json!({"works": names});
    let reason = match &generation.phase {
        Phase::Idle => None,
        Phase::AwaitingRollout => {
            let on = format!("{ROLLOUT_STARTED} for generation {}", binding.generation());
            Some(HoldReason::Depends { on })
        }
        Phase::Withdrawing { .. } => awaiting_deletion(generation),
        Phase::Generating(_) => match failure {
            Some(detail) => Some(HoldReason::Failed { detail }),
            None => unavailable(generation).or_else(|| awaiting_deletion(generation)),
        },
    };
    step.verdict = match &reason {
        _ if !actions.is_empty() => Verdict::Moving,
        Some(HoldReason::Failed { .. }) => Verdict::Stopped,
        Some(_) => Verdict::Held,
        None => Verdict::Done,
    };
    step.holds.extend(reason.map(Hold::of_rollout));
    step.actions = actions;
    step
}

fn awaiting_deletion(generation: &Generation<'_>) -> Option<HoldReason> {
    let leaving = generation.works.iter().chain(&generation.leaving);
    let first = leaving.clone().next().filter(|_| {
        !generation.leaving.is_empty() || matches!(generation.phase, Phase::Withdrawing { .. })
    })?;
    let on = format!("deletion of {} Works, the first is {}", leaving.count(), first.name());
    Some(HoldReason::Depends { on })
}

/// What the member has not reported yet.
fn unavailable(generation: &Generation<'_>) -> Option<HoldReason> {
    let differs = reports_differences(generation.binding.object.spec());
    let kinds: &[&str] = if differs { &[DIFF_REPORTED] } else { &[APPLIED, AVAILABLE] };
    let unready =
        kinds.iter().find(|kind| worst(&generation.works, kind) >= WorkReport::Nothing)?;
    let cluster = generation.binding.cluster();
    let detail = format!("cluster {cluster} does not report {unready} for every Work");
    Some(HoldReason::NotAvailable { detail })
}
