//! A placement: which clusters it selects, in which groups, and what is written about it.

use std::collections::BTreeSet;

use convoy_api::Object;
use convoy_api::ocm::names::{REGROUP, SCHEDULING_DISABLED};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::dialect::ocm::decide::group::{Group, count};
use crate::dialect::ocm::decide::schedule::{Schedule, schedule};
use crate::dialect::ocm::read::decisions::Layout;
use crate::dialect::ocm::read::placement::{Misconfiguration, Policy};
use crate::dialect::ocm::seconds_until;
use crate::dialect::ocm::status::placement::Satisfaction;
use crate::dialect::ocm::write::decision::Writer;
use crate::dialect::ocm::write::slice::{Slice, slices};
use crate::hold::{Hold, HoldReason};
use crate::snapshot::Snapshot;
use crate::step::{GroupReport, MemberState, Step, Verdict};

/// What a placement selects, grouped.
#[derive(Clone, Debug)]
pub(crate) struct Selection<'w> {
    pub(crate) schedule: Schedule<'w>,
    pub(crate) groups: Vec<Group<'w>>,
}

/// Whether the scheduler was told to leave a placement alone.
pub(crate) fn is_disabled(placement: &Object) -> bool {
    placement.annotation(SCHEDULING_DISABLED) == Some("true")
}

/// Schedules and groups a placement as of `now`.
pub(crate) fn select<'w>(
    snapshot: &Snapshot<'w>,
    placement: &Object,
    policy: &Policy,
    present: &Layout<'_>,
    now: Timestamp,
) -> Selection<'w> {
    let schedule = schedule(snapshot, placement, policy, present, now);
    let compact = placement.annotation(REGROUP) == Some("compact");
    let groups = crate::dialect::ocm::decide::group::groups(
        &policy.grouping,
        &schedule.selected,
        present,
        compact,
    );
    Selection { schedule, groups }
}

/// What happens next with one placement.
pub(crate) fn step(snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
    let placement = snapshot.rollout();
    let present = Layout::read(snapshot, placement);
    if placement.is_deleting() {
        // Its decisions go with it: they name it as their owner.
        let mut step = Step::new("ocm", placement, Verdict::Done);
        step.decision = decision(&[], &[], None, now);
        return step;
    }
    if is_disabled(placement) {
        let mut step = untouched(placement, &present, Verdict::Paused, now);
        step.holds.push(Hold::of_rollout(HoldReason::Disabled));
        return step;
    }
    match Policy::read(placement) {
        Ok(policy) => {
            let selection = select(snapshot, placement, &policy, &present, now);
            if selection.schedule.eligibility.error.is_some() {
                failed(snapshot, &present, &policy.grouping.hash, &selection.schedule, now)
            } else if let Some(first) = crate::dialect::ocm::decide::balance::goes_first(
                snapshot,
                &policy,
                &present,
                &selection.schedule,
                now,
            ) {
                let mut step = untouched(placement, &present, Verdict::Held, now);
                let on = format!("Placement {}/{}", first.namespace(), first.name());
                let on = format!("{on}, which leaves a cluster that both use");
                step.holds.push(Hold::of_rollout(HoldReason::Depends { on }));
                step
            } else {
                scheduled(snapshot, &present, &policy, &selection, now)
            }
        }
        Err(wrong) => misconfigured(snapshot, &present, &wrong, now),
    }
}

fn scheduled(
    snapshot: &Snapshot<'_>,
    present: &Layout<'_>,
    policy: &Policy,
    selection: &Selection<'_>,
    now: Timestamp,
) -> Step {
    let placement = snapshot.rollout();
    let Selection { schedule, groups } = selection;
    let slices = slices(placement.name(), groups);
    let mut writer = Writer::new(placement, &policy.grouping.hash, schedule);
    writer.write(snapshot, present, &slices);
    let satisfaction = Satisfaction::of(placement, schedule);
    let status = crate::dialect::ocm::status::placement::status(
        placement,
        Some((groups, &slices)),
        &satisfaction,
        now,
    );
    let moving = !writer.actions.is_empty() || status.is_some();
    let verdict = match (moving, satisfaction.satisfied) {
        (true, _) => Verdict::Moving,
        (false, true) => Verdict::Done,
        (false, false) => Verdict::Held,
    };
    let mut step = Step::new("ocm", placement, verdict);
    step.decision = decision(groups, &slices, schedule.requeue_at, now);
    step.groups = reports(groups, present);
    step.actions = writer.actions;
    step.events = writer.events;
    let passed_over = schedule.passed_over.iter();
    step.holds = passed_over.map(|(name, why)| Hold::of_member(*name, why.clone())).collect();
    if !satisfaction.satisfied {
        let detail = satisfaction.message.clone();
        step.holds.push(Hold::of_rollout(HoldReason::NotSelected { detail }));
    }
    step.status = status;
    step.wake_at = schedule.wake_at;
    step
}

/// A set cannot be read: the decisions stay as they are until it can.
fn failed(
    snapshot: &Snapshot<'_>,
    present: &Layout<'_>,
    hash: &str,
    schedule: &Schedule<'_>,
    now: Timestamp,
) -> Step {
    let satisfaction = Satisfaction::of(snapshot.rollout(), schedule);
    let mut step = kept(snapshot, present, hash, &satisfaction, Verdict::Stopped, now);
    let detail = satisfaction.message.clone();
    step.holds.push(Hold::of_rollout(HoldReason::Stalled { detail }));
    step
}

/// The placement itself cannot be read: the same, and it says which field is at fault.
fn misconfigured(
    snapshot: &Snapshot<'_>,
    present: &Layout<'_>,
    wrong: &[Misconfiguration],
    now: Timestamp,
) -> Step {
    let unknown = || Misconfiguration { plugin: "", field: String::new(), message: String::new() };
    let first = wrong.first().cloned().unwrap_or_else(unknown);
    let satisfaction = Satisfaction::misconfigured(&first);
    let mut step = kept(snapshot, present, "", &satisfaction, Verdict::Invalid, now);
    let fields = wrong.iter().map(|wrong| wrong.field.clone()).collect();
    step.holds.push(Hold::of_rollout(HoldReason::Invalid { fields }));
    step
}

/// Leaves the decisions as they are; where there are none yet, one empty decision is written,
/// so that whoever reads them finds "nothing" instead of "not yet".
fn kept(
    snapshot: &Snapshot<'_>,
    present: &Layout<'_>,
    hash: &str,
    satisfaction: &Satisfaction,
    verdict: Verdict,
    now: Timestamp,
) -> Step {
    let placement = snapshot.rollout();
    let mut step = untouched(placement, present, verdict, now);
    if present.decisions.is_empty() {
        let nothing = [Group { name: "".into(), clusters: Vec::new() }];
        let slices = slices(placement.name(), &nothing);
        let schedule = Schedule::default();
        let mut writer = Writer::new(placement, hash, &schedule);
        writer.write(snapshot, present, &slices);
        step.actions = writer.actions;
        step.events = writer.events;
        step.status = crate::dialect::ocm::status::placement::status(
            placement,
            Some((&nothing, &slices)),
            satisfaction,
            now,
        );
    } else {
        step.status =
            crate::dialect::ocm::status::placement::status(placement, None, satisfaction, now);
    }
    step
}

/// A step that reports the present decisions and changes none.
fn untouched(placement: &Object, present: &Layout<'_>, verdict: Verdict, now: Timestamp) -> Step {
    let mut step = Step::new("ocm", placement, verdict);
    let groups: Vec<Group<'_>> = present
        .groups
        .iter()
        .map(|group| Group { name: group.name.into(), clusters: group.clusters.clone() })
        .collect();
    step.decision = decision(&groups, &slices(placement.name(), &groups), None, now);
    step.groups = reports(&groups, present);
    step
}

/// The keys that the vectors know.
fn decision(
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
fn reports(groups: &[Group<'_>], present: &Layout<'_>) -> Vec<GroupReport> {
    let mut selected = BTreeSet::new();
    let mut reports = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let mut report = GroupReport::new(crate::dialect::ocm::group_title(index, &group.name));
        for cluster in &group.clusters {
            selected.insert(*cluster);
            let decided = present.holds(cluster);
            report.count(if decided { MemberState::Done } else { MemberState::Moving });
        }
        reports.push(report);
    }
    let leaving = present.clusters().filter(|cluster| !selected.contains(cluster)).count();
    if leaving > 0 {
        let mut report = GroupReport::new("no longer selected");
        report.total = count(leaving);
        report.gone = count(leaving);
        reports.push(report);
    }
    reports
}
