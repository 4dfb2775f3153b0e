//! Where every binding of a placement stands, and why it does not move.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::dialect::fleet::decide::rollout::precondition::SharedCluster;
use crate::dialect::fleet::decide::rollout::{Roll, Rollout};
use crate::dialect::fleet::read::binding::{Binding, Readiness};
use crate::dialect::fleet::read::placement::Placement;
use crate::dialect::fleet::report::PartialStep;
use crate::hold::{Hold, HoldReason};
use crate::step::{GroupReport, MemberState, Verdict};

/// The one group that a rolling update has.
const GROUP: &str = "bindings";

/// How long upstream waits for the old binding of a cluster that was picked again.
const CLEAN_UP_SECS: i64 = 5;

/// What is told about the rolling update of a placement.
pub(crate) fn partial(
    rollout: &Rollout<'_>,
    placement: &Placement<'_>,
    now: Timestamp,
) -> PartialStep {
    let mut partial = PartialStep::default();
    partial.decision.insert("roll".into(), json!([]));
    partial.decision.insert("remove".into(), json!([]));
    partial.decision.insert("blocked".into(), json!([]));
    match rollout {
        Rollout::ApplyStrategy(_) => requeue(&mut partial, 0),
        Rollout::SharedCluster(shared) => shared_cluster(&mut partial, shared),
        Rollout::NotOurs | Rollout::NoResources { bindings: 0 } => {}
        Rollout::NoResources { .. } => {
            let name = format!("latest of {}", placement.name());
            held(&mut partial, HoldReason::Missing { kind: "resource snapshot", name });
        }
        Rollout::Incomplete(resources) => {
            let (found, expected) = (resources.parts.len(), resources.expected);
            let name = resources.master.name();
            let on = format!("parts of {name}, of which {found} of {expected} exist");
            held(&mut partial, HoldReason::Depends { on });
        }
        Rollout::UnknownCluster(cluster) => {
            let name = cluster.to_string();
            held(&mut partial, HoldReason::Missing { kind: "MemberCluster", name });
        }
        Rollout::Roll(roll) => rolled(&mut partial, roll, now),
    }
    partial
}

/// The placement as a whole waits.
fn held(partial: &mut PartialStep, reason: HoldReason) {
    partial.holds.push(Hold::of_rollout(reason));
    partial.verdict = Some(Verdict::Held);
}

fn rolled(partial: &mut PartialStep, roll: &Roll<'_>, now: Timestamp) {
    let changed = names(roll.changed().map(|(change, _)| &change.binding));
    partial.decision.insert("roll".into(), changed);
    partial.decision.insert("remove".into(), names(roll.removed().map(|(binding, _)| binding)));
    partial.decision.insert("blocked".into(), names(roll.blocked()));
    if let Some(secs) = roll.requeue_secs {
        requeue(partial, secs);
    }
    partial.wake_at = roll.wake_at();
    let report = members(partial, roll, now);
    partial.verdict = Some(verdict(&report, roll.groups.is_out_of_date()));
    partial.groups.push(report);
}

/// Counts every binding once, and holds those that wait.
fn members(partial: &mut PartialStep, roll: &Roll<'_>, now: Timestamp) -> GroupReport {
    let mut report = GroupReport::new(GROUP);
    for (change, _) in roll.changed() {
        report.count_member(MemberState::Moving, change.binding.name());
    }
    let gone = roll.removed().count() + roll.groups.leaving.len();
    (0..gone).for_each(|_| report.count(MemberState::Gone));
    let waiting = [&roll.removals, &roll.updates, &roll.binds];
    for (member, reason) in waiting.into_iter().flat_map(|admission| &admission.holds) {
        report.count(MemberState::Waiting);
        partial.holds.push(Hold::of_member(member.name, reason.clone()).in_group(GROUP));
    }
    for binding in &roll.groups.current {
        let readiness = readiness(roll, binding);
        let starting = starting_until(roll, binding).filter(|end| *end > now);
        let state = standing(binding, readiness, starting.is_some());
        report.count_member(state, binding.name());
        let until = if let Readiness::At(at) = readiness { Some(at) } else { None };
        let (reason, until) = match state {
            MemberState::Done => continue,
            MemberState::Failed => (HoldReason::Failed { detail: binding.failure_message() }, None),
            MemberState::Settling => {
                let for_secs = roll.rolling.unavailable_period_secs;
                (HoldReason::Settling { for_secs }, until)
            }
            _ => (HoldReason::NotAvailable { detail: binding.explanation() }, starting),
        };
        partial.wake_at = partial.wake_at.into_iter().chain(starting).min();
        partial.holds.push(Hold::of_member(binding.name(), reason).in_group(GROUP).until(until));
    }
    report
}

/// A cluster with two bindings: wait for the old one to be gone, or say that someone has to look.
fn shared_cluster(partial: &mut PartialStep, shared: &SharedCluster<'_>) {
    match shared {
        SharedCluster::Wait { binding, behind } => {
            let reason = HoldReason::Depends { on: format!("deletion of binding {behind}") };
            partial.holds.push(Hold::of_member(*binding, reason).in_group(GROUP));
            partial.verdict = Some(Verdict::Held);
            requeue(partial, CLEAN_UP_SECS);
        }
        SharedCluster::Error { detail } => {
            let reason = HoldReason::Stalled { detail: detail.clone() };
            partial.holds.push(Hold::of_rollout(reason));
            partial.verdict = Some(Verdict::Stopped);
        }
    }
}

/// When upstream's controller would look again. Here events and [`PartialStep::wake_at`] do that.
fn requeue(partial: &mut PartialStep, secs: i64) {
    partial.decision.insert("requeueAfterSeconds".into(), json!(secs));
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

fn readiness(roll: &Roll<'_>, binding: &Binding<'_>) -> Readiness {
    let unready = &roll.groups.unready;
    // In list order, which is by name.
    let found = unready.binary_search_by(|(other, _)| other.name().cmp(binding.name()));
    found.map_or(Readiness::Ready, |at| unready[at].1)
}

/// Until when what a binding placed counts as starting. Pods take a moment: for the decision they
/// are down at once, as upstream has it, but nobody has to act on that yet.
fn starting_until(roll: &Roll<'_>, binding: &Binding<'_>) -> Option<Timestamp> {
    let period = SignedDuration::from_secs(roll.rolling.unavailable_period_secs);
    binding.may_become_available_until(period)
}

fn standing(binding: &Binding<'_>, readiness: Readiness, is_starting: bool) -> MemberState {
    match readiness {
        Readiness::Ready => MemberState::Done,
        _ if binding.has_failed() && !is_starting => MemberState::Failed,
        Readiness::At(_) => MemberState::Settling,
        Readiness::Unknown => MemberState::Moving,
    }
}

fn names<'b, 'w: 'b>(bindings: impl Iterator<Item = &'b Binding<'w>>) -> Value {
    bindings.map(|binding| Value::from(binding.name())).collect()
}
