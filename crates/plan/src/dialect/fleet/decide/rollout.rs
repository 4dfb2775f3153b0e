//! The rolling update of a placement: which bindings change now, and why the others wait.
//!
//! One pass looks at all bindings of the placement, in list order. It first sees to it that
//! they carry the placement's apply strategy and that no cluster has two of them; then it
//! sorts them ([`group`]) and asks the gate how many of each group may go, change or come.

pub(crate) mod counts;
pub(crate) mod group;
pub(crate) mod precondition;

use jiff::Timestamp;
use smol_str::SmolStr;

use self::group::{Change, Groups, Wanted};
use self::precondition::SharedCluster;
use crate::dialect::fleet::decide::{bind_limits, removal_limits, update_limits};
use crate::dialect::fleet::read::binding::{Binding, Readiness, bindings};
use crate::dialect::fleet::read::overrides::Overrides;
use crate::dialect::fleet::read::placement::{Placement, RollingUpdate, Strategy};
use crate::dialect::fleet::read::snapshot::ResourceGroup;
use crate::gate::{self, Admission, Permit};
use crate::snapshot::Snapshot;
use crate::step::Verb;

/// What the rolling update of a placement does now.
#[derive(Debug)]
pub(crate) enum Rollout<'w> {
    /// Nothing: someone else moves the bindings, or the placement is being deleted.
    NotOurs,
    /// First these bindings get the placement's apply strategy.
    ApplyStrategy(Vec<Binding<'w>>),
    /// Some cluster has two bindings.
    SharedCluster(SharedCluster<'w>),
    /// Nothing was selected yet.
    NoResources {
        bindings: usize,
    },
    /// Which overrides apply cannot be told before all parts of a large selection are there.
    Incomplete(ResourceGroup<'w>),
    /// Overrides exist, and the labels of this cluster would tell which apply.
    UnknownCluster(SmolStr),
    Roll(Box<Roll<'w>>),
}

/// The bindings of a placement and what the gate says about those that are not as they should be.
#[derive(Debug)]
pub(crate) struct Roll<'w> {
    pub(crate) groups: Groups<'w>,
    /// The name of the newest master resource snapshot.
    pub(crate) resource_snapshot: &'w str,
    pub(crate) rolling: RollingUpdate,
    /// When upstream's controller would look again.
    pub(crate) requeue_secs: Option<i64>,
    pub(crate) discards: Admission<'w>,
    pub(crate) removals: Admission<'w>,
    pub(crate) updates: Admission<'w>,
    pub(crate) retries: Admission<'w>,
    pub(crate) binds: Admission<'w>,
}

/// With `coming` clusters that are picked in the same step.
pub(crate) fn decide<'w>(
    snapshot: &Snapshot<'w>,
    placement: &Placement<'w>,
    now: Timestamp,
    coming: u32,
) -> Rollout<'w> {
    let Strategy::RollingUpdate(rolling) = placement.strategy else { return Rollout::NotOurs };
    if placement.object.is_deleting() {
        return Rollout::NotOurs;
    }
    let bindings = bindings(snapshot, placement);
    let stale = precondition::without_apply_strategy(placement, &bindings);
    if !stale.is_empty() {
        return Rollout::ApplyStrategy(stale);
    }
    if let Some(shared) = precondition::shared_cluster(&bindings) {
        return Rollout::SharedCluster(shared);
    }
    let Some(resources) = ResourceGroup::latest(snapshot, placement) else {
        return Rollout::NoResources { bindings: bindings.len() };
    };
    let overrides = Overrides::touching(snapshot, placement, &resources.parts);
    if !overrides.is_empty() && !resources.is_complete() {
        return Rollout::Incomplete(resources);
    }
    let resource_snapshot = resources.master.name();
    let overrides = &overrides;
    let wanted = Wanted { placement, coming, rolling: &rolling, resource_snapshot, overrides };
    match Groups::sort(snapshot, &bindings, wanted, now) {
        Ok(groups) => {
            let requeue_secs =
                groups.is_out_of_date().then(|| requeue_secs(&groups, &rolling, now));
            let roll = Roll::admitted(groups, resource_snapshot, rolling, requeue_secs);
            Rollout::Roll(Box::new(roll))
        }
        Err(unknown) => Rollout::UnknownCluster(unknown.cluster),
    }
}

impl<'w> Roll<'w> {
    fn admitted(
        groups: Groups<'w>,
        resource_snapshot: &'w str,
        rolling: RollingUpdate,
        requeue_secs: Option<i64>,
    ) -> Self {
        // Nothing is lost with what does not work.
        let discards = gate::admit(candidates(groups.discard.iter()), &[]);
        let removals = gate::admit(candidates(groups.remove.iter()), &removal_limits(&groups));
        let changes =
            |changes: &[Change<'w>]| candidates(changes.iter().map(|change| &change.binding));
        let updates = gate::admit(changes(&groups.update), &update_limits(&groups, &removals));
        // What does not work cannot get worse.
        let retries = gate::admit(changes(&groups.retry), &[]);
        let binds = gate::admit(changes(&groups.bind), &bind_limits(&groups));
        Self {
            groups,
            resource_snapshot,
            rolling,
            requeue_secs,
            discards,
            removals,
            updates,
            retries,
            binds,
        }
    }

    /// The bindings written now: those that do not work, out-of-date ones, then new clusters.
    pub(crate) fn changed(&self) -> impl Iterator<Item = (&Change<'w>, Verb)> {
        let groups = &self.groups;
        started(&groups.retry, &self.retries, Verb::Retry)
            .chain(started(&groups.update, &self.updates, Verb::Update))
            .chain(started(&groups.bind, &self.binds, Verb::Start))
    }

    /// The bindings deleted now.
    pub(crate) fn removed(&self) -> impl Iterator<Item = (&Binding<'w>, Verb)> {
        let groups = &self.groups;
        started(&groups.discard, &self.discards, Verb::Remove).chain(started(
            &groups.remove,
            &self.removals,
            Verb::Remove,
        ))
    }

    /// The bindings that wait to be updated, then those that wait to be bound.
    pub(crate) fn blocked(&self) -> impl Iterator<Item = &Binding<'w>> {
        let updates = self.updates.holds.iter().map(|(it, _)| &self.groups.update[it.index]);
        let binds = self.binds.holds.iter().map(|(it, _)| &self.groups.bind[it.index]);
        updates.chain(binds).map(|change| &change.binding)
    }

    /// When the next binding counts as ready for want of a better test.
    pub(crate) fn wake_at(&self) -> Option<Timestamp> {
        self.groups.unready.iter().filter_map(|(_, readiness)| ready_at(*readiness)).min()
    }
}

fn candidates<'b, 'w: 'b>(
    bindings: impl Iterator<Item = &'b Binding<'w>>,
) -> Vec<gate::Candidate<'w>> {
    let numbered = bindings.enumerate();
    numbered.map(|(index, binding)| gate::Candidate::free(binding.name(), index)).collect()
}

fn started<'a, T>(
    all: &'a [T],
    admission: &'a Admission<'_>,
    verb: fn(Permit) -> Verb,
) -> impl Iterator<Item = (&'a T, Verb)> {
    let verb = admission.permit().map(verb);
    admission.starts.iter().filter_map(move |member| Some((&all[member.index], verb?)))
}

/// The period, or the shortest known wait of a binding that is not ready; 0 when all are.
fn requeue_secs(groups: &Groups<'_>, rolling: &RollingUpdate, now: Timestamp) -> i64 {
    if groups.unready.is_empty() {
        return 0;
    }
    let instants = groups.unready.iter().filter_map(|(_, readiness)| ready_at(*readiness));
    let waits = instants.map(|at| at.duration_since(now).as_secs().max(0));
    waits.chain([rolling.unavailable_period_secs]).min().unwrap_or(0)
}

fn ready_at(readiness: Readiness) -> Option<Timestamp> {
    match readiness {
        Readiness::At(at) => Some(at),
        Readiness::Ready | Readiness::Unknown => None,
    }
}
