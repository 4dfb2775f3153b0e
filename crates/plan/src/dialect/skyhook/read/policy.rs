//! The pace of a rollout as its policy, or the legacy budget, asks for it: which compartments
//! there are, with which budget and which strategy. Defaults are filled in here as well as at
//! admission, since a plan may be made from objects that no server has seen.

use convoy_api::Object;
use convoy_api::object::ViewError;
use convoy_api::skyhook::{
    Budget, DEPLOYMENT_POLICY, DeploymentPolicySpec, InterruptionBudget, Strategy as WireStrategy,
};
use serde_json::Value;
use smol_str::SmolStr;

use crate::budget::{IntOrPercent, Rounding};
use crate::dialect::skyhook::names::SAFETY_PROGRESS;
use crate::pace::Pace;
use crate::selector::Selector;
use crate::snapshot::Snapshot;

/// The compartment of nodes that no other selects.
pub(crate) const DEFAULT: &str = "__default__";

/// A share of a compartment, rounded down, but at least one node while there are any.
pub(crate) const ROUNDING: Rounding = Rounding::Down { at_least: 1 };

/// What a strategy says where its author says nothing. No number of failures stops it then.
pub(crate) const INITIAL_BATCH: i64 = 1;
pub(crate) const BATCH_THRESHOLD: i64 = 100;
pub(crate) const SAFETY_LIMIT: i64 = 50;
pub(crate) const DELTA: i64 = 1;
pub(crate) const GROWTH_FACTOR: i64 = 2;

/// One compartment as it was asked for.
#[derive(Clone, Debug)]
pub(crate) struct CompartmentSpec {
    pub(crate) name: SmolStr,
    pub(crate) selector: Selector,
    pub(crate) budget: IntOrPercent,
    pub(crate) strategy: Option<Strategy>,
}

/// How batches of a compartment grow, and when failures stop it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strategy {
    pub(crate) pace: Pace,
    /// The share of a batch that has to succeed, in percent.
    pub(crate) batch_threshold: u32,
    pub(crate) failure_threshold: Option<u32>,
    /// The progress in percent from which failures neither slow nor stop.
    pub(crate) safety_limit: u32,
    pub(crate) safety_progress: SafetyProgress,
}

/// Which nodes count as progress towards the safety limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SafetyProgress {
    /// Those that are complete or have failed, as upstream.
    #[default]
    Processed,
    /// Those that are complete.
    Completed,
}

impl SafetyProgress {
    /// The words that the annotation may have.
    pub(crate) const WORDS: [&str; 2] = ["completed", "processed"];

    /// What a policy asks for. Validation refuses other words.
    fn of(policy: &Object) -> Self {
        match policy.annotation(SAFETY_PROGRESS) {
            Some("completed") => Self::Completed,
            _ => Self::Processed,
        }
    }
}

impl Strategy {
    /// The word in decisions and metrics.
    pub(crate) fn word(&self) -> &'static str {
        match self.pace {
            Pace::Fixed { .. } => "fixed",
            Pace::Linear { .. } => "linear",
            Pace::Exponential { .. } => "exponential",
        }
    }

    /// Whether failures neither slow nor stop any more, with so many nodes of `total` complete and
    /// failed.
    pub(crate) fn is_past_safety_limit(&self, completed: u32, failed: u32, total: u32) -> bool {
        let progress = match self.safety_progress {
            SafetyProgress::Processed => completed.saturating_add(failed),
            SafetyProgress::Completed => completed,
        };
        percent_of(progress, total) >= self.safety_limit
    }
}

impl CompartmentSpec {
    /// The most nodes of `matched` in progress at once.
    pub(crate) fn ceiling(&self, matched: u32) -> u32 {
        self.budget.resolve(matched, ROUNDING)
    }

    /// Where several compartments want a node: safer strategies first, then smaller ceilings,
    /// then names. `matched` counts the nodes that this selector takes before assignment.
    pub(crate) fn safety(&self, matched: u32) -> (u8, u32, &str) {
        let by_strategy = match self.strategy.map(|strategy| strategy.pace) {
            Some(Pace::Fixed { .. }) => 0,
            Some(Pace::Linear { .. }) => 1,
            Some(Pace::Exponential { .. }) => 2,
            None => 3,
        };
        (by_strategy, self.ceiling(matched), &self.name)
    }
}

/// The compartments that the policy of this name asks for, and whether it resets batch state.
/// None if there is no such policy.
pub(crate) fn find(
    snapshot: &Snapshot<'_>,
    name: &str,
) -> Option<(Vec<CompartmentSpec>, Option<bool>)> {
    if name.is_empty() {
        return None;
    }
    // A policy that cannot be read is refused by validation, which names the field.
    snapshot.find(&DEPLOYMENT_POLICY, "", name).and_then(|policy| read(policy).ok())
}

/// The compartments of a policy, the default last, and whether it resets batch state.
fn read(policy: &Object) -> Result<(Vec<CompartmentSpec>, Option<bool>), ViewError> {
    let spec: DeploymentPolicySpec = policy.spec_view()?;
    let raw = policy.spec().get("compartments").and_then(Value::as_array);
    let progress = SafetyProgress::of(policy);
    let strategy = |wire: Option<&WireStrategy>| wire.and_then(|wire| strategy(wire, progress));
    let mut all = Vec::new();
    for (index, compartment) in spec.compartments.iter().flatten().enumerate() {
        let selector = raw.and_then(|raw| raw.get(index)?.get("selector"));
        let selector = Selector::from_value(selector.unwrap_or(&Value::Null));
        all.push(CompartmentSpec {
            name: SmolStr::new(&compartment.name),
            selector: selector.map_err(|error| ViewError {
                field: format!("spec.compartments[{index}].selector.{}", error.field),
                message: error.message,
            })?,
            budget: budget(Some(&compartment.budget)),
            strategy: strategy(compartment.strategy.as_ref()),
        });
    }
    all.push(CompartmentSpec {
        name: SmolStr::new_static(DEFAULT),
        selector: Selector::default(),
        budget: budget(spec.default.budget.as_ref()),
        strategy: strategy(spec.default.strategy.as_ref()),
    });
    Ok((all, spec.reset_batch_state_on_completion))
}

/// The one compartment of a Skyhook without a policy, which targets `nodes`.
///
/// | budget     | nodes | ceiling | every batch |
/// |------------|------:|--------:|------------:|
/// | percent 20 |    10 |       2 |           2 |
/// | percent 0  |    15 |       1 |           1 |
/// | count 0    |     3 |       0 |           1 |
/// | count 9    |     4 |       9 |           4 |
/// | none       |    10 |      10 |          10 |
pub(crate) fn legacy(given: Option<&InterruptionBudget>, nodes: u32) -> CompartmentSpec {
    let given = given.cloned().unwrap_or_default();
    let budget = match (given.percent, given.count) {
        (Some(percent), _) => IntOrPercent::Percent(number(percent)),
        (None, Some(count)) => IntOrPercent::Int(count),
        (None, None) => IntOrPercent::Percent(100),
    };
    let initial = budget.resolve(nodes, Rounding::Down { at_least: 0 }).min(nodes).max(1);
    let strategy = Strategy {
        pace: Pace::Fixed { initial },
        batch_threshold: number(BATCH_THRESHOLD),
        failure_threshold: None,
        safety_limit: number(SAFETY_LIMIT),
        safety_progress: SafetyProgress::default(),
    };
    CompartmentSpec {
        name: SmolStr::new_static(DEFAULT),
        selector: Selector::default(),
        budget,
        strategy: Some(strategy),
    }
}

/// `part` of `total` in whole percent, rounded down; 0 of nothing.
pub(crate) fn percent_of(part: u32, total: u32) -> u32 {
    let share = (u64::from(part) * 100).checked_div(u64::from(total)).unwrap_or(0);
    u32::try_from(share).unwrap_or(u32::MAX)
}

/// A budget that says nothing, which admission refuses, lets one node through.
fn budget(wire: Option<&Budget>) -> IntOrPercent {
    let wire = wire.cloned().unwrap_or_default();
    match (wire.percent, wire.count) {
        (Some(percent), _) => IntOrPercent::Percent(number(percent)),
        (None, Some(count)) => IntOrPercent::Int(count),
        (None, None) => IntOrPercent::Int(1),
    }
}

fn strategy(wire: &WireStrategy, safety_progress: SafetyProgress) -> Option<Strategy> {
    let at_least_one =
        |given: Option<i64>, otherwise: i64| number(given.unwrap_or(otherwise)).max(1);
    let made =
        |pace, batch_threshold: Option<i64>, failures: Option<i64>, limit: Option<i64>| Strategy {
            pace,
            batch_threshold: number(batch_threshold.unwrap_or(BATCH_THRESHOLD)),
            failure_threshold: failures.map(number),
            safety_limit: number(limit.unwrap_or(SAFETY_LIMIT)),
            safety_progress,
        };
    if let Some(fixed) = &wire.fixed {
        let pace = Pace::Fixed { initial: at_least_one(fixed.initial_batch, INITIAL_BATCH) };
        return Some(made(
            pace,
            fixed.batch_threshold,
            fixed.failure_threshold,
            fixed.safety_limit,
        ));
    }
    if let Some(linear) = &wire.linear {
        let pace = Pace::Linear {
            initial: at_least_one(linear.initial_batch, INITIAL_BATCH),
            delta: at_least_one(linear.delta, DELTA),
        };
        return Some(made(
            pace,
            linear.batch_threshold,
            linear.failure_threshold,
            linear.safety_limit,
        ));
    }
    let exponential = wire.exponential.as_ref()?;
    let pace = Pace::Exponential {
        initial: at_least_one(exponential.initial_batch, INITIAL_BATCH),
        factor: number(exponential.growth_factor.unwrap_or(GROWTH_FACTOR)).max(2),
    };
    let (threshold, failures) = (exponential.batch_threshold, exponential.failure_threshold);
    Some(made(pace, threshold, failures, exponential.safety_limit))
}

/// A number of the wire as a count: negative is none, more than fits is as much as fits.
pub(crate) fn number(wire: i64) -> u32 {
    u32::try_from(wire.max(0)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_legacy_budget_is_a_fixed_pace() {
        let percent = |percent| InterruptionBudget { percent: Some(percent), count: None };
        let count = |count| InterruptionBudget { percent: None, count: Some(count) };
        let cases = [
            (Some(percent(20)), 2, 1, 1),
            (Some(percent(20)), 10, 2, 2),
            (Some(percent(0)), 15, 1, 1),
            (Some(count(0)), 3, 0, 1),
            (Some(count(9)), 4, 9, 4),
            (None, 10, 10, 10),
            (None, 0, 0, 1),
        ];
        for (budget, nodes, ceiling, size) in cases {
            let terms = legacy(budget.as_ref(), nodes);
            assert_eq!(terms.ceiling(nodes), ceiling, "{budget:?} of {nodes}");
            let pace = terms.strategy.unwrap().pace;
            assert_eq!(pace, Pace::Fixed { initial: size }, "{budget:?} of {nodes}");
        }
    }
}
