//! Old ReplicaSets are kept for rollbacks, up to a limit.

use std::cmp::Ordering;

use super::DeploymentDecision;
use crate::dialect::apps::read::owned_set::{OwnedSet, by_age};

impl DeploymentDecision<'_> {
    /// Deletes old sets beyond the limit, lowest revision first. One that cannot go yet still
    /// takes its place in the count.
    pub(crate) fn trim_history(&mut self) {
        let Some(limit) = self.deployment.history_limit else { return };
        let new = self.new;
        let mut kept: Vec<&mut OwnedSet<'_>> = self
            .sets
            .iter_mut()
            .enumerate()
            .filter(|(at, set)| Some(*at) != new && !set.object.is_deleting())
            .map(|(_, set)| set)
            .collect();
        let excess = kept.len().saturating_sub(limit);
        if excess == 0 {
            return;
        }
        kept.sort_by(|a, b| by_revision(a, b));
        for set in kept.into_iter().take(excess) {
            let empty = set.had == 0 && set.wants == 0 && set.counts.replicas == 0;
            let seen = set.object.generation() <= set.counts.observed_generation;
            set.trimmed = empty && seen;
        }
    }
}

/// Sets whose revision cannot be read come first, so that the order is a total one.
fn by_revision(left: &OwnedSet<'_>, right: &OwnedSet<'_>) -> Ordering {
    left.revision().cmp(&right.revision()).then_with(|| by_age(left, right))
}
