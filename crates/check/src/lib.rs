//! The guarantees of Convoy as code: what must be true of every plan, and of every sequence
//! of plans, whatever the world looks like.
//!
//! [`check`] looks at one plan beside the world it was made from; [`History`] at a sequence.
//! [`Applier`] does to a world what an API server would do with a plan's writes, so that
//! tests can go on from there. Nothing here decides: a finding is a bug in the engine.

mod apply;
mod guarantee;
mod history;
mod settle;
mod vigil;

use std::fmt;

use convoy_api::ObjectKey;
use convoy_plan::{Plan, Step, World};
use serde::Serialize;

pub use apply::{Applier, ApplyError};
pub use history::History;
pub use settle::{NotSettled, Settled, settle};
pub use vigil::{Compartments, Hand, Vigil};

/// The promises, by the letters that tests and documents use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Guarantee {
    /// Never more members in flight than every limit allows.
    G1,
    /// Health counts only if it is of the revision being rolled.
    G3,
    /// Every member is in exactly one state, and one that waits says why.
    G4,
    /// Never silently stuck.
    G6,
    /// An unchanged world gives no writes.
    G7,
    /// No object grows with the fleet.
    G8,
    /// Only what we did is undone.
    G9,
    /// Timers name the instant, and it lies ahead.
    G10,
}

/// A promise that a plan breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub guarantee: Guarantee,
    pub rollout: ObjectKey,
    pub message: String,
}

/// Every promise that `plan`, made from `world`, breaks. Empty is what it should be.
pub fn check(world: &World, plan: &Plan) -> Vec<Finding> {
    let mut findings = Vec::new();
    for step in &plan.steps {
        let subject = Subject { world, step, plan };
        for rule in guarantee::RULES {
            rule(&subject, &mut findings);
        }
    }
    findings
}

/// One step beside everything it was decided from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'p> {
    pub(crate) world: &'p World,
    pub(crate) step: &'p Step,
    pub(crate) plan: &'p Plan,
}

impl Subject<'_> {
    pub(crate) fn finding(&self, guarantee: Guarantee, message: impl Into<String>) -> Finding {
        Finding { guarantee, rollout: self.step.rollout.clone(), message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}: {}", self.guarantee, self.rollout, self.message)
    }
}
