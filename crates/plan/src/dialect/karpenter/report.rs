//! The state of every member of the pool, and why those that do not move do not.

pub(crate) mod claim;
pub(crate) mod explain;
pub(crate) mod series;
pub(crate) mod summary;

use jiff::{SignedDuration, Timestamp};
use smol_str::SmolStr;

use super::decide::obstacle::Obstacle;
use super::decide::{Disruptions, Until};
use super::read::Cluster;
use super::read::claim::Member;
use super::read::class::{self, NodeClassState};
use super::read::pool::Policy;
use super::read::reason::Reason;
use super::write::writes::{Wait, Writes};
use crate::ascending;
use crate::hold::{Hold, HoldReason};
use crate::step::{GroupReport, MemberState, Step, Verdict};

/// How soon a search for savings that was cut short goes on.
const SEARCH_AGAIN: SignedDuration = SignedDuration::from_secs(10);

/// Fills in groups, holds, verdict and the time to look again.
pub(crate) fn report<'w>(
    cluster: &Cluster<'w>,
    disruptions: &Disruptions<'_, 'w>,
    node_class: NodeClassState<'_>,
    writes: Writes,
    step: &mut Step,
) {
    let name = SmolStr::new(cluster.pool().name());
    let mut group = GroupReport::new(name.as_str());
    step.holds.reserve(cluster.members.len());
    group.ceiling = ceiling(cluster, disruptions);
    let mut instants = Instants { cluster, disruptions, frees_at: Vec::new() };
    let mut known = ascending::lookup(writes.states.iter().map(|(at, known)| (*at, known)));
    for (at, member) in cluster.own_members() {
        let (state, hold) = match known(at) {
            Some(known) => known.clone(),
            None => state(cluster, disruptions, &mut instants, at, member),
        };
        group.count_member(state, member.claim.name().clone());
        if let Some((reason, until)) = hold {
            step.holds.push(
                Hold::of_member(member.claim.name().clone(), reason)
                    .in_group(name.clone())
                    .until(until),
            );
        }
    }
    drop(known);
    let hold = class_hold(cluster, node_class).or_else(|| writes.hold.clone());
    step.holds.extend(hold.map(Hold::of_rollout));
    step.groups.push(group);
    step.actions = writes.fill(step);
    step.wake_at = wake_at(cluster, disruptions, step);
    step.verdict = verdict(disruptions, step);
}

/// The most that any reason lets go at once; absent if some reason is unbounded.
fn ceiling(cluster: &Cluster<'_>, disruptions: &Disruptions<'_, '_>) -> Option<u32> {
    let budgets = disruptions.own_budgets();
    let ceilings = cluster.pool().reasons().map(|reason| budgets.ceiling(reason));
    ceilings.collect::<Option<Vec<u32>>>()?.into_iter().max()
}

/// What the pool lacks to make nodes at all.
fn class_hold(cluster: &Cluster<'_>, state: NodeClassState<'_>) -> Option<HoldReason> {
    let kind = "KWOKNodeClass";
    let name = class::name(cluster.pool());
    let on = match state {
        NodeClassState::Foreign | NodeClassState::Ready { .. } => return None,
        NodeClassState::NotFound => {
            return Some(HoldReason::Missing { kind, name: name.to_owned() });
        }
        NodeClassState::Terminating => {
            format!("{kind} {name} to be created again: it is being deleted")
        }
        NodeClassState::Unknown { .. } | NodeClassState::NotReady { message: "", .. } => {
            format!("{kind} {name} to be Ready")
        }
        NodeClassState::NotReady { message, .. } => {
            format!("{kind} {name} to be Ready: {message}")
        }
    };
    Some(HoldReason::Depends { on })
}

/// The state of a member that nothing is done to.
fn state(
    cluster: &Cluster<'_>,
    disruptions: &Disruptions<'_, '_>,
    instants: &mut Instants<'_, '_, '_>,
    at: usize,
    member: &Member<'_>,
) -> (MemberState, Option<Wait>) {
    if member.node.is_none_or(|node| !node.facts.is_initialized) {
        let obstacle = disruptions.obstacles[at].as_ref();
        let detail = obstacle.map(Obstacle::text).unwrap_or_default();
        return (MemberState::Settling, Some((HoldReason::NotAvailable { detail }, None)));
    }
    if member.is_leaving() {
        let detail = Obstacle::Leaving.text();
        return (MemberState::Gone, Some((HoldReason::NotAvailable { detail }, None)));
    }
    match disruptions.hold(at) {
        Some((reason, until)) => {
            let until = until.and_then(|until| instants.of(until));
            (MemberState::Waiting, Some((reason, until)))
        }
        None => (MemberState::Done, Some(without_reason(cluster, disruptions, at))),
    }
}

/// Why a member without a reason to go stays: nothing to change, or not yet.
fn without_reason(cluster: &Cluster<'_>, disruptions: &Disruptions<'_, '_>, at: usize) -> Wait {
    let pool = cluster.pool();
    let consolidates = pool.policy != Policy::WhenEmpty || disruptions.is_empty(at);
    match (disruptions.conditions[at].consolidatable_at, pool.consolidate_after) {
        (Some(until), Some(after)) if consolidates => {
            (HoldReason::Settling { for_secs: after.as_secs() }, Some(until))
        }
        _ => (HoldReason::NoReason, None),
    }
}

/// The instants at which holds end. Looking ahead in the budgets costs more than the rest of a
/// small decision, so it is done when asked, once per reason.
struct Instants<'r, 'c, 'w> {
    cluster: &'r Cluster<'w>,
    disruptions: &'r Disruptions<'c, 'w>,
    frees_at: Vec<(Reason, Option<Timestamp>)>,
}

impl Instants<'_, '_, '_> {
    fn of(&mut self, until: Until) -> Option<Timestamp> {
        let reason = match until {
            Until::Instant(instant) => return Some(instant),
            Until::NextSearch => return self.cluster.now.checked_add(SEARCH_AGAIN).ok(),
            Until::BudgetChange(reason) => reason,
        };
        if let Some((_, known)) = self.frees_at.iter().find(|(known, _)| *known == reason) {
            return *known;
        }
        let found = self.disruptions.frees_at(reason);
        self.frees_at.push((reason, found));
        found
    }
}

/// The next instant at which something changes by itself.
fn wake_at(
    cluster: &Cluster<'_>,
    disruptions: &Disruptions<'_, '_>,
    step: &Step,
) -> Option<Timestamp> {
    let holds = step.holds.iter().filter_map(|hold| hold.until);
    let own = cluster.own_members().filter(|(_, member)| !member.is_leaving());
    // Whatever else a member waits for, these give it a reason to go.
    let reasons = own.flat_map(|(at, _)| {
        let conditions = &disruptions.conditions[at];
        [conditions.expires_at, conditions.consolidatable_at]
    });
    let reasons = reasons.flatten().filter(|at| *at > cluster.now);
    let later = [disruptions.provisions_at(), disruptions.repairs.next_at];
    holds.chain(step.wake_at).chain(reasons).chain(later.into_iter().flatten()).min()
}

fn verdict(disruptions: &Disruptions<'_, '_>, step: &Step) -> Verdict {
    let group = &step.groups[0];
    if !step.actions.is_empty() || group.moving + group.gone > 0 {
        Verdict::Moving
    } else if group.waiting == 0 && step.holds.iter().all(|hold| hold.member.is_some()) {
        Verdict::Done
    } else if disruptions.own_budgets().errors().next().is_none() {
        Verdict::Held
    } else {
        Verdict::Stopped
    }
}
