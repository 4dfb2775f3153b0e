//! Where every binding of a placement stands, and why it does not move.

use smol_str::SmolStr;

use crate::dialect::fleet::decide::rollout::Picked;
use crate::dialect::fleet::decide::rollout::group::Groups;
use crate::dialect::fleet::read::binding::{Binding, Readiness, State};
use crate::dialect::fleet::read::placement::{Placement, RollingUpdate, text};
use crate::dialect::fleet::read::snapshot::ResourceGroup;
use crate::dialect::fleet::report::Part;
use crate::gate::Permit;
use crate::hold::{Hold, HoldReason};
use crate::step::{GroupReport, MemberState, Verb, Verdict};

/// The one group that a rolling update has.
pub(crate) const GROUP: &str = "bindings";

/// How many names a hold gives for whoever takes its room.
const NAMED: usize = 3;

/// Which budget a binding waits for.
#[derive(Clone, Copy)]
enum Limit {
    Removal,
    Update,
    Surge,
}

/// Counts every binding once, holds those that wait, and draws the verdict.
pub(crate) fn holds(
    part: &mut Part,
    groups: &Groups<'_>,
    picked: &Picked<'_, '_>,
    rolling: &RollingUpdate,
) {
    let mut report = GroupReport::new(GROUP);
    let mut hold = |binding: &Binding<'_>, reason, until| {
        part.holds.push(Hold::of_member(binding.name(), reason).in_group(GROUP).until(until));
    };
    picked.roll.iter().for_each(|_| report.count(MemberState::Moving));
    let gone = picked.remove.len() + groups.leaving.len();
    (0..gone).for_each(|_| report.count(MemberState::Gone));
    let removals = picked.blocked_removals.iter().map(|binding| (binding, Limit::Removal));
    let updates = picked.blocked_updates.iter().map(|it| (&it.binding, Limit::Update));
    let binds = picked.blocked_binds.iter().map(|it| (&it.binding, Limit::Surge));
    let spent = [Limit::Removal, Limit::Update, Limit::Surge].map(|it| it.spent(groups, picked));
    for (binding, limit) in removals.chain(updates).chain(binds) {
        report.count(MemberState::Waiting);
        hold(binding, spent[limit as usize].clone(), None);
    }
    for binding in &groups.current {
        let readiness = readiness(groups, binding);
        let state = standing(binding, readiness);
        report.count(state);
        let until = if let Readiness::At(at) = readiness { Some(at) } else { None };
        match state {
            MemberState::Done => {}
            MemberState::Failed => hold(binding, failed(binding), None),
            MemberState::Settling => {
                let for_secs = rolling.unavailable_period_secs;
                hold(binding, HoldReason::Settling { for_secs }, until);
            }
            _ => hold(binding, HoldReason::NotAvailable { detail: binding.explanation() }, None),
        }
    }
    part.verdict = Some(verdict(&report, groups.is_out_of_date()));
    part.groups.push(report);
}

/// What writing this binding means to a person.
pub(crate) fn meaning(binding: &Binding<'_>) -> (Verb, &'static str) {
    match binding.state {
        State::Scheduled => (Verb::Start(Permit::unchecked()), "NewlyPicked"),
        _ if binding.has_failed() => (Verb::Retry(Permit::unchecked()), "FailedAnyway"),
        _ => (Verb::Update(Permit::unchecked()), "OutOfDate"),
    }
}

/// Nothing was selected yet, so whoever is picked waits.
pub(crate) fn without_resources(
    part: &mut Part,
    placement: &Placement<'_>,
    bindings: &[Binding<'_>],
) {
    if bindings.is_empty() {
        return;
    }
    let name = format!("latest of {}", placement.name());
    let reason = HoldReason::Missing { kind: "resource snapshot", name };
    part.holds.push(Hold::of_rollout(reason));
    part.verdict = Some(Verdict::Held);
}

/// Which overrides apply cannot be told before all parts of a large selection are there.
pub(crate) fn incomplete(part: &mut Part, resources: &ResourceGroup<'_>) {
    let (found, expected) = (resources.parts.len(), resources.expected);
    let on = format!("parts of {}, of which {found} of {expected} exist", resources.master.name());
    part.holds.push(Hold::of_rollout(HoldReason::Depends { on }));
    part.verdict = Some(Verdict::Held);
}

fn verdict(report: &GroupReport, out_of_date: bool) -> Verdict {
    if report.moving + report.settling + report.gone > 0 {
        Verdict::Moving
    } else if report.failed > 0 {
        Verdict::Stopped
    } else if out_of_date {
        Verdict::Held
    } else {
        Verdict::Done
    }
}

fn readiness(groups: &Groups<'_>, binding: &Binding<'_>) -> Readiness {
    // In list order, which is by name.
    let found = groups.unready.binary_search_by(|(other, _)| other.name().cmp(binding.name()));
    found.map_or(Readiness::Ready, |at| groups.unready[at].1)
}

fn standing(binding: &Binding<'_>, readiness: Readiness) -> MemberState {
    match readiness {
        Readiness::Ready => MemberState::Done,
        _ if binding.has_failed() => MemberState::Failed,
        Readiness::At(_) => MemberState::Settling,
        Readiness::Unknown => MemberState::Moving,
    }
}

fn failed(binding: &Binding<'_>) -> HoldReason {
    let detail = binding.failure().map(|condition| {
        let word = |name| text(condition, name);
        format!("{} is False/{}: {}", word("type"), word("reason"), word("message"))
    });
    HoldReason::Failed { detail: detail.unwrap_or_else(|| binding.explanation()) }
}

impl Limit {
    /// What whoever waits for this budget is told, with the numbers.
    fn spent(self, groups: &Groups<'_>, picked: &Picked<'_, '_>) -> HoldReason {
        match self {
            // A budget of 0 lets no removal through, but one update in place.
            Self::Removal => {
                unavailable(groups, picked, groups.counts.max_unavailable, std::iter::empty())
            }
            Self::Update => {
                let changed = picked.roll.iter().map(|it| it.binding);
                let changed = changed.filter(|it| it.state == State::Bound && !it.has_failed());
                unavailable(groups, picked, groups.counts.update_floor(), changed)
            }
            Self::Surge => surge(groups, picked),
        }
    }
}

/// So many clusters are unavailable, or will be: removed and `changed` ones among them.
fn unavailable<'w>(
    groups: &Groups<'w>,
    picked: &Picked<'_, 'w>,
    allowed: u32,
    changed: impl Iterator<Item = Binding<'w>> + Clone,
) -> HoldReason {
    let taken = picked.remove.len() + changed.clone().count();
    let taken = u32::try_from(taken).unwrap_or(u32::MAX);
    let unready = groups.unready.iter().map(|(binding, _)| *binding);
    let by = unready.chain(groups.leaving.iter().copied());
    HoldReason::BudgetSpent {
        limit: "maxUnavailable",
        in_flight: groups.counts.missing().saturating_add(taken),
        ceiling: allowed.saturating_add(groups.counts.surplus()),
        by: named(by.chain(picked.remove.iter().copied()).chain(changed)),
    }
}

/// So many clusters carry the resources, or may come to.
fn surge(groups: &Groups<'_>, picked: &Picked<'_, '_>) -> HoldReason {
    let bound = picked.roll.iter().filter(|it| it.binding.state == State::Scheduled);
    let taken = u32::try_from(bound.clone().count()).unwrap_or(u32::MAX);
    let outgoing = groups.remove.iter().chain(&groups.leaving).copied();
    HoldReason::BudgetSpent {
        limit: "maxSurge",
        in_flight: groups.counts.can_be_ready.saturating_add(taken),
        ceiling: groups.counts.target.saturating_add(groups.counts.max_surge),
        by: named(outgoing.chain(bound.map(|it| it.binding))),
    }
}

fn named<'w>(bindings: impl Iterator<Item = Binding<'w>>) -> Vec<SmolStr> {
    let mut names: Vec<SmolStr> = Vec::new();
    for binding in bindings {
        if names.len() == NAMED {
            break;
        }
        if !names.iter().any(|name| name == binding.name()) {
            names.push(SmolStr::new(binding.name()));
        }
    }
    names
}
