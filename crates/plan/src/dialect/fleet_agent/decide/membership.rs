//! Joining, reporting and leaving.

use convoy_api::kinds::{NAMESPACE, NODE, POD};
use convoy_api::{GroupKind, Object};
use jiff::Timestamp;

use crate::dialect::fleet_agent::names::{WORK, WORK_CLEANUP};
use crate::dialect::fleet_agent::read::internal::{
    Usage, Wanted, heartbeat, joined, period, usage, wanted,
};
use crate::dialect::fleet_agent::read::provider::{Namespaces, PropertyProvider, namespaces};
use crate::snapshot::Snapshot;

/// What the agent says about its member now.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Membership {
    /// The hub has not said what it wants.
    Unasked,
    /// A heartbeat is due, with what the member has.
    Reporting(Box<Report>),
    /// Nothing is due before then.
    Quiet {
        until: Option<Timestamp>,
    },
    /// So many Works have to be let go first.
    Leaving {
        works: usize,
    },
    Left,
}

/// What is reported with a heartbeat.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Report {
    pub(crate) usage: Usage,
    /// None: they are not collected.
    pub(crate) namespaces: Option<Namespaces>,
}

pub(crate) fn decide(
    snapshot: &Snapshot<'_>,
    member: &str,
    provider: Option<&PropertyProvider>,
    now: Timestamp,
) -> Membership {
    let internal = snapshot.rollout();
    match wanted(internal) {
        None => Membership::Unasked,
        Some(Wanted::Leave) => {
            let held = |work: &&&Object| work.has_finalizer(WORK_CLEANUP);
            match snapshot.of(&WORK).iter().filter(held).count() {
                0 => Membership::Left,
                works => Membership::Leaving { works },
            }
        }
        Some(Wanted::Join) => {
            let next = heartbeat(internal).and_then(|at| at.checked_add(period(internal)).ok());
            let is_joined = joined(internal) == Some(("True", internal.generation()));
            if is_joined && next.is_some_and(|next| now < next) {
                return Membership::Quiet { until: next };
            }
            let of = |kind: GroupKind| -> Vec<&Object> {
                let all = snapshot.of(&kind).iter().copied();
                all.filter(|object| object.key().cluster == member).collect()
            };
            let usage = usage(&of(NODE), &of(POD));
            let collects = provider.is_some_and(|provider| provider.collects_namespaces);
            let namespaces = collects.then(|| namespaces(of(NAMESPACE).into_iter()));
            Membership::Reporting(Box::new(Report { usage, namespaces }))
        }
    }
}

/// When the next heartbeat is due after one that is sent now.
pub(crate) fn next_heartbeat(internal: &Object, now: Timestamp) -> Option<Timestamp> {
    now.checked_add(period(internal)).ok()
}
