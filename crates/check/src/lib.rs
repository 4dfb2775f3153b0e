//! The guarantees of Convoy as code: properties of every plan, and of every sequence of plans, for
//! any world.
//!
//! [`check`] examines one plan and the world it was made from; [`History`] a sequence of plans.
//! [`Applier`] applies a plan's writes to a world as an API server would, so that tests can
//! continue from there. This crate decides nothing: a finding is a bug in the engine.

mod apply;
mod guarantee;
mod history;
pub mod node_pools;
mod settle;
mod vigil;

use std::fmt;

use convoy_api::ObjectKey;
use convoy_plan::{Plan, Step, World};
use serde::Serialize;

pub use apply::{Applier, ApplyError};
pub use history::History;
pub use settle::{NotSettled, Settled, settle};
pub use vigil::{Compartments, Hand, Placements, ReplicaSets, StagedRuns, Vigil};

/// The guarantees, by the names that tests and documents use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Guarantee {
    /// Never more members in flight than any limit allows.
    G1,
    /// Health counts only for the revision being rolled out.
    G3,
    /// Every member is in exactly one state, and every waiting member has a hold.
    G4,
    /// Never silently stuck.
    G6,
    /// An unchanged world causes no writes.
    G7,
    /// No object grows with the fleet.
    G8,
    /// Convoy undoes only its own changes.
    G9,
    /// Timers name an instant in the future.
    G10,
    /// No object ends the process, or harms another.
    G12,
}

/// A guarantee that a plan violates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub guarantee: Guarantee,
    pub rollout: ObjectKey,
    pub message: String,
}

/// All guarantees that `plan`, made from `world`, violates. Should be empty.
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

/// One step and the world it was decided from.
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
