//! What becomes of one work.

use convoy_api::ocm::names::APPLIED_MANIFEST_WORK;
use convoy_api::{Object, ObjectKey};
use jiff::Timestamp;

use super::manifest::{ApplyResult, Context, Processed};
use super::removal::Removal;
use crate::dialect::ocm_agent::Options;
use crate::dialect::ocm_agent::names::WORK_FINALIZER;
use crate::dialect::ocm_agent::read::config::config;
use crate::dialect::ocm_agent::read::executor::executor;
use crate::dialect::ocm_agent::read::kinds::Kinds;
use crate::dialect::ocm_agent::read::manifest::{Item, items};
use crate::dialect::ocm_agent::read::record::Record;
use crate::dialect::ocm_agent::read::recorded::{self, applied_resources};
use crate::dialect::ocm_agent::read::work;
use crate::snapshot::Snapshot;
use crate::step::Denial;

/// How works say that the server does not have the kind of an object.
const NO_RESOURCE: &str = "the server doesn't have a resource type";

/// Where a work stands.
#[derive(Clone, Debug)]
pub(crate) enum WorkPhase<'w> {
    Deleting(Deletion<'w>),
    /// An `AppliedManifestWork` that is being deleted has to go first.
    AwaitingOld,
    /// The finalizer and the `AppliedManifestWork`, which will own the objects, have to be there
    /// first.
    Owning,
    Applying(Application<'w>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Deletion<'w> {
    /// Nothing holds it any more, or nothing ever did.
    Done,
    /// What owns the objects goes, and they with it.
    Deleting(&'w Object),
    Awaiting,
}

#[derive(Clone, Debug)]
pub(crate) struct Application<'w> {
    pub(crate) applied_work: &'w Object,
    pub(crate) record: Record,
    /// In the order of the work.
    pub(crate) processed: Vec<Processed<'w>>,
    /// Objects that the work has brought, and asks for no longer.
    pub(crate) removals: Vec<Removal<'w>>,
    /// The work is through: its objects are looked at, and no longer written.
    pub(crate) is_frozen: bool,
}

impl Application<'_> {
    /// Whether objects have to be written before anything can be told.
    pub(crate) fn is_pending(&self) -> bool {
        self.processed.iter().any(|it| matches!(it.result, ApplyResult::Pending { .. }))
    }

    /// Whether every manifest names a resource of the member. If one does not, nobody knows
    /// which objects are no longer asked for.
    pub(crate) fn is_understood(&self) -> bool {
        self.processed.iter().all(|it| !it.item.resource.is_empty())
    }

    /// The same after the server has denied a write.
    pub(crate) fn denied(&self, denial: &Denial, member: &str) -> Self {
        let is_unknown = denial.is_of_unknown_kind();
        let mut after = self.clone();
        for processed in &mut after.processed {
            let is_written = matches!(
                processed.result,
                ApplyResult::Pending { .. } | ApplyResult::Retried { .. }
            );
            if !is_written || processed.item.key(member) != denial.target {
                continue;
            }
            let message = if is_unknown {
                processed.item.resource.clear();
                format!("{NO_RESOURCE} {:?}", denial.target.kind.kind.as_str())
            } else {
                denial.message.clone()
            };
            processed.result = ApplyResult::Failed { message };
        }
        after
    }
}

pub(crate) fn decide<'w>(snapshot: &Snapshot<'w>, options: &Options) -> WorkPhase<'w> {
    let work = snapshot.rollout();
    let applied_work = snapshot.get(&applied_work(work, options));
    let is_guarded = work.has_finalizer(WORK_FINALIZER);
    match applied_work {
        None if work.is_deleting() => WorkPhase::Deleting(Deletion::Done),
        Some(_) if work.is_deleting() && !is_guarded => WorkPhase::Deleting(Deletion::Done),
        Some(it) if work.is_deleting() && it.is_deleting() => {
            WorkPhase::Deleting(Deletion::Awaiting)
        }
        Some(it) if work.is_deleting() => WorkPhase::Deleting(Deletion::Deleting(it)),
        Some(it) if it.is_deleting() => WorkPhase::AwaitingOld,
        Some(it) if is_guarded => WorkPhase::Applying(application(snapshot, options, it)),
        _ => WorkPhase::Owning,
    }
}

/// What stands for a work on the member.
pub(crate) fn applied_work(work: &Object, options: &Options) -> ObjectKey {
    let key = APPLIED_MANIFEST_WORK.key("", &options.applied_name(work.name()));
    ObjectKey { cluster: options.cluster.clone(), ..key }
}

fn application<'w>(
    snapshot: &Snapshot<'w>,
    options: &Options,
    applied_work: &'w Object,
) -> Application<'w> {
    let work = snapshot.rollout();
    let member = &options.cluster;
    let kinds = Kinds::of_snapshot(snapshot, member);
    let record = Record::of(applied_work);
    let is_frozen = work::is_complete(work);
    let executor = executor(snapshot, member);
    let processed = items(work, &kinds).into_iter().map(|item| {
        let Told { item, denied, is_complete } = told(work, item, &kinds);
        let live = snapshot.get(&item.key(member)).filter(|_| item.problem.is_none());
        let config = config(work, &item);
        let is_owned = work::owns(work, &item);
        let refused = match &executor {
            Ok(executor) => executor.as_ref().and_then(|it| it.refusal(&item, is_owned)),
            Err(why) => Some((*why).to_owned()),
        };
        let mut processed = Processed::new(item, config, live);
        if is_frozen {
            processed.result = ApplyResult::Frozen;
            return processed;
        }
        let refused = refused.as_deref();
        let context =
            Context { applied_work, record: &record, is_owned, denied, is_complete, refused };
        processed.decided(context)
    });
    let processed: Vec<Processed<'w>> = processed.collect();
    let mut application =
        Application { applied_work, record, processed, removals: Vec::new(), is_frozen };
    if !is_frozen && application.is_understood() {
        application.removals = removals(snapshot, member, &application, &kinds);
    }
    application
}

/// What the status tells about a manifest.
struct Told<'w> {
    item: Item<'w>,
    denied: Option<&'w str>,
    is_complete: bool,
}

/// Reads what was told about a manifest. One whose kind the member did not serve is told
/// without its resource, until somebody defines it.
fn told<'w>(work: &'w Object, mut item: Item<'w>, kinds: &Kinds<'_>) -> Told<'w> {
    let entry = recorded::entry_of(work, &item);
    let denied = recorded::denial(work, entry);
    let is_unknown = denied.is_some_and(|why| why.starts_with(NO_RESOURCE));
    if is_unknown && !kinds.is_defined(&item.identifier.kind) {
        item.resource.clear();
    }
    Told { item, denied, is_complete: recorded::is_complete(entry) }
}

fn removals<'w>(
    snapshot: &Snapshot<'w>,
    member: &str,
    application: &Application<'w>,
    kinds: &Kinds<'_>,
) -> Vec<Removal<'w>> {
    let applied_work = application.applied_work;
    let is_asked = |resource: &recorded::AppliedResource| {
        application.processed.iter().any(|it| resource.is_of(&it.item))
    };
    let left = applied_resources(applied_work).into_iter().filter(|it| !is_asked(it));
    let removals = left.map(|resource| {
        let live = resource.key(kinds, member).and_then(|key| snapshot.get(&key));
        Removal::of(resource, live, applied_work)
    });
    removals.collect()
}

/// The manifests in the order in which they are written: those that others need first, and those
/// that the server has denied before at the end, so that none of them keeps the others waiting.
/// Of several such each is the first in its turn.
pub(crate) fn in_order<'a, 'w>(
    processed: &'a [Processed<'w>],
    now: Timestamp,
) -> (Vec<&'a Processed<'w>>, Vec<&'a Processed<'w>>) {
    let is_retried = |it: &&Processed<'_>| matches!(it.result, ApplyResult::Retried { .. });
    let (mut retried, mut fresh): (Vec<_>, Vec<_>) = processed.iter().partition(is_retried);
    fresh.sort_by_key(|it| it.item.rank());
    if !retried.is_empty() {
        let turn = usize::try_from(now.as_second().unsigned_abs()).unwrap_or(0) % retried.len();
        retried.rotate_left(turn);
    }
    (fresh, retried)
}
