//! G12: planning fails on no object. Where it does, the plan says so and goes on, and this finds it.

use convoy_plan::HoldReason;

use crate::{Finding, Guarantee, Subject};

pub(crate) fn none_is_told(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for hold in &subject.step.holds {
        if let HoldReason::PlanFailed { panic } = &hold.reason {
            findings.push(subject.finding(Guarantee::G12, format!("planning panicked: {panic}")));
        }
    }
}
