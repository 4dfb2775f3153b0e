//! Bindings sorted by what a rolling update may do with them.

use jiff::{SignedDuration, Timestamp};

use crate::dialect::fleet::decide::rollout::counts::Counts;
use crate::dialect::fleet::names::MEMBER_CLUSTER;
use crate::dialect::fleet::read::binding::{Binding, Readiness, State};
use crate::dialect::fleet::read::overrides::{Applicable, Overrides, UnknownCluster};
use crate::dialect::fleet::read::placement::{Placement, RollingUpdate};
use crate::snapshot::Snapshot;

/// The bindings of a placement, in list order within each group. Every binding is in exactly
/// one of the first six.
#[derive(Debug, Default)]
pub(crate) struct Groups<'w> {
    /// Picked clusters that have nothing yet.
    pub(crate) bind: Vec<Change<'w>>,
    /// De-selected clusters that may go.
    pub(crate) remove: Vec<Binding<'w>>,
    /// Clusters with an older version.
    pub(crate) update: Vec<Change<'w>>,
    /// Clusters with an older version that does not work.
    pub(crate) retry: Vec<Change<'w>>,
    /// Clusters with the newest version.
    pub(crate) current: Vec<Binding<'w>>,
    /// Being deleted.
    pub(crate) leaving: Vec<Binding<'w>>,
    /// Bound or de-selected bindings that are not ready, whichever group they are in.
    pub(crate) unready: Vec<(Binding<'w>, Readiness)>,
    pub(crate) counts: Counts,
}

/// A binding to be written, and the overrides it gets.
#[derive(Debug)]
pub(crate) struct Change<'w> {
    pub(crate) binding: Binding<'w>,
    pub(crate) overrides: Applicable,
}

/// What bindings are measured against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a, 'w> {
    pub(crate) placement: &'a Placement<'w>,
    pub(crate) rolling: &'a RollingUpdate,
    /// The name of the newest master resource snapshot.
    pub(crate) resource_snapshot: &'a str,
    pub(crate) overrides: &'a Overrides<'w>,
}

impl<'w> Groups<'w> {
    pub(crate) fn sort(
        snapshot: &Snapshot<'w>,
        bindings: &[Binding<'w>],
        wanted: Wanted<'_, '_>,
        now: Timestamp,
    ) -> Result<Self, UnknownCluster> {
        let period = SignedDuration::from_secs(wanted.rolling.unavailable_period_secs);
        let mut groups = Self::default();
        let mut picked = 0;
        for binding in bindings.iter().copied() {
            picked += u32::from(binding.state != State::Unscheduled);
            if binding.state == State::Scheduled {
                groups.bind.push(change(snapshot, binding, wanted.overrides)?);
                continue;
            }
            let ready = groups.note(binding, binding.readiness(period, now));
            if binding.is_deleting() {
                groups.counts.leaving += u32::from(ready);
                groups.leaving.push(binding);
            } else if binding.state == State::Unscheduled {
                groups.remove.push(binding);
            } else {
                let change = change(snapshot, binding, wanted.overrides)?;
                groups.sort_in(change, wanted.resource_snapshot);
            }
        }
        let target = wanted.placement.target(picked);
        groups.counts.target = target;
        groups.counts.max_unavailable = wanted.rolling.unavailable(target);
        groups.counts.max_surge = wanted.rolling.surge(target);
        Ok(groups)
    }

    /// Whether any binding is not as it should be.
    pub(crate) fn is_out_of_date(&self) -> bool {
        let candidates = self.bind.len() + self.remove.len() + self.update.len() + self.retry.len();
        candidates > 0
    }

    /// Counts a binding that has, or had, resources on its cluster; says whether it is ready.
    fn note(&mut self, binding: Binding<'w>, readiness: Readiness) -> bool {
        let ready = readiness == Readiness::Ready;
        self.counts.ready += u32::from(ready);
        if !ready {
            self.unready.push((binding, readiness));
        }
        let can_be_ready = !binding.has_failed() && !binding.is_diff_reported();
        self.counts.can_be_ready += u32::from(can_be_ready);
        ready
    }

    fn sort_in(&mut self, change: Change<'w>, resource_snapshot: &str) {
        let binding = change.binding;
        let current = binding.resource_snapshot() == resource_snapshot
            && change.overrides == Applicable::of_binding(binding.object);
        if current {
            self.current.push(binding);
        } else if binding.has_failed() {
            self.retry.push(change);
        } else {
            self.update.push(change);
        }
    }
}

fn change<'w>(
    snapshot: &Snapshot<'w>,
    binding: Binding<'w>,
    overrides: &Overrides<'_>,
) -> Result<Change<'w>, UnknownCluster> {
    if overrides.is_empty() {
        return Ok(Change { binding, overrides: Applicable::default() });
    }
    let cluster = binding.cluster();
    let member = snapshot.find(&MEMBER_CLUSTER, "", cluster);
    Ok(Change { binding, overrides: overrides.concerning(cluster, member)? })
}
