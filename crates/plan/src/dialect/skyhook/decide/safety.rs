//! Failures that carry a compartment past its safety limit. As upstream, failed nodes count as
//! progress: a rollout in which everything fails passes the limit, and from there on no failure
//! stops it. That is said where it happens, since the author of a `failureThreshold` relies on it.

use crate::dialect::skyhook::decide::Decision;
use crate::dialect::skyhook::decide::compartment::Compartment;
use crate::dialect::skyhook::read::batch::BatchState;

/// A compartment that failures carried past its limit, in which a `failureThreshold` was to stop
/// them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassedByFailures<'d> {
    compartment: &'d Compartment,
    /// It was not past the limit before this decision.
    pub(crate) is_new: bool,
}

/// All of them, in the order of the policy.
pub(crate) fn passed_by_failures<'d>(
    decision: &'d Decision<'_, '_>,
) -> impl Iterator<Item = PassedByFailures<'d>> {
    let passed = decision
        .compartments
        .iter()
        .filter(|compartment| is_passed(compartment, &compartment.batch));
    passed.map(|compartment| {
        let before = decision.hook.published_batch(&compartment.spec.name);
        PassedByFailures { compartment, is_new: !is_passed(compartment, &before) }
    })
}

/// Whether a compartment with this state is past its limit only because failed nodes count, and its
/// last batch failed. A batch that tolerates its failures says nothing.
fn is_passed(compartment: &Compartment, batch: &BatchState) -> bool {
    let Some(strategy) = &compartment.spec.strategy else { return false };
    let (completed, failed, total) =
        (batch.completed_nodes, batch.failed_nodes, compartment.total());
    strategy.failure_threshold.is_some()
        && batch.consecutive_failures > 0
        && !batch.should_stop
        && strategy.is_past_safety_limit(completed, failed, total)
        && !strategy.is_past_safety_limit(completed, 0, total)
}

impl PassedByFailures<'_> {
    /// What happened, with its numbers.
    pub(crate) fn text(&self) -> String {
        let Compartment { spec, batch, .. } = self.compartment;
        format!(
            "compartment {} is past safetyLimit with {} failed, {} complete; failureThreshold no \
             longer applies",
            spec.name, batch.failed_nodes, batch.completed_nodes
        )
    }
}
