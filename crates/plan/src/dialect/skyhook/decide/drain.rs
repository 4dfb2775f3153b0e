//! Makes a node ready for an interrupt: cordon it, wait for pods that must finish by themselves,
//! drain the rest. Each step is observed to be done before the next is taken.

use convoy_api::Object;

use crate::count;
use crate::dialect::skyhook::read::hook::Hook;
use crate::dialect::skyhook::read::node::is_cordoned;
use crate::dialect::skyhook::read::pod::{has_to_go, is_alive, phase};
use crate::hold::HoldReason;
use crate::pod_budget::PodBudget;

/// What a node needs before it may be disturbed.
#[derive(Clone, Debug)]
pub(crate) enum Readiness<'w> {
    Ready,
    /// Nobody keeps new pods away yet.
    Cordon,
    /// Nothing can be done but wait.
    Wait(HoldReason),
    /// These pods may be evicted now.
    Evict(Vec<&'w Object>, HoldReason),
}

/// PodDisruptionBudgets, and how much of each is left within one step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disruptions<'w> {
    budgets: Vec<PodBudget<'w>>,
}

/// What `node` needs, given every pod on it.
pub(crate) fn readiness<'w>(
    hook: &Hook<'_>,
    node: &Object,
    pods: &[&'w Object],
    disruptions: &mut Disruptions<'_>,
) -> Readiness<'w> {
    if !is_cordoned(node) {
        return Readiness::Cordon;
    }
    let alive = || pods.iter().copied().filter(|pod| is_alive(pod));
    if !hook.protected.is_empty()
        && let Some(pod) = alive().find(|pod| hook.protected.matches(pod))
    {
        return Readiness::Wait(HoldReason::PodProtected { pod: full_name(pod) });
    }
    let (leaving, staying): (Vec<&Object>, Vec<&Object>) =
        alive().filter(|pod| has_to_go(pod)).partition(|pod| pod.is_deleting());
    let mut evictions = Vec::new();
    let mut refused = None;
    for pod in staying.iter().copied() {
        match disruptions.take(pod) {
            Ok(()) => evictions.push(pod),
            Err(reason) => refused = refused.or(Some(reason)),
        }
    }
    let pods = count(leaving.len() + staying.len());
    let draining = HoldReason::Draining { pods };
    match (evictions.is_empty(), refused) {
        (false, _) => Readiness::Evict(evictions, draining),
        (true, None) if pods == 0 => Readiness::Ready,
        (true, None) => Readiness::Wait(draining),
        (true, Some(_)) if !leaving.is_empty() => Readiness::Wait(draining),
        (true, Some(reason)) => Readiness::Wait(reason),
    }
}

fn full_name(pod: &Object) -> String {
    format!("{}/{}", pod.namespace(), pod.name())
}

impl<'w> Disruptions<'w> {
    pub(crate) fn new(budgets: &[&'w Object]) -> Self {
        let budgets = budgets.iter().filter_map(|object| PodBudget::read(object));
        Self { budgets: budgets.collect() }
    }

    /// Takes one disruption for `pod` from every budget that covers it, or says which one has
    /// none left.
    fn take(&mut self, pod: &Object) -> Result<(), HoldReason> {
        if phase(pod) == Some("Pending") {
            return Ok(()); // budgets guard what is available
        }
        let covering: Vec<usize> =
            (0..self.budgets.len()).filter(|at| self.budgets[*at].covers(pod)).collect();
        for at in &covering {
            let budget = &self.budgets[*at];
            if let Some(allowed) = budget.allowed.filter(|allowed| *allowed <= 0) {
                let name = full_name(budget.object);
                let pod = full_name(pod);
                return Err(HoldReason::PodDisruptionBudget { budget: name, pod, allowed });
            }
        }
        for at in covering {
            self.budgets[at].allowed = self.budgets[at].allowed.map(|allowed| allowed - 1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
