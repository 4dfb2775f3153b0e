//! What happens with a placement: which clusters it selects, in which groups, and whether its
//! decisions are rewritten.

use convoy_api::Object;
use jiff::Timestamp;

use super::balance::moves_first;
use super::group::{Group, groups};
use super::satisfaction::Satisfaction;
use super::schedule::{Schedule, schedule};
use super::slice::{Slice, slices};
use crate::dialect::ocm::read::decisions::Decisions;
use crate::dialect::ocm::read::placement::{Misconfiguration, Policy, is_compact, is_disabled};
use crate::snapshot::Snapshot;

/// What happens with a placement.
#[derive(Clone, Debug)]
pub(crate) struct Decision<'w> {
    pub(crate) scheduling: Scheduling<'w>,
    /// The decisions that it has now.
    pub(crate) current: Decisions<'w>,
    /// The decisions that it should have; absent if they stay as they are.
    pub(crate) wanted: Option<Wanted<'w>>,
    /// Which group strategy the wanted decisions are cut with.
    pub(crate) hash: String,
    pub(crate) schedule: Schedule<'w>,
    /// Absent if its conditions stay as they are.
    pub(crate) satisfaction: Option<Satisfaction>,
}

/// Whether a placement is scheduled.
#[derive(Clone, Debug)]
pub(crate) enum Scheduling<'w> {
    /// It is being deleted. Its decisions go with it: they name it as their owner.
    Deleting,
    /// The scheduler was told to leave it alone.
    Disabled,
    /// Another placement leaves a cluster that both use.
    Behind(&'w Object),
    /// It cannot be read: its decisions stay, and it says which fields are at fault.
    Misconfigured(Vec<Misconfiguration>),
    /// A cluster set cannot be read: its decisions stay until it can.
    Failed,
    Scheduled,
}

/// Decision groups, and the objects they are written to.
#[derive(Clone, Debug)]
pub(crate) struct Wanted<'w> {
    pub(crate) groups: Vec<Group<'w>>,
    pub(crate) slices: Vec<Slice<'w>>,
}

/// What a placement selects, grouped.
#[derive(Clone, Debug)]
pub(crate) struct Selection<'w> {
    pub(crate) schedule: Schedule<'w>,
    pub(crate) groups: Vec<Group<'w>>,
}

/// Schedules and groups a placement as of `now`.
pub(crate) fn select<'w>(
    snapshot: &Snapshot<'w>,
    placement: &Object,
    policy: &Policy,
    current: &Decisions<'_>,
    now: Timestamp,
) -> Selection<'w> {
    let schedule = schedule(snapshot, placement, policy, current, now);
    let groups = groups(&policy.grouping, &schedule.selected, current, is_compact(placement));
    Selection { schedule, groups }
}

/// Decides about the placement of a snapshot.
pub(crate) fn decide<'w>(snapshot: &Snapshot<'w>, now: Timestamp) -> Decision<'w> {
    let placement = snapshot.rollout();
    let current = Decisions::read(snapshot, placement);
    if placement.is_deleting() {
        return Decision::untouched(Decisions::default(), Scheduling::Deleting);
    }
    if is_disabled(placement) {
        return Decision::untouched(current, Scheduling::Disabled);
    }
    let policy = match Policy::read(placement) {
        Ok(policy) => policy,
        Err(wrong) => {
            let satisfaction = wrong.first().map(Satisfaction::misconfigured);
            let decision = Decision::untouched(current, Scheduling::Misconfigured(wrong));
            return Decision { satisfaction, ..decision }.with_empty_decision(placement);
        }
    };
    let Selection { schedule, groups } = select(snapshot, placement, &policy, &current, now);
    let hash = policy.grouping.hash.clone();
    let satisfaction = Some(Satisfaction::of(placement, &schedule));
    if schedule.eligibility.error.is_some() {
        let decision = Decision::untouched(current, Scheduling::Failed);
        return Decision { hash, satisfaction, ..decision }.with_empty_decision(placement);
    }
    if let Some(first) = moves_first(snapshot, &policy, &current, &schedule, now) {
        return Decision::untouched(current, Scheduling::Behind(first));
    }
    let wanted = Some(Wanted::new(placement, groups));
    let scheduling = Scheduling::Scheduled;
    Decision { scheduling, current, wanted, hash, schedule, satisfaction }
}

impl<'w> Decision<'w> {
    /// Leaves decisions and status as they are.
    fn untouched(current: Decisions<'w>, scheduling: Scheduling<'w>) -> Self {
        Self {
            scheduling,
            current,
            wanted: None,
            hash: String::new(),
            schedule: Schedule::default(),
            satisfaction: None,
        }
    }

    /// Where there are no decisions yet, one without clusters is written, so that whoever reads
    /// them finds "nothing" instead of "not yet".
    fn with_empty_decision(mut self, placement: &Object) -> Self {
        if self.current.objects.is_empty() {
            let nothing = vec![Group { name: "".into(), clusters: Vec::new() }];
            self.wanted = Some(Wanted::new(placement, nothing));
        }
        self
    }

    /// The groups that are reported: those that should be, or else those that are.
    pub(crate) fn reported(&self, placement: &Object) -> Wanted<'w> {
        if let (Scheduling::Scheduled, Some(wanted)) = (&self.scheduling, &self.wanted) {
            return wanted.clone();
        }
        let current = self.current.groups.iter();
        let groups = current
            .map(|group| Group { name: group.name.into(), clusters: group.clusters.clone() });
        Wanted::new(placement, groups.collect())
    }
}

impl<'w> Wanted<'w> {
    fn new(placement: &Object, groups: Vec<Group<'w>>) -> Self {
        let slices = slices(placement.name(), &groups);
        Self { groups, slices }
    }
}
