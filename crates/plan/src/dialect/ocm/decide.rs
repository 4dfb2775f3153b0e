//! One round of a rollout: which clusters get the template now, and what holds the others.
//!
//! The engine keeps no state. It looks at where every cluster stands and walks the groups
//! from the beginning each time, so a cluster that joins late is simply found unstarted.

pub(crate) mod balance;
pub(crate) mod group;
pub(crate) mod placement;
pub(crate) mod predicate;
pub(crate) mod prioritizer;
pub(crate) mod reference;
pub(crate) mod schedule;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use smol_str::SmolStr;

use crate::budget::{IntOrPercent, Rounding};
use crate::dialect::ocm::decide::group::count;
use crate::dialect::ocm::group_title;
use crate::dialect::ocm::read::strategy::{GroupRef, Pace, Strategy};
use crate::dialect::ocm::read::work_status::Standing;
use crate::hold::HoldReason;
use crate::limit::{Limit, tightest};

/// How many members a hold names.
const NAMED: usize = 3;

/// A decision group and where its clusters stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ring<'w> {
    pub(crate) index: i64,
    pub(crate) name: SmolStr,
    /// By name.
    pub(crate) members: Vec<(&'w str, Standing)>,
}

/// What one round comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Round<'w> {
    /// Who gets the template now.
    pub(crate) take: BTreeSet<&'w str>,
    /// Who does not have it and does not get it now, and why.
    pub(crate) waits: BTreeMap<&'w str, HoldReason>,
    /// Set when failures stop the rollout.
    pub(crate) breach: Option<HoldReason>,
    /// The most clusters in flight at once outside mandatory groups, where that is limited.
    pub(crate) ceiling: Option<u32>,
    /// The numbers of the groups that go first.
    pub(crate) mandatory: BTreeSet<i64>,
    /// When time alone changes something.
    pub(crate) recheck: Option<Timestamp>,
}

/// Decides one round. `group_length` is the most clusters a decision group may hold.
pub(crate) fn round<'w>(rings: &[Ring<'w>], strategy: &Strategy, group_length: u32) -> Round<'w> {
    let mut round = Round::default();
    let everybody = || rings.iter().flat_map(|ring| &ring.members);
    round.recheck = everybody().filter_map(|(_, standing)| standing.recheck()).min();
    if strategy.pace == Pace::All {
        round.take_all(everybody().copied());
        return round;
    }
    let first = |ring: &&Ring<'w>| is_mandatory(ring, rings, &strategy.mandatory);
    let (first, rest): (Vec<&Ring<'w>>, Vec<&Ring<'w>>) = rings.iter().partition(first);
    let strict = Tolerance {
        failures_max: IntOrPercent::Int(0),
        tolerant: strategy.tolerant,
        mandatory: true,
    };
    round.mandatory = first.iter().map(|ring| ring.index).collect();
    if let Some(stop) = round.walk(&first, &strict) {
        round.hold_all(rest.iter().flat_map(|ring| &ring.members), &stop);
        return round;
    }
    if let Pace::Progressive { concurrency } = strategy.pace {
        let total = count(rest.iter().map(|ring| ring.members.len()).sum());
        let ceiling = ceiling(concurrency, total, group_length);
        round.ceiling = Some(ceiling);
        round.refill(rings, &rest, strategy, ceiling);
    } else {
        let Strategy { failures_max, tolerant, .. } = *strategy;
        round.walk(&rest, &Tolerance { failures_max, tolerant, mandatory: false });
    }
    round
}

/// What a group may lose and still let the next one start.
struct Tolerance {
    failures_max: IntOrPercent,
    tolerant: bool,
    mandatory: bool,
}

impl<'w> Round<'w> {
    /// Every unstarted cluster at once.
    fn take_all(&mut self, members: impl Iterator<Item = (&'w str, Standing)>) {
        for (cluster, standing) in members {
            match standing {
                Standing::Unstarted => _ = self.take.insert(cluster),
                Standing::Leaving => _ = self.waits.insert(cluster, leaving()),
                _ => {}
            }
        }
    }

    /// Group after group: a whole group is admitted at once, and the next one when nobody in it
    /// is unfinished and no more failed than may. Gives what stopped the walk, if anything did.
    fn walk(&mut self, rings: &[&Ring<'w>], tolerance: &Tolerance) -> Option<HoldReason> {
        let mut stop: Option<HoldReason> = None;
        for ring in rings {
            if let Some(stop) = &stop {
                self.hold_all(ring.members.iter(), stop);
                continue;
            }
            self.take_all(ring.members.iter().copied());
            let (unfinished, failures) = tolerance.losses(ring);
            let total = count(ring.members.len());
            let allowed = allowed(tolerance.failures_max, total);
            if failures > allowed {
                let reason = failure_stop(failures, allowed);
                self.breach = Some(reason.clone());
                stop = Some(reason);
            } else if unfinished > 0 {
                let behind = group_title(usize::try_from(ring.index).unwrap_or(0), &ring.name);
                stop = Some(HoldReason::GroupOrder { behind, unfinished });
            }
        }
        stop
    }

    /// Fills free slots by name, across groups, unless too much failed.
    fn refill(
        &mut self,
        rings: &[Ring<'w>],
        rest: &[&Ring<'w>],
        strategy: &Strategy,
        ceiling: u32,
    ) {
        let everybody = || rings.iter().flat_map(|ring| ring.members.iter());
        let lost =
            |standing: Standing| matches!(standing, Standing::Failed { .. } | Standing::TimedOut);
        let failures = everybody().filter(|(_, standing)| lost(*standing)).count();
        let failures = if strategy.tolerant { 0 } else { count(failures) };
        let allowed = allowed(strategy.failures_max, count(everybody().count()));
        let mut busy: Vec<&str> = everybody()
            .filter(|(_, standing)| standing.is_in_flight())
            .map(|(name, _)| *name)
            .collect();
        let in_flight = count(busy.len());
        let stop = failure_stop(failures, allowed);
        if failures > allowed {
            self.breach = Some(stop.clone());
        }
        let limits = [
            Limit::new(if failures > allowed { 0 } else { u32::MAX }, stop),
            Limit::ceiling("maxConcurrency", in_flight, ceiling, Vec::new()),
        ];
        let room = tightest(&limits).map_or(0, |limit| limit.room) as usize;
        let unstarted = rest.iter().flat_map(|ring| ring.members.iter());
        let unstarted = unstarted.filter(|(_, standing)| standing.is_unstarted());
        let mut unstarted: Vec<(&'w str, Standing)> = unstarted.copied().collect();
        unstarted.sort_unstable_by_key(|(cluster, _)| *cluster);
        let startable = unstarted.iter().filter(|(_, standing)| *standing == Standing::Unstarted);
        self.take.extend(startable.map(|(cluster, _)| *cluster).take(room));
        busy.extend(self.take.iter().copied());
        busy.sort_unstable();
        let by = busy.iter().take(NAMED).map(SmolStr::new).collect();
        let full = Limit::ceiling("maxConcurrency", count(busy.len()), ceiling, by);
        let hold = if failures > allowed { &limits[0].hold } else { &full.hold };
        let waiting = unstarted.iter().filter(|(cluster, _)| !self.take.contains(cluster));
        let waiting: Vec<(&'w str, Standing)> = waiting.copied().collect();
        self.hold_all(waiting.iter(), hold);
    }

    /// Tells every unstarted one of `members` why it waits.
    fn hold_all<'m>(
        &mut self,
        members: impl Iterator<Item = &'m (&'w str, Standing)>,
        reason: &HoldReason,
    ) where
        'w: 'm,
    {
        for (cluster, standing) in members {
            match standing {
                Standing::Unstarted => _ = self.waits.insert(cluster, reason.clone()),
                Standing::Leaving => _ = self.waits.insert(cluster, leaving()),
                _ => {}
            }
        }
    }
}

impl Tolerance {
    /// How many of a group are not finished yet, and how many failed.
    fn losses(&self, ring: &Ring<'_>) -> (u32, u32) {
        let (mut unfinished, mut failures) = (0, 0);
        for (_, standing) in &ring.members {
            match standing {
                Standing::Finished => {}
                Standing::Failed { .. } if self.tolerant => unfinished += 1,
                Standing::TimedOut if self.tolerant && !self.mandatory => {}
                Standing::Failed { .. } | Standing::TimedOut => failures += 1,
                Standing::Unstarted
                | Standing::Leaving
                | Standing::ToApply
                | Standing::Progressing { .. }
                | Standing::Soaking { .. } => unfinished += 1,
            }
        }
        (unfinished, failures)
    }
}

/// Whether any entry means this group: by name, by number, or by a text that may be either.
fn is_mandatory(ring: &Ring<'_>, rings: &[Ring<'_>], mandatory: &[GroupRef]) -> bool {
    mandatory.iter().any(|entry| match entry {
        GroupRef::Name(name) => ring.name == *name,
        GroupRef::Index(index) => ring.index == *index,
        GroupRef::Text(text) if rings.iter().any(|ring| ring.name == *text) => ring.name == *text,
        GroupRef::Text(text) => {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            digits && text.parse() == Ok(ring.index)
        }
    })
}

/// The most clusters in flight, of `total` that take part.
///
/// | given | total | group length | ceiling | because                     |
/// |-------|------:|-------------:|--------:|-----------------------------|
/// | 50%   |     5 |            2 |       3 | 2.5 rounds up               |
/// | 0     |     5 |            2 |       5 | 0 is no limit               |
/// | 9     |     5 |            2 |       5 | never more than take part   |
/// | none  |     5 |            2 |       2 | as many as a group may hold |
fn ceiling(given: Option<IntOrPercent>, total: u32, group_length: u32) -> u32 {
    let wanted = given.map_or(group_length, |given| given.resolve(total, Rounding::Up));
    if wanted == 0 { total } else { wanted.min(total) }
}

/// How many of `total` may fail.
fn allowed(failures_max: IntOrPercent, total: u32) -> u32 {
    failures_max.resolve(total, Rounding::Up).min(total)
}

fn leaving() -> HoldReason {
    HoldReason::Depends { on: "its former ManifestWork to be deleted".to_owned() }
}

#[cfg(test)]
mod tests;

fn failure_stop(failures: u32, value: u32) -> HoldReason {
    let remedy = "fix the manifests or raise maxFailures";
    HoldReason::FailureStop { limit: "maxFailures", value, failures, remedy }
}
