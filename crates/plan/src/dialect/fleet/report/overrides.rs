//! What is told about an override: whether its snapshots are in line with it.

use convoy_api::Object;

use crate::dialect::fleet::names::DIALECT;
use crate::step::{Action, Step, Verdict};

pub(crate) fn step(rollout: &Object, actions: Vec<Action>) -> Step {
    let verdict = if actions.is_empty() { Verdict::Done } else { Verdict::Moving };
    let mut step = Step::new(DIALECT, rollout, verdict);
    step.actions = actions;
    step
}
