//! G1: never over budget. Budgets are recomputed from raw objects and writes, without the code of the
//! dialect. For limits that span several steps, [`History`](crate::History) checks the ceilings of
//! groups.

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

/// A budget field as a number of members, or `otherwise` if it is absent.
fn resolved(
    value: Option<&serde_json::Value>,
    otherwise: convoy_plan::budget::IntOrPercent,
    total: u32,
    rounding: convoy_plan::budget::Rounding,
) -> u32 {
    let given = value.and_then(|value| convoy_plan::budget::IntOrPercent::from_value(value).ok());
    given.unwrap_or(otherwise).resolve(total, rounding)
}
