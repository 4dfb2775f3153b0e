//! G10: timers lie in the future, and no hold ends before the next check.

use crate::{Finding, Guarantee, Subject};

pub(crate) fn names_the_instant(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let (step, now) = (subject.step, subject.plan.now);
    if let Some(wake_at) = step.wake_at
        && wake_at < now
    {
        findings.push(
            subject.finding(Guarantee::G10, format!("wakes at {wake_at}, which is in the past")),
        );
    }
    let Some(earliest) = step.holds.iter().filter_map(|hold| hold.until).min() else { return };
    if earliest < now {
        let message = format!("a hold ends at {earliest}, which is in the past");
        findings.push(subject.finding(Guarantee::G10, message));
    }
    if step.wake_at.is_none_or(|wake_at| wake_at > earliest) {
        let message =
            format!("a hold ends at {earliest}, but the next check is at {:?}", step.wake_at);
        findings.push(subject.finding(Guarantee::G10, message));
    }
}
