//! Guarantees over a sequence of plans.

use std::collections::BTreeMap;

use convoy_api::ObjectKey;
use convoy_plan::{Plan, World};

use crate::{Finding, Guarantee, check};

/// Observes plans in the order in which they are made.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Members in flight by rollout and group, as of the last plan.
    in_flight: BTreeMap<(ObjectKey, String), u32>,
    findings: Vec<Finding>,
}

impl History {
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks `plan` by itself and against the previous plans.
    pub fn observe(&mut self, world: &World, plan: &Plan) {
        self.findings.extend(check(world, plan));
        let mut now_in_flight = BTreeMap::new();
        for step in &plan.steps {
            for group in &step.groups {
                let place = (step.rollout.clone(), group.name.clone());
                let before = self.in_flight.get(&place).copied().unwrap_or(0);
                if group.ceiling.is_some_and(|ceiling| group.moving > ceiling.max(1).max(before)) {
                    let message = format!(
                        "group {} has {} in flight, {before} before, and a ceiling of {:?}",
                        group.name, group.moving, group.ceiling
                    );
                    let rollout = step.rollout.clone();
                    self.findings.push(Finding { guarantee: Guarantee::G1, rollout, message });
                }
                now_in_flight.insert(place, group.moving);
            }
        }
        self.in_flight = now_in_flight;
    }

    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
}
