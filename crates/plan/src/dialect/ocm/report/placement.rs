//! A decision about a placement as a step.

use std::collections::BTreeSet;

use convoy_api::Object;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::seconds_until;
use crate::count;
use crate::dialect::ocm::decide::group::Group;
use crate::dialect::ocm::decide::group_title;
use crate::dialect::ocm::decide::placement::{Decision, Scheduling};
use crate::dialect::ocm::decide::slice::Slice;
use crate::dialect::ocm::names::DIALECT;
use crate::dialect::ocm::read::decisions::Decisions;
use crate::hold::{Hold, HoldReason};
use crate::step::{Action, Event, GroupReport, MemberState, Step, Verdict};

/// The step of a placement, from what was decided and what is written.
pub(crate) fn step(
    placement: &Object,
    decision: &Decision<'_>,
    (actions, events): (Vec<Action>, Vec<Event>),
    status: Option<Value>,
    now: Timestamp,
) -> Step {
    let moving = !actions.is_empty() || status.is_some();
    let mut step = Step::new(DIALECT, placement, verdict(decision, moving));
    step.actions = actions;
    step.events = events;
    step.status = status;
    step.wake_at = decision.schedule.wake_at;
    let reported = decision.reported(placement);
    let requeue_at = decision.schedule.requeue_at;
    step.decision = summary(&reported.groups, &reported.slices, requeue_at, now);
    step.groups = reports(&reported.groups, &decision.current);
    let not_selected = decision.schedule.not_selected.iter();
    step.holds = not_selected.map(|(name, why)| Hold::of_member(*name, why.clone())).collect();
    step.holds.extend(hold(decision).map(Hold::of_rollout));
    step
}

fn verdict(decision: &Decision<'_>, moving: bool) -> Verdict {
    match decision.scheduling {
        Scheduling::Deleting => Verdict::Done,
        Scheduling::Disabled => Verdict::Paused,
        Scheduling::Misconfigured(_) => Verdict::Invalid,
        Scheduling::Failed => Verdict::Stopped,
        Scheduling::Scheduled if moving => Verdict::Moving,
        Scheduling::Scheduled if is_satisfied(decision) => Verdict::Done,
        Scheduling::Behind(_) | Scheduling::Scheduled => Verdict::Held,
    }
}

fn is_satisfied(decision: &Decision<'_>) -> bool {
    decision.satisfaction.as_ref().is_some_and(|satisfaction| satisfaction.satisfied)
}

/// Why the placement as a whole waits, if it does.
fn hold(decision: &Decision<'_>) -> Option<HoldReason> {
    let message = || {
        let satisfaction = decision.satisfaction.as_ref();
        satisfaction.map(|satisfaction| satisfaction.message.clone()).unwrap_or_default()
    };
    match &decision.scheduling {
        Scheduling::Deleting => None,
        Scheduling::Disabled => Some(HoldReason::Disabled),
        Scheduling::Behind(first) => {
            let (namespace, name) = (first.namespace(), first.name());
            let on = format!("Placement {namespace}/{name}, which leaves a cluster that both use");
            Some(HoldReason::Depends { on })
        }
        Scheduling::Misconfigured(wrong) => {
            let fields = wrong.iter().map(|wrong| wrong.field.clone()).collect();
            Some(HoldReason::Invalid { fields })
        }
        Scheduling::Failed => Some(HoldReason::Stalled { detail: message() }),
        Scheduling::Scheduled if is_satisfied(decision) => None,
        Scheduling::Scheduled => Some(HoldReason::NotSelected { detail: message() }),
    }
}

/// The keys that the vectors know.
fn summary(
    groups: &[Group<'_>],
    slices: &[Slice<'_>],
    requeue_at: Option<Timestamp>,
    now: Timestamp,
) -> Value {
    let mut entries = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let decisions = slices.iter().filter(|slice| slice.group == index).count();
        entries.push(json!({
            "index": index,
            "name": group.name,
            "clusters": group.clusters,
            "count": group.clusters.len(),
            "decisions": decisions,
        }));
    }
    let selected: Vec<&str> = groups.iter().flat_map(|group| group.clusters.clone()).collect();
    json!({
        "selected": selected,
        "groups": entries,
        "requeueAfterSeconds": seconds_until(requeue_at, now),
    })
}

/// Groups as reports: decided clusters are done, newly selected ones move, and those that
/// are no longer selected are on their way out.
fn reports(groups: &[Group<'_>], current: &Decisions<'_>) -> Vec<GroupReport> {
    let mut selected = BTreeSet::new();
    let mut reports = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let mut report = GroupReport::new(group_title(i64::from(count(index)), &group.name));
        for cluster in &group.clusters {
            selected.insert(*cluster);
            let decided = current.holds(cluster);
            let state = if decided { MemberState::Done } else { MemberState::Moving };
            report.count_member(state, *cluster);
        }
        reports.push(report);
    }
    let leaving = current.clusters().filter(|cluster| !selected.contains(cluster)).count();
    if leaving > 0 {
        let mut report = GroupReport::new("no longer selected");
        report.total = count(leaving);
        report.gone = count(leaving);
        reports.push(report);
    }
    reports
}
