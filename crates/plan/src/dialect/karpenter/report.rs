//! Where every member of the pool stands, and why those that do not move do not.

pub(crate) mod summary;

use std::cell::OnceCell;

use jiff::{SignedDuration, Timestamp};
use smol_str::SmolStr;

use crate::dialect::karpenter::decide::Run;
use crate::dialect::karpenter::read::Cluster;
use crate::dialect::karpenter::read::budget;
use crate::dialect::karpenter::read::claim::Member;
use crate::dialect::karpenter::read::pool::Policy;
use crate::dialect::karpenter::read::reason::Reason;
use crate::dialect::karpenter::write::Acts;
use crate::hold::{Hold, HoldReason};
use crate::step::{GroupReport, MemberState, Step, Verdict};

/// How many members a hold names.
const NAMED: usize = 5;

/// How soon a search for savings that was cut short goes on.
const SEARCH_AGAIN: SignedDuration = SignedDuration::from_secs(10);

/// Fills in groups, holds, verdict and the time to look again.
pub(crate) fn explain(cluster: &Cluster<'_>, run: &Run<'_, '_>, acts: Acts, step: &mut Step) {
    let name = SmolStr::new(cluster.pool().name());
    let mut group = GroupReport::new(name.as_str());
    step.holds.reserve(cluster.members.len());
    group.ceiling = ceiling(cluster);
    let budgets = BudgetHolds::new(cluster, run);
    for (at, member) in cluster.own_members() {
        let (state, hold) = match acts.stands.get(&at) {
            Some(known) => known.clone(),
            None => stand(cluster, run, &budgets, at, member),
        };
        group.count(state);
        if let Some((reason, until)) = hold {
            step.holds.push(
                Hold::of_member(member.claim.name().clone(), reason)
                    .in_group(name.clone())
                    .until(until),
            );
        }
    }
    step.groups.push(group);
    (step.actions, step.events) = acts.into_parts();
    step.wake_at = wake_at(cluster, run, step);
    step.verdict = verdict(cluster, step);
}

/// The most that any reason lets go at once; absent if some reason is unbounded.
fn ceiling(cluster: &Cluster<'_>) -> Option<u32> {
    let limits = summary::reasons(cluster).map(|reason| cluster.own_limits().of(reason).most);
    limits.collect::<Option<Vec<u32>>>()?.into_iter().max()
}

type Why = crate::dialect::karpenter::write::Wait;

fn stand(
    cluster: &Cluster<'_>,
    run: &Run<'_, '_>,
    budgets: &BudgetHolds<'_>,
    at: usize,
    member: &Member<'_>,
) -> (MemberState, Option<Why>) {
    if member.node.is_none_or(|node| !node.facts.is_initialized) {
        let detail = run.rejections[at]
            .as_ref()
            .map(crate::dialect::karpenter::decide::obstacle::Rejection::text);
        let detail = detail.unwrap_or_default();
        return (MemberState::Settling, Some((HoldReason::NotAvailable { detail }, None)));
    }
    match held(cluster, run, budgets, at) {
        Some(why) => (MemberState::Waiting, Some(why)),
        None => (MemberState::Done, Some(idle(cluster, run, at))),
    }
}

/// Why a member that has a reason to go does not go.
fn held(
    cluster: &Cluster<'_>,
    run: &Run<'_, '_>,
    budgets: &BudgetHolds<'_>,
    at: usize,
) -> Option<Why> {
    let reason = reason_to_go(run, at)?;
    if !run.may_go(at, reason) {
        let rejection = run.rejections[at].as_ref()?;
        return Some((rejection.hold(), rejection.until()));
    }
    if let Some(text) = run.refused.get(&at) {
        return Some((HoldReason::NotDisruptable { detail: text.clone() }, None));
    }
    if run.unreached.contains(&at) {
        let detail = "the search for savings has not come to this node yet".to_owned();
        return Some((
            HoldReason::NotDisruptable { detail },
            cluster.now.checked_add(SEARCH_AGAIN).ok(),
        ));
    }
    let pool = cluster.members[at].pool?;
    if run.allowed(pool, reason) == 0 {
        return Some(budgets.of(reason).clone());
    }
    let detail = "pods of another node will be sent here".to_owned();
    Some((HoldReason::NotDisruptable { detail }, None))
}

/// The first reason, in the order of the loop, for which a member would go.
pub(crate) fn reason_to_go(run: &Run<'_, '_>, at: usize) -> Option<Reason> {
    let marks = &run.marks[at];
    let applies = |reason: &Reason| match reason {
        Reason::Expired => marks.expired,
        Reason::Empty => marks.consolidatable && run.is_empty(at),
        Reason::Drifted => marks.drifted.is_some(),
        Reason::Underutilized => marks.consolidatable && run.obstacle(at).is_none(),
    };
    let free = |reason: &Reason| run.may_go(at, *reason);
    let mut all = Reason::ALL.into_iter().filter(applies);
    let first = all.clone().next();
    all.find(free).or(first)
}

/// Why a member without a reason to go stays: nothing to change, or not yet.
fn idle(cluster: &Cluster<'_>, run: &Run<'_, '_>, at: usize) -> Why {
    let pool = cluster.pool();
    let marks = &run.marks[at];
    let consolidates = pool.policy != Policy::WhenEmpty || run.is_empty(at);
    match (marks.consolidatable_at, pool.consolidate_after) {
        (Some(until), Some(after)) if consolidates => {
            (HoldReason::Settling { for_secs: after.as_secs() }, Some(until))
        }
        _ => (HoldReason::NoReason, None),
    }
}

/// What members are told that find no room for their reason.
struct BudgetHolds<'r> {
    cluster: &'r Cluster<'r>,
    down: u32,
    by: Vec<SmolStr>,
    /// Looking ahead costs more than the rest of a small decision, so it is done when asked.
    known: [OnceCell<Why>; Reason::ALL.len()],
}

impl<'r> BudgetHolds<'r> {
    fn new(cluster: &'r Cluster<'r>, run: &Run<'_, '_>) -> Self {
        let (down, by) = (run.down[cluster.own], down(cluster, run));
        Self { cluster, down, by, known: Default::default() }
    }

    fn of(&self, reason: Reason) -> &Why {
        let at = Reason::ALL.iter().position(|known| *known == reason);
        self.known[at.expect("ALL lists every reason")].get_or_init(|| self.work_out(reason))
    }

    fn work_out(&self, reason: Reason) -> Why {
        let (cluster, pool, in_flight) = (self.cluster, self.cluster.pool(), self.down);
        let limits = cluster.own_limits();
        if let Some((at, error)) = limits.errors.first() {
            let name = pool.name();
            let detail =
                format!("invalid disruption budgets in nodepool {name}, budget {at}: {error}");
            return (HoldReason::NotDisruptable { detail }, None);
        }
        let total = cluster.count_of_own().total;
        let limit = limits.of(reason);
        let ceiling = limit.most.unwrap_or(total);
        let default = pool.default_budget;
        let until = budget::frees_at(&pool.budgets, default, reason, total, in_flight, cluster.now);
        let is_window = limit.budget.and_then(|at| pool.budgets[at].window()).is_some();
        if ceiling == 0 && is_window {
            return (HoldReason::WindowClosed, until);
        }
        let (limit, by) = (reason.limit_name(), self.by.clone());
        (HoldReason::BudgetSpent { limit, in_flight, ceiling, by }, until)
    }
}

/// The first few members that use up budget.
fn down(cluster: &Cluster<'_>, run: &Run<'_, '_>) -> Vec<SmolStr> {
    let is_down =
        |(at, member): &(usize, &Member<'_>)| member.is_down() || run.leaving.contains(at);
    let counted = cluster.own_members().filter(|(_, member)| member.is_counted());
    counted.filter(is_down).map(|(_, member)| member.claim.name().clone()).take(NAMED).collect()
}

/// The next instant at which something changes by itself.
fn wake_at(cluster: &Cluster<'_>, run: &Run<'_, '_>, step: &Step) -> Option<Timestamp> {
    let holds = step.holds.iter().filter_map(|hold| hold.until);
    let own = cluster.own_members().filter(|(_, member)| !member.is_leaving());
    let expiries =
        own.filter_map(|(at, _)| run.marks[at].expires_at).filter(|at| *at > cluster.now);
    holds.chain(step.wake_at).chain(expiries).min()
}

fn verdict(cluster: &Cluster<'_>, step: &Step) -> Verdict {
    let group = &step.groups[0];
    if !step.actions.is_empty() || group.moving + group.gone > 0 {
        Verdict::Moving
    } else if group.waiting == 0 {
        Verdict::Done
    } else if cluster.own_limits().errors.is_empty() {
        Verdict::Held
    } else {
        Verdict::Stopped
    }
}
