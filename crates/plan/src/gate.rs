//! The gate: the one place where limits become starts.
//!
//! A [`Limit`] is anything that answers "how many more may start, and if none, why": a
//! compartment ceiling, a batch, maxUnavailable, maxConcurrency, a disruption budget, a closed
//! window, the order of groups, a failure stop, a pause. A dialect's `decide` lists the limits
//! of one decision in order of precedence, and [`grant`] or [`admit`] turns the list into starts
//! and holds in one call, so that what is decided and what is explained cannot disagree.
//!
//! A verb that starts, updates, scales or removes a member carries a [`Permit`], and only this
//! module makes permits: an action that disturbs a member cannot be built without having asked.

use smol_str::SmolStr;

use crate::hold::{HoldReason, NAMED};

/// One limit as it stands before the decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    room: u32,
    full: Full,
}

/// How a limit explains that it is full.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Full {
    /// Slots that members in flight occupy.
    Slots { limit: &'static str, in_flight: u32, ceiling: u32, by: Vec<SmolStr> },
    /// Members that have to stay available.
    Floor { limit: &'static str, available: u32, required: u32, unavailable: u32, by: Vec<SmolStr> },
    /// The same words, however many start.
    Reason(HoldReason),
}

impl Limit {
    /// At most `ceiling` members in flight, of which `in_flight` are, `by` naming the first few.
    pub fn slots<N: Into<SmolStr>>(
        limit: &'static str,
        in_flight: u32,
        ceiling: u32,
        by: impl IntoIterator<Item = N>,
    ) -> Self {
        let by = by.into_iter().take(NAMED).map(Into::into).collect();
        let room = ceiling.saturating_sub(in_flight);
        Self { room, full: Full::Slots { limit, in_flight, ceiling, by } }
    }

    /// At least `required` members stay available, of which `available` are; `unavailable` more are
    /// wanted, `by` naming the first few.
    pub fn floor<N: Into<SmolStr>>(
        limit: &'static str,
        available: u32,
        required: u32,
        unavailable: u32,
        by: impl IntoIterator<Item = N>,
    ) -> Self {
        let by = by.into_iter().take(NAMED).map(Into::into).collect();
        let room = available.saturating_sub(required);
        Self { room, full: Full::Floor { limit, available, required, unavailable, by } }
    }

    /// A batch of `size` members that begins now.
    pub fn batch(batch: u32, size: u32) -> Self {
        Self::of(size, HoldReason::BatchFull { batch, size })
    }

    /// Nobody starts, for this reason.
    pub fn closed(reason: HoldReason) -> Self {
        Self::of(0, reason)
    }

    /// At most `size` members in one step, of which `used` are decided already. What a user asks
    /// for may be any number; the next step goes on where this one ended.
    pub fn burst(size: u32, used: usize) -> Self {
        let room = size.saturating_sub(crate::count(used));
        Self::of(room, HoldReason::BatchFull { batch: 1, size })
    }

    /// `room` more may start; the others are told `reason`.
    pub fn of(room: u32, reason: HoldReason) -> Self {
        Self { room, full: Full::Reason(reason) }
    }

    /// How many more members it lets start.
    pub fn room(&self) -> u32 {
        self.room
    }

    /// One more has started, whose name is `name`.
    fn spend(&mut self, name: &str) {
        self.room = self.room.saturating_sub(1);
        let name = std::iter::once(name);
        match &mut self.full {
            Full::Reason(_) => {}
            Full::Floor { available, unavailable, by, .. } => {
                *available = available.saturating_sub(1);
                *unavailable = unavailable.saturating_add(1);
                extend(by, name);
            }
            Full::Slots { in_flight, by, .. } => {
                *in_flight = in_flight.saturating_add(1);
                extend(by, name);
            }
        }
    }

    /// What whoever finds no room is told, once `started` more are in flight, the first of them
    /// being `names`.
    fn hold<'a>(&self, started: u32, names: impl Iterator<Item = &'a str>) -> HoldReason {
        match self.full.clone() {
            Full::Reason(reason) => reason,
            Full::Floor { limit, available, required, unavailable, mut by } => {
                extend(&mut by, names);
                HoldReason::AvailabilityFloor {
                    limit,
                    available: available.saturating_sub(started),
                    required,
                    unavailable: unavailable.saturating_add(started),
                    by: by.into(),
                }
            }
            Full::Slots { limit, in_flight, ceiling, mut by } => {
                extend(&mut by, names);
                let in_flight = in_flight.saturating_add(started);
                HoldReason::BudgetSpent { limit, in_flight, ceiling, by: by.into() }
            }
        }
    }
}

/// Names more members, up to [`NAMED`]. Whoever starts may have been named before, for want of
/// health.
fn extend<'a>(by: &mut Vec<SmolStr>, names: impl Iterator<Item = &'a str>) {
    for name in names {
        if by.len() >= NAMED {
            break;
        }
        if !by.iter().any(|known| known == name) {
            by.push(SmolStr::new(name));
        }
    }
}

/// The proof that the gate let a member start, be replaced, scaled or removed. Only the gate
/// makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Permit(());

/// How many of a number start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub count: u32,
    /// What is told about those that do not start; absent if all do.
    pub hold: Option<HoldReason>,
    /// Private, so that no literal outside the gate makes a grant.
    permit: Option<Permit>,
}

impl Grant {
    /// What actions on members need; absent if none starts.
    pub fn permit(&self) -> Option<Permit> {
        self.permit
    }
}

/// A member as the gate knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member<'a> {
    pub name: &'a str,
    /// Where the dialect finds it in its own list.
    pub index: usize,
}

/// Someone who would start if nothing limited it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate<'a> {
    pub member: Member<'a>,
    /// What keeps this member from starting whatever the limits are. It takes no room.
    pub obstacle: Option<HoldReason>,
}

impl<'a> Candidate<'a> {
    /// A member that nothing of its own keeps from starting.
    pub fn free(name: &'a str, index: usize) -> Self {
        Self { member: Member { name, index }, obstacle: None }
    }

    pub fn blocked(name: &'a str, index: usize, obstacle: HoldReason) -> Self {
        Self { member: Member { name, index }, obstacle: Some(obstacle) }
    }
}

/// Who starts now, and why each other one waits. Together they are the candidates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission<'a> {
    /// In order of precedence.
    pub starts: Vec<Member<'a>>,
    pub holds: Vec<(Member<'a>, HoldReason)>,
    /// Private, so that no literal outside the gate makes an admission.
    permit: Option<Permit>,
}

impl Admission<'_> {
    /// What actions on those that start need; absent if nobody does.
    pub fn permit(&self) -> Option<Permit> {
        self.permit
    }
}

/// Whether nobody starts under `limits`.
pub fn is_full(limits: &[Limit]) -> bool {
    limits.iter().any(|limit| limit.room == 0)
}

/// Makes `limits` what they are once the member called `name` has started, so that the next one is
/// asked about under what is left of them.
pub(crate) fn spend(limits: &mut [Limit], name: &str) {
    for limit in limits {
        limit.spend(name);
    }
}

/// How many of `wanted` start under `limits`, and what the others are told.
///
/// | wanted | rooms   | count | told          | because                         |
/// |-------:|---------|------:|---------------|---------------------------------|
/// |      5 | 3, 1, 2 |     1 | second limit  | it is the smallest              |
/// |      5 | 0, 0    |     0 | first limit   | limits are listed by precedence |
/// |      2 | 3, 2    |     2 | nobody waits  | there is room for all           |
/// |      5 | (none)  |     5 | nobody waits  | nothing limits                  |
pub fn grant(wanted: u32, limits: &[Limit]) -> Grant {
    let tightest = tightest(limits).filter(|limit| limit.room < wanted);
    let count = tightest.map_or(wanted, |limit| limit.room);
    let hold = tightest.map(|limit| limit.hold(count, std::iter::empty()));
    Grant { count, hold, permit: (count > 0).then_some(Permit(())) }
}

/// Who of `candidates` (in order of precedence) starts now, and why each other one waits.
pub fn admit<'a>(candidates: Vec<Candidate<'a>>, limits: &[Limit]) -> Admission<'a> {
    let free = candidates.iter().filter(|candidate| candidate.obstacle.is_none()).count();
    let room = tightest(limits).map_or(u32::MAX, Limit::room);
    let count = usize::try_from(room).unwrap_or(usize::MAX).min(free);
    let mut starts = Vec::with_capacity(count);
    let mut holds = Vec::with_capacity(candidates.len() - count);
    let mut full = None;
    for Candidate { member, obstacle } in candidates {
        match obstacle {
            Some(reason) => holds.push((member, reason)),
            None if starts.len() < count => starts.push(member),
            None => {
                let reason = full.get_or_insert_with(|| {
                    let limit = tightest(limits).expect("without a limit everyone free starts");
                    limit.hold(crate::count(count), starts.iter().map(|member| member.name))
                });
                holds.push((member, reason.clone()));
            }
        }
    }
    let permit = (!starts.is_empty()).then_some(Permit(()));
    Admission { starts, holds, permit }
}

/// The limit that leaves the least room; of several, the first.
fn tightest(limits: &[Limit]) -> Option<&Limit> {
    limits.iter().min_by_key(|limit| limit.room)
}

#[cfg(test)]
mod tests;
