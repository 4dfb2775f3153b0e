//! What happens with a replica set: through each placement that it refers to, who gets the
//! template, whose work goes, and what keeps it from going on.

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::Object;
use convoy_api::ocm::names::{MANAGED_CLUSTER, PLACEMENT};
use jiff::Timestamp;
use serde_json::Value;
use smol_str::SmolStr;

use super::group::length;
use super::placement::select;
use super::{Rollout, RolloutGroup, roll_out};
use crate::count;
use crate::dialect::ocm::names::LABEL_VALUE_MAX;
use crate::dialect::ocm::read::decisions::Decisions;
use crate::dialect::ocm::read::placement::{Policy, is_disabled, selected_count};
use crate::dialect::ocm::read::replica_set::{
    PlacementRef, deletes_in_foreground, is_protected, owner_value, placement_refs, referenced,
    work_labels,
};
use crate::dialect::ocm::read::strategy::Strategy;
use crate::dialect::ocm::read::template::Template;
use crate::dialect::ocm::read::work::{ClusterWork, Works, is_labelled, placement_of};
use crate::dialect::ocm::read::work_status::{RolloutStatus, WorkStatus, work_status};
use crate::gate::{Candidate, Limit, Permit, admit};
use crate::hold::HoldReason;
use crate::snapshot::Snapshot;

/// What happens with a replica set.
#[derive(Clone, Debug)]
pub(crate) enum Decision<'w> {
    /// The label of its works cannot say whose they are: nothing is done until it is renamed.
    NameTooLong,
    /// It is being deleted, and its works with it.
    Deleting {
        removals: Removals<'w>,
        /// How many works it still waits for.
        waits_for: usize,
        /// Whether its finalizer goes now.
        release: bool,
    },
    Rolling(Box<Rolling<'w>>),
}

/// The template on its way through the placements.
#[derive(Clone, Debug)]
pub(crate) struct Rolling<'w> {
    pub(crate) template: Template<'w>,
    /// Whether it has its finalizer. Nothing starts before.
    pub(crate) is_protected: bool,
    /// Works of placements that it does not refer to.
    pub(crate) unreferenced: Removals<'w>,
    /// Up to the first whose placement does not exist.
    pub(crate) references: Vec<Reference<'w>>,
}

/// What becomes of one placement reference.
#[derive(Clone, Debug)]
pub(crate) enum Reference<'w> {
    /// There is no such placement: the references behind it are not looked at.
    NotFound(&'w str),
    /// The strategy or the decisions cannot be read: the next reference goes on.
    Unreadable(String),
    Rollout(Box<PlacementRollout<'w>>),
}

/// The template on its way through the decision groups of one placement.
#[derive(Clone, Debug)]
pub(crate) struct PlacementRollout<'w> {
    pub(crate) placement: SmolStr,
    pub(crate) strategy: Strategy,
    pub(crate) groups: Vec<RolloutGroup<'w>>,
    pub(crate) rollout: Rollout<'w>,
    /// By cluster.
    pub(crate) starts: Vec<Start<'w>>,
    /// Works with a former template, by cluster.
    former: BTreeMap<&'w str, &'w Object>,
    /// Works that hold the current template and stay.
    pub(crate) current: Vec<&'w Object>,
    /// Works of clusters that are no longer selected.
    pub(crate) removals: Removals<'w>,
    /// Works that are one too many.
    pub(crate) surplus: Removals<'w>,
    /// Works that wait for their agent under labels that are no longer right.
    pub(crate) mislabelled: Vec<&'w Object>,
    /// The labels that works for this placement should have.
    pub(crate) labels: Value,
    /// How many clusters the placement says it selected.
    pub(crate) selected: u64,
    /// The placement has made its decisions, and they name nobody.
    pub(crate) selects_nothing: bool,
    pub(crate) succeeded: u64,
}

/// A cluster that gets the template now.
#[derive(Clone, Debug)]
pub(crate) struct Start<'w> {
    pub(crate) cluster: &'w str,
    /// Its work with a former template, if it has one.
    pub(crate) work: Option<&'w Object>,
    pub(crate) permit: Permit,
}

/// Works that go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Removals<'w> {
    /// Those that are deleted now.
    pub(crate) now: Vec<(&'w Object, Permit)>,
    /// How many are being deleted already.
    pub(crate) terminating: usize,
    /// The clusters of works that go later, and why.
    pub(crate) holds: BTreeMap<&'w str, HoldReason>,
}

/// Decides about the replica set of a snapshot.
pub(crate) fn decide<'w>(snapshot: &Snapshot<'w>, now: Timestamp) -> Decision<'w> {
    let replica_set = snapshot.rollout();
    let works = Works::read(snapshot);
    if replica_set.is_deleting() {
        let waits = deletes_in_foreground(replica_set);
        let waits_for = if waits { works.all.len() } else { 0 };
        let release = is_protected(replica_set) && waits_for == 0;
        return Decision::Deleting { removals: Removals::of(works.all, None), waits_for, release };
    }
    if owner_value(replica_set).len() > LABEL_VALUE_MAX {
        return Decision::NameTooLong;
    }
    let template = Template::read(replica_set);
    let is_protected = is_protected(replica_set);
    let mut rolling = Rolling {
        template,
        is_protected,
        unreferenced: Removals::default(),
        references: Vec::new(),
    };
    if is_protected {
        let names: BTreeSet<&str> = referenced(replica_set).collect();
        let all = works.all.iter().copied();
        let unreferenced = all.filter(|work| !names.contains(placement_of(work)));
        rolling.unreferenced = Removals::of(unreferenced, None);
    }
    for reference in placement_refs(replica_set) {
        let reference = rolling.reference(snapshot, reference, &works, now);
        let is_last = matches!(reference, Reference::NotFound(_));
        rolling.references.push(reference);
        if is_last {
            break;
        }
    }
    Decision::Rolling(Box::new(rolling))
}

impl<'w> Removals<'w> {
    /// The works belong to nobody any more: only a `deferral` limits how many go.
    fn of(works: impl IntoIterator<Item = &'w Object>, deferral: Option<&HoldReason>) -> Self {
        let works: Vec<&'w Object> = works.into_iter().collect();
        let staying = works.iter().enumerate().filter(|(_, work)| !work.is_deleting());
        let candidates: Vec<Candidate<'w>> =
            staying.map(|(index, work)| Candidate::free(work.namespace(), index)).collect();
        let terminating = works.len() - candidates.len();
        let limit = deferral.cloned().map(Limit::closed);
        let admission = admit(candidates, limit.as_slice());
        let start = |permit| {
            let starts = admission.starts.iter();
            starts.map(|member| (works[member.index], permit)).collect()
        };
        let now = admission.permit().map_or_else(Vec::new, start);
        let holds = admission.holds.into_iter().map(|(member, reason)| (member.name, reason));
        Self { now, terminating, holds: holds.collect() }
    }

    /// How many works go, or are on their way.
    pub(crate) fn len(&self) -> usize {
        self.now.len() + self.terminating
    }

    /// The clusters of works that are deleted now.
    pub(crate) fn clusters(&self) -> impl Iterator<Item = &'w str> + '_ {
        self.now.iter().map(|(work, _)| work.namespace().as_str())
    }
}

impl<'w> Rolling<'w> {
    fn reference(
        &self,
        snapshot: &Snapshot<'w>,
        PlacementRef { name, strategy }: PlacementRef<'w>,
        works: &Works<'w>,
        now: Timestamp,
    ) -> Reference<'w> {
        let replica_set = snapshot.rollout();
        let Some(placement) = snapshot.find(&PLACEMENT, replica_set.namespace(), name) else {
            return Reference::NotFound(name);
        };
        let strategy = match strategy {
            Ok(strategy) => strategy,
            Err(error) => {
                return Reference::Unreadable(format!("{}: {}", error.field, error.message));
            }
        };
        let policy = Policy::read(placement).ok();
        let decisions = Decisions::read(snapshot, placement);
        let groups = match groups(snapshot, placement, policy.as_ref(), &decisions, now) {
            Ok(groups) => groups,
            Err(error) => return Reference::Unreadable(error),
        };
        let mut rollout = PlacementRollout::new(replica_set, placement, strategy);
        let (removed, surplus) = rollout.observe(groups, works, &self.template, now);
        let total = count(rollout.groups.iter().map(|group| group.members.len()).sum());
        let group_length = policy.map_or(total, |policy| length(policy.grouping.per_group, total));
        rollout.selected = selected_count(placement).unwrap_or(u64::from(total));
        let deferral = self.deferral(snapshot, placement, &decisions);
        rollout.selects_nothing = deferral.is_none() && rollout.selected == 0 && total == 0;
        // While decisions are being written, nobody can tell who is no longer selected.
        let is_known = deferral.is_none() || !self.is_protected;
        let (removed, surplus) = if is_known { (removed, surplus) } else { Default::default() };
        rollout.removals = Removals::of(removed, deferral.as_ref());
        rollout.surplus = Removals::of(surplus, deferral.as_ref());
        if deferral.is_some() {
            rollout.mislabelled.clear();
        }
        rollout.admit(group_length, deferral);
        Reference::Rollout(Box::new(rollout))
    }

    /// The references that are rolled out.
    pub(crate) fn rollouts(&self) -> impl Iterator<Item = &PlacementRollout<'w>> {
        self.references.iter().filter_map(|reference| match reference {
            Reference::Rollout(rollout) => Some(&**rollout),
            Reference::NotFound(_) | Reference::Unreadable(_) => None,
        })
    }

    /// Whether a reference cannot be rolled out.
    pub(crate) fn is_broken(&self) -> bool {
        self.rollouts().count() < self.references.len()
    }

    /// Why nothing starts or goes now, whatever the strategy says.
    fn deferral(
        &self,
        snapshot: &Snapshot<'_>,
        placement: &Object,
        decisions: &Decisions<'_>,
    ) -> Option<HoldReason> {
        // A placement always has a decision, if only an empty one. Until it is written, or while
        // somebody has deleted it, only those who know all clusters can tell who is selected.
        let is_unsettled = if decisions.objects.is_empty() {
            snapshot.of(&MANAGED_CLUSTER).is_empty()
        } else {
            !decisions.is_settled(placement)
        };
        let on = if !self.is_protected {
            "its replica set to be protected by a finalizer".to_owned()
        } else if !is_disabled(placement) && is_unsettled {
            format!("placement {} to finish writing its decisions", placement.name())
        } else {
            return None;
        };
        Some(HoldReason::Depends { on })
    }
}

/// A decision group: number, name, clusters.
type Numbered<'w> = (i64, SmolStr, Vec<&'w str>);

/// The groups that the decisions spell out. Where none is written yet, those that are about
/// to be, so that a replica set can be judged beside a placement that is still new.
fn groups<'w>(
    snapshot: &Snapshot<'w>,
    placement: &Object,
    policy: Option<&Policy>,
    decisions: &Decisions<'w>,
    now: Timestamp,
) -> Result<Vec<Numbered<'w>>, String> {
    if let (Some(policy), true, false) =
        (policy, decisions.objects.is_empty(), is_disabled(placement))
    {
        let groups = select(snapshot, placement, policy, decisions, now).groups.into_iter();
        let numbered = (0..).zip(groups).map(|(index, group)| (index, group.name, group.clusters));
        return Ok(numbered.collect());
    }
    if let Some(name) = decisions.unnumbered() {
        return Err(format!("PlacementDecision {name} has no numeric decision group index"));
    }
    let groups = decisions.groups.iter();
    Ok(groups.map(|group| (group.index, group.name.into(), group.clusters.clone())).collect())
}

impl<'w> PlacementRollout<'w> {
    fn new(replica_set: &Object, placement: &Object, strategy: Strategy) -> Self {
        Self {
            placement: placement.name().clone(),
            strategy,
            groups: Vec::new(),
            rollout: Rollout::default(),
            starts: Vec::new(),
            current: Vec::new(),
            former: BTreeMap::new(),
            removals: Removals::default(),
            surplus: Removals::default(),
            mislabelled: Vec::new(),
            labels: work_labels(replica_set, placement.name()),
            selected: 0,
            selects_nothing: false,
            succeeded: 0,
        }
    }

    /// Finds out how far every selected cluster is. Gives the works of clusters that are not
    /// selected, and those that are one too many.
    fn observe(
        &mut self,
        groups: Vec<Numbered<'w>>,
        works: &Works<'w>,
        template: &Template<'_>,
        now: Timestamp,
    ) -> (Vec<&'w Object>, Vec<&'w Object>) {
        let mut selected: BTreeSet<&str> = BTreeSet::new();
        let mut surplus = Vec::new();
        for (index, name, clusters) in groups {
            let mut members = Vec::with_capacity(clusters.len());
            for cluster in clusters {
                selected.insert(cluster);
                let mut found = works.of_cluster(&self.placement, cluster, template);
                surplus.append(&mut found.surplus);
                members.push((cluster, self.status(cluster, &found, now)));
            }
            self.groups.push(RolloutGroup { index, name, members });
        }
        let made = works.of_placement(&self.placement);
        let removed = made.filter(|work| !selected.contains(work.namespace().as_str()));
        (removed.collect(), surplus)
    }

    fn status(
        &mut self,
        cluster: &'w str,
        found: &ClusterWork<'w>,
        now: Timestamp,
    ) -> RolloutStatus {
        let Some(work) = found.work else { return RolloutStatus::Unstarted };
        if work.is_deleting() {
            return RolloutStatus::Terminating;
        }
        if !found.is_current {
            self.former.insert(cluster, work);
            return RolloutStatus::Unstarted;
        }
        self.current.push(work);
        let reported = work_status(work);
        self.succeeded += u64::from(reported.0 == WorkStatus::Succeeded);
        let status = RolloutStatus::of(reported, &self.strategy, now);
        if status == RolloutStatus::ToApply && !is_labelled(work, &self.labels) {
            self.mislabelled.push(work);
        }
        status
    }

    fn admit(&mut self, group_length: u32, deferral: Option<HoldReason>) {
        self.rollout = roll_out(&self.groups, &self.strategy, group_length, deferral);
        let starts = self.rollout.starts.iter().map(|(cluster, permit)| Start {
            cluster,
            work: self.former.get(cluster).copied(),
            permit: *permit,
        });
        self.starts = starts.collect();
    }

    /// Every selected cluster, and how far it is.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&'w str, RolloutStatus)> + '_ {
        self.groups.iter().flat_map(|group| group.members.iter().copied())
    }
}
