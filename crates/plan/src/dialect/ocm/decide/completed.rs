//! Works that are through go after the time that they give themselves.

use convoy_api::Object;
use jiff::{SignedDuration, Timestamp};

use crate::dialect::ocm::read::work::{completed_at, ttl_secs};
use crate::gate::{self, Candidate, Permit};

/// What becomes of a work that is to go when it is through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completed {
    /// It is not through, or goes already.
    NotYet,
    Until(Timestamp),
    Expired(Permit),
}

pub(crate) fn decide(work: &Object, now: Timestamp) -> Completed {
    let (Some(since), Some(ttl)) = (completed_at(work), ttl_secs(work)) else {
        return Completed::NotYet;
    };
    if work.is_deleting() {
        return Completed::NotYet;
    }
    // Beyond the calendar is never.
    match since.checked_add(SignedDuration::from_secs(ttl.max(0))) {
        Ok(until) if until <= now => expired(work),
        Ok(until) => Completed::Until(until),
        Err(_) => Completed::NotYet,
    }
}

/// The work asks for its end itself: nothing limits how many go at once.
fn expired(work: &Object) -> Completed {
    let admission = gate::admit(vec![Candidate::free(work.name(), 0)], &[]);
    admission.permit().map_or(Completed::NotYet, Completed::Expired)
}
