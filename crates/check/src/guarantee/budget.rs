//! G1: never over budget, recomputed from the raw objects and the writes, without asking the
//! dialect how it counted. Where a limit spans several steps, [`History`](crate::History) adds
//! the groups' own ceilings.

pub(crate) mod apps;
mod fleet;
mod karpenter;
mod ocm;
mod skyhook;

use crate::{Finding, Subject};

pub(crate) fn never_over(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    findings.extend(match subject.step.dialect {
        "apps" => apps::over(subject),
        "fleet" => fleet::over(subject),
        "karpenter" => karpenter::over(subject),
        "ocm" => ocm::over(subject),
        "skyhook" => skyhook::over(subject),
        _ => None,
    });
}

/// A field of the budget kind as a number of members, or `otherwise` where it is absent.
fn resolved(
    value: Option<&serde_json::Value>,
    otherwise: convoy_plan::budget::IntOrPercent,
    total: u32,
    rounding: convoy_plan::budget::Rounding,
) -> u32 {
    let given = value.and_then(|value| convoy_plan::budget::IntOrPercent::from_value(value).ok());
    given.unwrap_or(otherwise).resolve(total, rounding)
}
