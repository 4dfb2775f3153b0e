//! New nodes for pods: those that the scheduler found no node for, and those of nodes that go.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use convoy_api::Object;
use jiff::{SignedDuration, Timestamp};

use super::Disruptions;
use super::replicas::BURST;
use super::simulate::{Removal, Replacement, min_values, simulate};
use crate::dialect::karpenter::names::condition;
use crate::dialect::karpenter::read::claim::Member;
use crate::dialect::karpenter::read::pod::Pod;
use crate::gate::{self, Limit, Permit};
use crate::hold::HoldReason;

/// Pods that a claim was made for get the next one no sooner: whatever keeps them from its node
/// may keep them from any other.
const PAUSE: SignedDuration = SignedDuration::from_secs(10);
/// The same for pods that began to wait in the second in which the claim was made: times are whole
/// seconds, so nobody knows whether it was made for them.
const SAME_SECOND: SignedDuration = SignedDuration::from_secs(1);

/// The nodes that the own pool makes for pods.
#[derive(Clone, Debug)]
pub(crate) struct Provision<'w> {
    pub(crate) replacements: Vec<Replacement<'w>>,
    pub(crate) permit: Option<Permit>,
    /// Why pods that wait get no node of this pool, or not all of them do.
    pub(crate) hold: Option<HoldReason>,
    /// Pods that no pool could make a node for; the first pool that makes any speaks for all.
    pub(crate) hopeless: Vec<&'w Object>,
}

impl<'w> Disruptions<'_, 'w> {
    /// The nodes that the own pool makes now; absent for static pools, and where there are no
    /// pods. Every pool simulates the same, and makes its own.
    pub(crate) fn provision(&self) -> Option<Provision<'w>> {
        let (cluster, own) = (self.cluster, self.cluster.own);
        let inventory = self.inventory.as_ref().filter(|_| !cluster.pool().is_static())?;
        // The pool as a whole is one candidate: while it makes nothing, what it would make is not
        // worth a simulation.
        let opening = gate::grant(1, &self.provision_limits());
        if opening.count == 0 {
            let hold = opening.hold.filter(|_| !cluster.pending.is_empty());
            let (replacements, hopeless) = (Vec::new(), Vec::new());
            return Some(Provision { replacements, permit: None, hold, hopeless });
        }
        let leaving: BTreeSet<usize> =
            self.leaving.iter().copied().filter(|at| cluster.members[*at].is_leaving()).collect();
        let removal = Removal { candidates: &[], leaving: &leaving, is_consolidation: false };
        let result = simulate(inventory, removal);
        let speaker = cluster.pools.iter().position(|pool| !pool.is_static());
        let hopeless = if speaker == Some(own) { result.hopeless } else { Vec::new() };
        let made = result.replacements.into_iter();
        let mut replacements: Vec<Replacement<'w>> =
            made.filter(|replacement| replacement.pool == own).collect();
        let wanted = crate::count(replacements.len());
        let grant = gate::grant(wanted, &[Limit::burst(BURST, 0)]);
        replacements.truncate(grant.count as usize);
        Some(Provision { permit: grant.permit(), hold: grant.hold, replacements, hopeless })
    }

    /// Why the own pool can make no node at all while pods wait for one, in upstream's words.
    pub(crate) fn incompatible(&self) -> Option<&'static str> {
        let (cluster, pool) = (self.cluster, self.cluster.pool());
        let inventory = self.inventory.as_ref()?;
        if cluster.pending.is_empty() || pool.is_static() || !pool.has_catalogue {
            return None;
        }
        let offers = inventory.offers_of(cluster.own);
        if offers.is_empty() {
            return Some(
                "NodePool requirements filtered out all compatible available instance types",
            );
        }
        let is_unmet = min_values::unmet(pool, offers).is_some();
        is_unmet.then_some(
            "NodePool requirements filtered out all compatible available instance types due to \
             minValues incompatibility",
        )
    }

    /// What keeps the own pool from making nodes for pods, in order of precedence.
    ///
    /// A claim that is not launched yet may be for these pods: nothing is made before that is
    /// known, nor shortly afterwards if they are still waiting.
    fn provision_limits(&self) -> Vec<Limit> {
        let cluster = self.cluster;
        let is_ready = cluster.pool().object.condition_status(condition::READY) == Some("True");
        let readiness =
            (!is_ready).then(|| format!("NodePool {} to be Ready", cluster.pool().name()));
        let launch =
            cluster.launching().map(|claim| format!("NodeClaim {} to be launched", claim.name()));
        let has_commands = self.commands.iter().any(|command| !command.replacements.is_empty());
        let commands =
            has_commands.then(|| "replacements of nodes that are being disrupted".to_owned());
        let depends = [readiness, launch, commands].into_iter().flatten();
        let depends = depends.map(|on| Limit::closed(HoldReason::Depends { on }));
        let pause = self
            .pause()
            .map(|(_, pause)| Limit::closed(HoldReason::Settling { for_secs: pause.as_secs() }));
        depends.chain(pause).collect()
    }

    /// When pods get nodes that the newest claim may have been made for; absent if that is now, or
    /// nobody waits.
    pub(crate) fn provisions_at(&self) -> Option<Timestamp> {
        self.pause().map(|(until, _)| until)
    }

    /// Until when, and how long in all, pods wait for nodes because of the newest claim.
    ///
    /// | pods wait since         | the next claim      |
    /// |-------------------------|---------------------|
    /// | before the newest claim | 10 s after that one |
    /// | the same second         | 1 s after that one  |
    /// | later                   | now                 |
    ///
    /// A node that leaves is a reason to look again only if it has pods that need another one.
    fn pause(&self) -> Option<(Timestamp, SignedDuration)> {
        let (cluster, members) = (self.cluster, &self.cluster.members);
        let created = || members.iter().filter_map(|member| member.facts.created);
        let newest = created().max()?;
        let refused = cluster.pending.iter().filter_map(Pod::last_event);
        let with_pods = members.iter().filter(|it| !cluster.is_reschedulable_free(it));
        let waiting_since = refused.chain(with_pods.filter_map(Member::left_at)).max()?;
        // A step that made as many as it may has left some pods out.
        let was_cut = || created().filter(|at| *at == newest).count() >= BURST as usize;
        let pause = match waiting_since.cmp(&newest) {
            Ordering::Less => PAUSE,
            Ordering::Equal => SAME_SECOND,
            Ordering::Greater => return None,
        };
        let until = newest.checked_add(pause).ok().filter(|at| *at > cluster.now && !was_cut())?;
        Some((until, pause))
    }
}
