//! What a decision about endpoints tells.

use convoy_api::Object;
use serde_json::json;

use super::decide::Course;
use super::names::DIALECT;
use crate::step::{Action, Step, Verdict};

pub(super) fn step(rollout: &Object, course: &Course<'_>, actions: Vec<Action>) -> Step {
    let mut step = Step::new(DIALECT, rollout, Verdict::Done);
    if let Course::List(backends) = course {
        let ready = backends.iter().filter(|backend| backend.is_ready()).count();
        step.decision = json!({"pods": backends.len(), "ready": ready});
    }
    step.judged(actions)
}
