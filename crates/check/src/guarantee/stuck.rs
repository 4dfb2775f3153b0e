//! G6: a rollout that is not done and has no action has a hold that says why.

use convoy_plan::Verdict;

use crate::{Finding, Guarantee, Subject};

pub(crate) fn never_silently(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let step = subject.step;
    let in_flight = step.groups.iter().any(|group| group.moving + group.settling + group.gone > 0);
    let idle = step.is_quiet() && step.wake_at.is_none() && !in_flight;
    match step.verdict {
        Verdict::Moving if idle => {
            let message =
                "says it moves, but writes nothing, waits for nothing and has nothing in flight";
            findings.push(subject.finding(Guarantee::G6, message));
        }
        Verdict::Done | Verdict::Invalid | Verdict::Moving => {}
        Verdict::Held | Verdict::Stopped | Verdict::Paused => {
            if step.holds.is_empty() {
                let message = format!("is {:?} without a hold", step.verdict);
                findings.push(subject.finding(Guarantee::G6, message));
            }
        }
    }
}
