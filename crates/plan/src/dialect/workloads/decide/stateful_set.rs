//! One decision about a StatefulSet: pods are created in the order of their ordinals, removed and
//! replaced in reverse. The limits are listed in [`super`].
//!
//! A decision walks through three lists of ordinals that are not as they should be: wanted ones
//! (ascending), ones beyond those (descending), outdated ones (descending). Where order is kept,
//! the first ordinal of the walk has its turn, and all others wait for it.
//!
//! `spec.replicas` may be any number, so the walk is bounded by the pods that exist and by
//! [`BURST`], never by it.

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::Object;
use jiff::Timestamp;

use crate::dialect::workloads::read::Health;
use crate::dialect::workloads::read::stateful_set::StatefulSet;
use crate::gate::{self, Admission, Candidate, Limit, Permit};
use crate::hold::HoldReason;

/// The most missing pods that one step looks at. The next step goes on where it ended.
const BURST: u32 = 500;

/// What is done about the pods of a StatefulSet.
#[derive(Debug, Default)]
pub(crate) struct StatefulSetDecision<'o> {
    /// In order of precedence.
    pub(crate) works: Vec<(i64, Work<'o>, Permit)>,
    /// Why nothing happens to an ordinal, and until when.
    pub(crate) holds: BTreeMap<i64, (HoldReason, Option<Timestamp>)>,
    /// The wanted ordinals that this step looks at.
    pub(crate) near: Vec<i64>,
    /// What is told about the others.
    pub(crate) far_hold: Option<HoldReason>,
}

/// What is done about an ordinal.
#[derive(Clone, Debug)]
pub(crate) enum Work<'o> {
    Create,
    Remove { pod: &'o Object, reason: &'static str, message: String },
}

/// An ordinal that is not as it should be.
#[derive(Debug)]
struct DueOrdinal<'o> {
    ordinal: i64,
    name: String,
    /// None if it has to be waited for.
    work: Option<Work<'o>>,
    /// What those behind it wait for, and until when.
    reason: HoldReason,
    until: Option<Timestamp>,
}

pub(crate) fn decide<'o>(set: &StatefulSet<'o>) -> StatefulSetDecision<'o> {
    let mut decision = StatefulSetDecision::default();
    if set.owner.is_deleting() {
        return decision;
    }
    let walk = gate::grant(crate::count(set.missing()), &[Limit::burst(BURST, 0)]);
    decision.near = set.wanted_up_to(walk.count);
    decision.far_hold = walk.hold;
    let is_one_by_one = set.max_unavailable == 1;
    if !set.is_ordered {
        decision.admit(wanted(set, &decision.near), false);
        decision.admit(beyond(set), false);
        if is_one_by_one {
            decision.admit(outdated(set), true);
        } else {
            decision.replace(set);
        }
        return decision;
    }
    let first = wanted(set, &decision.near);
    let first: Vec<DueOrdinal<'_>> = first.into_iter().chain(beyond(set)).collect();
    if first.is_empty() && !is_one_by_one {
        decision.replace(set);
    } else {
        decision.admit(first.into_iter().chain(outdated(set)).collect(), true);
    }
    decision
}

impl<'o> StatefulSetDecision<'o> {
    fn admit(&mut self, mut turns: Vec<DueOrdinal<'o>>, in_order: bool) {
        // An ordinal is in two lists if it is broken and outdated: it has one turn.
        let mut seen: BTreeSet<i64> = self.works.iter().map(|(ordinal, ..)| *ordinal).collect();
        for turn in &mut turns {
            if !seen.insert(turn.ordinal) {
                turn.work = None;
            }
        }
        let first = turns.first().filter(|_| in_order);
        let until = first.and_then(|turn| turn.until);
        let limit =
            first.map(|turn| Limit::of(u32::from(turn.work.is_some()), turn.reason.clone()));
        let works = turns.iter().enumerate().filter(|(_, turn)| turn.work.is_some());
        let candidates = works.map(|(at, turn)| Candidate::free(&turn.name, at)).collect();
        let admission = gate::admit(candidates, limit.as_slice());
        self.take(&turns, &admission, until);
    }

    fn take(
        &mut self,
        turns: &[DueOrdinal<'o>],
        admission: &Admission<'_>,
        until: Option<Timestamp>,
    ) {
        if let Some(permit) = admission.permit() {
            for member in &admission.starts {
                let turn = &turns[member.index];
                self.works.extend(turn.work.clone().map(|work| (turn.ordinal, work, permit)));
            }
        }
        for (member, reason) in &admission.holds {
            self.holds.insert(turns[member.index].ordinal, (reason.clone(), until));
        }
    }

    /// Replaces outdated pods, the last first, as far as `maxUnavailable` goes: a pod that is not
    /// available takes up a place, whatever its revision.
    fn replace(&mut self, set: &StatefulSet<'o>) {
        let seen: BTreeSet<i64> = self.works.iter().map(|(ordinal, ..)| *ordinal).collect();
        let turns: Vec<DueOrdinal<'o>> = outdated(set)
            .into_iter()
            .filter(|turn| turn.work.is_some() && !seen.contains(&turn.ordinal))
            .collect();
        let existing = set.pods.iter().filter(|(ordinal, _)| set.wanted.contains(ordinal));
        let existing = existing.map(|(ordinal, (_, health))| (*ordinal, *health));
        let (up, down): (Vec<_>, Vec<_>) =
            existing.partition(|(_, health)| *health == Health::Available);
        let wanted = usize::try_from(set.wanted.end - set.wanted.start).unwrap_or(usize::MAX);
        let in_flight = crate::count(wanted.saturating_sub(up.len()));
        let down = down.into_iter().map(|(ordinal, _)| set.name(ordinal));
        let limit = Limit::slots("maxUnavailable", in_flight, set.max_unavailable, down);
        let candidates = turns.iter().enumerate();
        let candidates = candidates.map(|(at, turn)| Candidate::free(&turn.name, at)).collect();
        self.take(&turns, &gate::admit(candidates, &[limit]), None);
    }
}

impl<'o> DueOrdinal<'o> {
    fn create(set: &StatefulSet<'_>, ordinal: i64) -> Self {
        Self::work(set, ordinal, Work::Create)
    }

    fn remove(
        set: &StatefulSet<'_>,
        ordinal: i64,
        pod: &'o Object,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self::work(set, ordinal, Work::Remove { pod, reason, message: message.into() })
    }

    fn work(set: &StatefulSet<'_>, ordinal: i64, work: Work<'o>) -> Self {
        let name = set.name(ordinal);
        let reason = HoldReason::Depends { on: name.clone() };
        Self { ordinal, name, work: Some(work), reason, until: None }
    }

    fn wait(set: &StatefulSet<'_>, ordinal: i64, reason: HoldReason) -> Self {
        Self { ordinal, name: set.name(ordinal), work: None, reason, until: None }
    }
}

/// Wanted ordinals among `near` that are missing, or whose pod does not work.
fn wanted<'o>(set: &StatefulSet<'o>, near: &[i64]) -> Vec<DueOrdinal<'o>> {
    let turn = |ordinal: i64| match set.pods.get(&ordinal) {
        None => Some(DueOrdinal::create(set, ordinal)),
        Some((pod, Health::Finished)) => {
            let message = "the pod is finished and has to run again";
            Some(DueOrdinal::remove(set, ordinal, pod, "PodOver", message))
        }
        Some((_, Health::Terminating)) => Some(terminating(set, ordinal)),
        // Waiting for it would take for ever if its revision is at fault.
        Some((pod, Health::NotReady)) if set.is_outdated(ordinal, pod) => {
            let message = "the pod is not ready and of an old revision";
            Some(DueOrdinal::remove(set, ordinal, pod, "Outdated", message))
        }
        Some((_, Health::NotReady)) => {
            let detail = format!("{} is not ready", set.name(ordinal));
            Some(DueOrdinal::wait(set, ordinal, HoldReason::NotAvailable { detail }))
        }
        Some((_, Health::Settling { until, .. })) if set.is_ordered => {
            let reason = HoldReason::Settling { for_secs: set.min_ready_secs };
            Some(DueOrdinal { until: *until, ..DueOrdinal::wait(set, ordinal, reason) })
        }
        Some((_, Health::Settling { .. } | Health::Available)) => None,
    };
    near.iter().copied().filter_map(turn).collect()
}

/// Pods beyond the wanted ordinals, the last first.
fn beyond<'o>(set: &StatefulSet<'o>) -> Vec<DueOrdinal<'o>> {
    let pods = set.pods.iter().rev().filter(|(ordinal, _)| !set.wanted.contains(ordinal));
    let turn = |(ordinal, (pod, health)): (&i64, &(&'o Object, Health))| {
        if *health == Health::Terminating {
            return terminating(set, *ordinal);
        }
        let message = format!("ordinals {} to {} are wanted", set.wanted.start, set.wanted.end);
        DueOrdinal::remove(set, *ordinal, pod, "TooMany", message)
    };
    pods.map(turn).collect()
}

/// Outdated pods, the last first, each when those behind it are available.
fn outdated<'o>(set: &StatefulSet<'o>) -> Vec<DueOrdinal<'o>> {
    let Some(partition) = set.partition else { return Vec::new() };
    let ordinals = partition.max(set.wanted.start)..set.wanted.end;
    // The missing one with the highest ordinal is waited for first, so others do not matter.
    let missing = ordinals.clone().rev().find(|ordinal| !set.pods.contains_key(ordinal));
    let existing = set.pods.keys().copied().filter(|ordinal| ordinals.contains(ordinal));
    let ordinals: BTreeSet<i64> = existing.chain(missing).collect();
    let ordinals = ordinals.into_iter().rev();
    let turn = |ordinal: i64| {
        let Some((pod, health)) = set.pods.get(&ordinal) else {
            let on = format!("{} to be created", set.name(ordinal));
            return Some(DueOrdinal::wait(set, ordinal, HoldReason::Depends { on }));
        };
        if *health != Health::Terminating && set.is_outdated(ordinal, pod) {
            let message = format!("{} is rolled out", set.update);
            return Some(DueOrdinal::remove(set, ordinal, pod, "Outdated", message));
        }
        let until = match health {
            Health::Available => return None,
            Health::Settling { until, .. } => *until,
            _ => None,
        };
        let detail = format!("{} is not available", set.name(ordinal));
        let reason = HoldReason::NotAvailable { detail };
        Some(DueOrdinal { until, ..DueOrdinal::wait(set, ordinal, reason) })
    };
    ordinals.filter_map(turn).collect()
}

fn terminating<'o>(set: &StatefulSet<'_>, ordinal: i64) -> DueOrdinal<'o> {
    let on = format!("{} to be gone", set.name(ordinal));
    DueOrdinal::wait(set, ordinal, HoldReason::Depends { on })
}
