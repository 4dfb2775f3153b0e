//! What is the same in many simulations: where the pods go that need a node anyway. Thousands of
//! candidates are asked about one by one, while hundreds of nodes are on their way out.

use std::collections::BTreeSet;

use super::{Base, Inventory, MovingPod, Progress, Removal, Simulation, pods_without_node};

/// What a simulation of candidates whose pods are `moving` begins with. None: its pods are not the
/// last to be given a node, or others would go where the candidates are.
pub(super) fn progress<'w>(
    inventory: &Inventory<'_, 'w>,
    removal: Removal<'_>,
    moving: &[MovingPod<'w>],
) -> Option<Progress<'w>> {
    if inventory.has_topology || moving.iter().any(|pod| !pod.needs.topology.is_empty()) {
        return None;
    }
    let mut known = inventory.base.borrow_mut();
    if known.as_ref().is_none_or(|base| base.leaving != *removal.leaving) {
        *known = Some(Base::new(inventory, removal.leaving));
    }
    let base = known.as_ref()?;
    let progress = base.progress.as_ref()?;
    let is_last = |pod: &MovingPod<'_>| base.smallest.is_none_or(|smallest| pod.size() <= smallest);
    let stays = |at: &usize| {
        let member = inventory.nodes[*at].member;
        member.is_none_or(|member| !removal.candidates.contains(&member))
    };
    let is_apart = moving.iter().all(is_last) && progress.targets.keys().all(stays);
    is_apart.then(|| progress.clone())
}

impl<'w> Base<'w> {
    fn new(inventory: &Inventory<'_, 'w>, leaving: &BTreeSet<usize>) -> Self {
        let moving = pods_without_node(inventory, leaving);
        let cares = moving.iter().any(|pod| !pod.needs.topology.is_empty());
        let smallest = moving.iter().map(MovingPod::size).min();
        let progress = (!cares).then(|| {
            let mut state = Simulation::new(inventory, leaving, &moving);
            state.schedule_all(moving, false);
            state.progress
        });
        Self { leaving: leaving.clone(), smallest, progress }
    }
}
