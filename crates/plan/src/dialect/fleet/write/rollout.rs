//! The writes of a rolling update.

use jiff::Timestamp;

use super::binding;
use crate::dialect::fleet::decide::rollout::group::Change;
use crate::dialect::fleet::decide::rollout::{Roll, Rollout};
use crate::dialect::fleet::names::ROLLOUT_STARTED;
use crate::dialect::fleet::read::binding::{Binding, DesiredBinding};
use crate::dialect::fleet::read::placement::Placement;
use crate::merge_patch::nested;
use crate::step::{Action, Propagation, Verb, Why};

const STARTED: &str = "the newest resources are on their way to the cluster";
const NOT_STARTED: &str = "the rollout strategy does not allow the change yet";

pub(crate) fn actions(
    rollout: &Rollout<'_>,
    placement: &Placement<'_>,
    now: Timestamp,
) -> Vec<Action> {
    match rollout {
        Rollout::ApplyStrategy(stale) => {
            stale.iter().map(|binding| apply_strategy(placement, binding)).collect()
        }
        Rollout::Roll(roll) => rolled(roll, now),
        _ => Vec::new(),
    }
}

fn apply_strategy(placement: &Placement<'_>, binding: &Binding<'_>) -> Action {
    let strategy = binding::strategy_patch(binding, &placement.apply_strategy);
    let why = Why::new("ApplyStrategyChanged", "the placement's apply strategy changed");
    let patch = nested(&["spec", "applyStrategy"], strategy);
    Action::patch(Verb::Record, binding.object, patch, why)
}

fn rolled(roll: &Roll<'_>, now: Timestamp) -> Vec<Action> {
    let mut actions = Vec::new();
    for binding in roll.blocked() {
        let generation = binding.generation();
        actions.extend(binding::rollout_started(binding, false, generation, NOT_STARTED, now));
    }
    for binding in roll.groups.current.iter().filter(|it| !it.is_true(ROLLOUT_STARTED)) {
        let generation = binding.generation();
        actions.extend(binding::rollout_started(binding, true, generation, STARTED, now));
    }
    for (change, verb) in roll.changed() {
        actions.extend(changed(change, verb, roll.resource_snapshot, now));
    }
    actions.extend(roll.removed().map(|(binding, verb)| removed(binding, verb)));
    actions
}

/// The new spec, then the condition that tells the work generator to act on it. Changing the
/// spec makes the next generation.
fn changed(
    change: &Change<'_>,
    verb: Verb,
    resource_snapshot: &str,
    now: Timestamp,
) -> impl Iterator<Item = Action> {
    let target = &change.binding;
    let desired =
        DesiredBinding { resource_snapshot, overrides: &change.overrides, apply_strategy: None };
    let reason = match verb {
        Verb::Start(_) => "NewlyPicked",
        Verb::Retry(_) => "FailedAnyway",
        _ => "OutOfDate",
    };
    let message = format!("cluster {} gets {resource_snapshot}", target.cluster());
    let patched = binding::bound(&desired, target, verb, Why::new(reason, message));
    let generation = target.generation().saturating_add(1);
    let started = binding::rollout_started(target, true, generation, STARTED, now);
    [patched].into_iter().chain(started)
}

/// Takes the resources off a cluster that is no longer picked.
pub(crate) fn removed(binding: &Binding<'_>, verb: Verb) -> Action {
    let message = format!("cluster {} is no longer picked", binding.cluster());
    let why = Why::new("NoLongerPicked", message);
    Action::delete(verb, binding.object, Propagation::Background, why)
}
