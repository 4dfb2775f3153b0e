//! Node repair: nodes that stay unhealthy are deleted, whatever budgets and pods say, unless too
//! much of their pool is. Behind the feature gate `NodeRepair`.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::Disruptions;
use crate::budget::Rounding;
use crate::gate::{self, Candidate, Limit, Permit};
use crate::hold::{HoldReason, NAMED};

/// How long the simulated provider lets a node be unhealthy: not Ready, or silent.
const TOLERATION: SignedDuration = SignedDuration::from_mins(10);

/// If more of a pool is unhealthy, something else is wrong than its nodes.
const UNHEALTHY_PERCENT_MAX: u32 = 20;

const LIMIT: &str = "node repair (20% of the pool)";

/// The members of the own pool whose nodes are unhealthy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repairs {
    /// Those that are deleted now.
    pub(crate) starts: BTreeSet<usize>,
    /// What the gate gave for them.
    permit: Option<Permit>,
    /// Those that are being deleted already, and are not waited for any longer.
    pub(crate) hurried: BTreeSet<usize>,
    /// Those that have to wait.
    pub(crate) blocked: BTreeMap<usize, HoldReason>,
    /// When the next one has been unhealthy for too long.
    pub(crate) next_at: Option<Timestamp>,
}

impl Repairs {
    /// The permit of a member that is deleted now.
    pub(crate) fn permit_of(&self, at: usize) -> Option<Permit> {
        self.permit.filter(|_| self.starts.contains(&at))
    }
}

impl Disruptions<'_, '_> {
    /// Finds the nodes that are to be repaired. Those that are unhealthy use up the budgets
    /// already, so that deleting them takes nothing more.
    pub(super) fn repair(&mut self) {
        let cluster = self.cluster;
        // Which conditions other providers repair is not known.
        if !cluster.gates.node_repair || !cluster.pool().has_catalogue {
            return;
        }
        let (mut nodes, mut unhealthy, mut due) = (0, Vec::new(), Vec::new());
        let mut hurried = BTreeSet::new();
        for (at, member) in cluster.own_members() {
            let Some(node) = member.node else { continue };
            nodes += 1;
            let Some(since) = node.facts.unready_since else { continue };
            unhealthy.push(member.claim.name().clone());
            let until = since.checked_add(TOLERATION).unwrap_or(Timestamp::MAX);
            if until > cluster.now {
                let next = self.repairs.next_at.into_iter().chain([until]).min();
                self.repairs.next_at = next;
            } else if member.facts.is_deleting {
                hurried.insert(at);
            } else if !node.facts.is_deleting {
                due.push(Candidate::free(member.name(), at));
            }
        }
        let ceiling = Rounding::Up.share(nodes, UNHEALTHY_PERCENT_MAX);
        let in_flight = crate::count(unhealthy.len());
        unhealthy.truncate(NAMED);
        let by = unhealthy.into();
        let spent = HoldReason::BudgetSpent { limit: LIMIT, in_flight, ceiling, by };
        let limits = (in_flight > ceiling).then(|| Limit::closed(spent));
        if limits.is_none() {
            self.repairs.hurried = hurried;
        }
        let admission = gate::admit(due, limits.as_slice());
        self.repairs.permit = admission.permit();
        self.repairs.starts.extend(admission.starts.iter().map(|member| member.index));
        let blocked = admission.holds.into_iter().map(|(member, hold)| (member.index, hold));
        self.repairs.blocked.extend(blocked);
        self.leaving.extend(&self.repairs.starts);
    }
}
