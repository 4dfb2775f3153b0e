//! What becomes of one Work.

use std::collections::BTreeSet;

use convoy_api::{Object, ObjectKey};
use jiff::Timestamp;

use super::manifest::{self, ApplyOrReportResult, Context, Processed};
use super::owners::Owners;
use crate::dialect::fleet_agent::names::{
    APPLIED_WORK, INTERNAL_MEMBER_CLUSTER, WORK, WORK_CLEANUP,
};
use crate::dialect::fleet_agent::read::internal::{Wanted, wanted};
use crate::dialect::fleet_agent::read::manifest::{
    Identifier, Manifest, Problem, is_built_in, manifests, wave,
};
use crate::dialect::fleet_agent::read::recorded::{self, Recorded};
use crate::dialect::fleet_agent::read::strategy::Strategy;
use crate::dialect::fleet_agent::read::timings::{AgentTimings, Looks};
use crate::snapshot::Snapshot;

/// Where a Work stands.
#[derive(Clone, Debug)]
pub(crate) enum WorkPhase<'w> {
    /// The member has not been asked to join.
    NotJoined,
    /// The member leaves: the Work is let go, and its objects stay.
    Released,
    /// The Work is being deleted.
    Deleting(Deletion<'w>),
    /// An `AppliedWork` of an earlier Work of this name has to go first.
    AwaitingOld,
    /// The `AppliedWork` that will own the objects has to be made first.
    Owning,
    Applying(Application<'w>),
}

#[derive(Clone, Debug)]
pub(crate) enum Deletion<'w> {
    /// Nothing holds it any more, or nothing ever did.
    Done,
    /// What owns the objects goes, and they with it.
    Deleting(&'w Object),
    Awaiting {
        until: Option<Timestamp>,
    },
    /// It takes too long: objects that have other owners must not block it.
    Unblocking {
        applied_work: &'w Object,
        shared: Vec<&'w Object>,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Application<'w> {
    pub(crate) applied_work: &'w Object,
    pub(crate) strategy: Strategy,
    /// In the order of the Work.
    pub(crate) processed: Vec<Processed<'w>>,
    /// Objects that the Work has brought, and whose manifests it has no more.
    pub(crate) left_over: Vec<LeftOver<'w>>,
    /// When it is looked at though nothing changes.
    pub(crate) looks: Looks,
}

/// An object whose manifest has left the Work.
#[derive(Clone, Debug)]
pub(crate) struct LeftOver<'w> {
    pub(crate) identifier: Identifier,
    pub(crate) live: &'w Object,
    /// Whether somebody else owns it too, so that it stays.
    pub(crate) is_shared: bool,
}

impl Application<'_> {
    /// Whether objects have to be written before anything can be told.
    pub(crate) fn is_pending(&self) -> bool {
        self.processed.iter().any(|it| matches!(it.result, ApplyOrReportResult::Pending { .. }))
    }
}

pub(crate) fn decide<'w>(
    snapshot: &Snapshot<'w>,
    member: &str,
    timings: AgentTimings,
    now: Timestamp,
) -> WorkPhase<'w> {
    let work = snapshot.rollout();
    let internal = snapshot.find(&INTERNAL_MEMBER_CLUSTER, work.namespace(), member);
    let applied_work = snapshot.get(&on_member(&APPLIED_WORK.key("", work.name()), member));
    match (internal.and_then(wanted), applied_work) {
        (Some(Wanted::Leave), _) => WorkPhase::Released,
        _ if work.is_deleting() => {
            let until = |since: Timestamp| since.checked_add(timings.deletion_wait).ok();
            WorkPhase::Deleting(deletion(snapshot, member, applied_work, until, now))
        }
        (None, _) => WorkPhase::NotJoined,
        (_, None) => WorkPhase::Owning,
        (_, Some(old)) if old.is_deleting() => WorkPhase::AwaitingOld,
        (_, Some(applied_work)) => {
            let looks = recorded::looks(work, timings.requeue, now);
            WorkPhase::Applying(application(snapshot, member, applied_work, looks))
        }
    }
}

fn deletion<'w>(
    snapshot: &Snapshot<'w>,
    member: &str,
    applied_work: Option<&'w Object>,
    patience: impl Fn(Timestamp) -> Option<Timestamp>,
    now: Timestamp,
) -> Deletion<'w> {
    let work = snapshot.rollout();
    let Some(applied_work) = applied_work.filter(|_| work.has_finalizer(WORK_CLEANUP)) else {
        return Deletion::Done;
    };
    let Some(since) = applied_work.deleted_at() else { return Deletion::Deleting(applied_work) };
    let until = patience(since);
    if until.is_some_and(|until| now < until) {
        return Deletion::Awaiting { until };
    }
    let identifiers = recorded::of_work(work).into_iter().map(|recorded| recorded.identifier);
    let live = identifiers.filter_map(|identifier| snapshot.get(&identifier.key(member)));
    let shared = live.filter(|live| {
        let owners = Owners::of(live, applied_work, |_| true);
        owners.is_ours && !owners.others.is_empty()
    });
    Deletion::Unblocking { applied_work, shared: shared.collect() }
}

fn application<'w>(
    snapshot: &Snapshot<'w>,
    member: &str,
    applied_work: &'w Object,
    looks: Looks,
) -> Application<'w> {
    let work = snapshot.rollout();
    let strategy = Strategy::of(work);
    let recorded = recorded::of_work(work);
    let is_current = recorded::is_current(work);
    let work_exists = |name: &str| snapshot.find(&WORK, work.namespace(), name).is_some();
    let processed: Vec<Processed<'w>> = manifests(work)
        .into_iter()
        .map(|mut manifest| {
            // Where objects are written the server's own answer is told.
            if strategy.only_reports() && !is_served(snapshot, member, &manifest) {
                manifest.problem = manifest.problem.or(Some(Problem::NotServed));
            }
            let key = manifest.identifier.key(member);
            let is_it = |entry: &&Recorded<'_>| entry.identifier.key(member) == key;
            let entry = recorded.iter().find(is_it).filter(|_| is_current);
            let denied = entry.and_then(|entry| entry.denial());
            let context = Context { strategy, applied_work, denied };
            manifest::decide(manifest, snapshot.get(&key), context, work_exists)
        })
        .collect();
    let left_over = left_over(snapshot, member, applied_work, &processed);
    let left_over = if strategy.only_reports() { Vec::new() } else { left_over };
    Application { applied_work, strategy, processed, left_over, looks }
}

/// Whether the member has the kind of a manifest. Kinds of Kubernetes are there even if none of
/// their objects is known; the others are known once they are listed, and before that nothing is
/// decided.
fn is_served(snapshot: &Snapshot<'_>, member: &str, manifest: &Manifest<'_>) -> bool {
    let kind = &manifest.identifier.kind;
    is_built_in(kind) || snapshot.knows_in(member, kind)
}

/// Only objects that belong to this Work are its to take away.
fn left_over<'w>(
    snapshot: &Snapshot<'w>,
    member: &str,
    applied_work: &Object,
    processed: &[Processed<'_>],
) -> Vec<LeftOver<'w>> {
    let current: BTreeSet<ObjectKey> =
        processed.iter().map(|it| it.manifest.identifier.key(member)).collect();
    let recorded = recorded::of_work(snapshot.rollout()).into_iter().map(|it| it.identifier);
    let recorded = recorded.chain(recorded::of_applied_work(applied_work));
    let mut seen = BTreeSet::new();
    let gone = recorded.filter(|identifier| {
        let key = identifier.key(member);
        !current.contains(&key) && seen.insert(key)
    });
    let found = gone.filter_map(|identifier| {
        let live = snapshot.get(&identifier.key(member))?;
        let owners = Owners::of(live, applied_work, |_| true);
        let is_shared = !owners.others.is_empty();
        owners.is_ours.then_some(LeftOver { identifier, live, is_shared })
    });
    found.collect()
}

/// The manifests in the order in which they are written: wave by wave, and those that the server
/// has denied before at the end, so that none of them keeps the others waiting. Of several such
/// each is the first in its turn.
pub(crate) fn in_order<'a, 'w>(
    processed: &'a [Processed<'w>],
    now: Timestamp,
) -> Vec<&'a Processed<'w>> {
    let is_retried = |it: &&Processed<'_>| matches!(it.result, ApplyOrReportResult::Retried { .. });
    let (mut retried, mut fresh): (Vec<_>, Vec<_>) = processed.iter().partition(is_retried);
    fresh.sort_by_key(|it| wave(&it.manifest.identifier.kind));
    if !retried.is_empty() {
        let turn = usize::try_from(now.as_second().unsigned_abs()).unwrap_or(0) % retried.len();
        retried.rotate_left(turn);
    }
    fresh.extend(retried);
    fresh
}

fn on_member(key: &ObjectKey, member: &str) -> ObjectKey {
    ObjectKey { cluster: member.into(), ..key.clone() }
}
