//! G3: health counts only if it is of the revision being rolled.

use convoy_plan::Verdict;
use serde_json::Value;

use crate::{Finding, Guarantee, Subject};

/// A rollout that calls itself done speaks about the generation that is there.
///
/// Stale evidence about *members* is not looked at here: each dialect's own tests cover it.
pub(crate) fn is_of_this_revision(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    if subject.step.verdict != Verdict::Done {
        return;
    }
    let Some(rollout) = subject.world.get(&subject.step.rollout) else { return };
    let status = subject.step.status.as_ref().unwrap_or_else(|| rollout.status());
    let Some(observed) = status.get("observedGeneration").and_then(Value::as_i64) else { return };
    if observed != rollout.generation() {
        let generation = rollout.generation();
        let message = format!("is done at generation {generation} by what is known of {observed}");
        findings.push(subject.finding(Guarantee::G3, message));
    }
}
