//! Joining, reporting and leaving.

use convoy_api::Object;
use convoy_api::kinds::{NODE, POD};
use jiff::Timestamp;

use crate::dialect::fleet_agent::names::{WORK, WORK_CLEANUP};
use crate::dialect::fleet_agent::read::internal::{
    Usage, Wanted, heartbeat, joined, period, usage, wanted,
};
use crate::snapshot::Snapshot;

/// What the agent says about its member now.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Membership {
    /// The hub has not said what it wants.
    Unasked,
    /// A heartbeat is due, with what the member has.
    Reporting(Box<Usage>),
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

pub(crate) fn decide(snapshot: &Snapshot<'_>, member: &str, now: Timestamp) -> Membership {
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
            let of = |kind| -> Vec<&Object> {
                let all = snapshot.of(kind).iter().copied();
                all.filter(|object| object.key().cluster == member).collect()
            };
            Membership::Reporting(Box::new(usage(&of(&NODE), &of(&POD))))
        }
    }
}

/// When the next heartbeat is due after one that is sent now.
pub(crate) fn next_heartbeat(internal: &Object, now: Timestamp) -> Option<Timestamp> {
    now.checked_add(period(internal)).ok()
}
