//! G3: health counts only for the revision being rolled out.

use convoy_plan::Verdict;
use serde_json::Value;

use crate::{Finding, Guarantee, Subject};

/// A rollout with the verdict Done has observed the current generation.
///
/// Stale evidence about *members* is covered by the tests of each dialect.
pub(crate) fn is_of_this_revision(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    if subject.step.verdict != Verdict::Done {
        return;
    }
    let Some(rollout) = subject.world.get(&subject.step.rollout) else { return };
    let status = subject.step.status.as_ref().unwrap_or_else(|| rollout.status());
    let Some(observed) = status.get("observedGeneration").and_then(Value::as_i64) else { return };
    if observed != rollout.generation() {
        let generation = rollout.generation();
        let message = format!("is Done at generation {generation}, but observed only {observed}");
        findings.push(subject.finding(Guarantee::G3, message));
    }
}
