//! New nodes for pods: those that the scheduler found no node for, and those of nodes that go.

use std::collections::BTreeSet;

use super::Disruptions;
use super::replicas::BURST;
use super::simulate::{Removal, Replacement, simulate};
use crate::dialect::karpenter::names::condition;
use crate::gate::{self, Limit, Permit};

/// The nodes that the own pool makes for pods.
#[derive(Clone, Debug)]
pub(crate) struct Provision<'w> {
    pub(crate) replacements: Vec<Replacement<'w>>,
    pub(crate) permit: Permit,
}

impl<'w> Disruptions<'_, 'w> {
    /// The nodes that the own pool makes now. Every pool simulates the same, and makes its own.
    ///
    /// A claim that is not launched yet may be for these pods: nothing is made before that is
    /// known. Neither is anything for a pool that is not Ready, or static.
    pub(crate) fn provision(&self) -> Option<Provision<'w>> {
        let (cluster, own) = (self.cluster, self.cluster.own);
        let is_ready = cluster.pool().object.condition_status(condition::READY) == Some("True");
        let is_waiting = cluster
            .members
            .iter()
            .any(|member| member.facts.provider_id.is_empty() && !member.facts.is_deleting);
        let has_commands = self.commands.iter().any(|command| !command.replacements.is_empty());
        if !is_ready || is_waiting || has_commands || cluster.pool().is_static() {
            return None;
        }
        let inventory = self.inventory.as_ref()?;
        let leaving: BTreeSet<usize> =
            self.leaving.iter().copied().filter(|at| cluster.members[*at].is_leaving()).collect();
        let removal = Removal { candidates: &[], leaving: &leaving, is_consolidation: false };
        let made = simulate(inventory, removal).replacements.into_iter();
        let mut replacements: Vec<Replacement<'w>> =
            made.filter(|replacement| replacement.pool == own).collect();
        let wanted = crate::count(replacements.len());
        let grant = gate::grant(wanted, &[Limit::burst(BURST, 0)]);
        replacements.truncate(grant.count as usize);
        Some(Provision { permit: grant.permit()?, replacements })
    }
}
