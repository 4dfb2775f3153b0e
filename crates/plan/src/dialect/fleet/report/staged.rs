//! A pass as a step: stages as groups, clusters as members, and why each waits.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, json};
use smol_str::SmolStr;

use crate::dialect::fleet::decide::staged::{Pass, rollout_hold, stages};
use crate::dialect::fleet::names::DIALECT;
use crate::dialect::fleet::read::run::{End, Node, STARTED, SUCCEEDED, Stage};
use crate::hold::{Hold, HoldReason};
use crate::step::{GroupReport, MemberState, Step, Verdict};

/// How many names a hold gives for whoever takes its room.
const NAMED: usize = 3;

/// A run that is over: its record stands, and nothing is written.
pub(crate) fn over(pass: &Pass<'_, '_>) -> Step {
    let node = &pass.record.node;
    let verdict = if node.is_true(SUCCEEDED) { Verdict::Done } else { Verdict::Stopped };
    let mut step = Step::new(DIALECT, pass.run, verdict);
    step.decision = json!({"roll": [], "remove": []});
    if verdict == Verdict::Stopped {
        let failed = [SUCCEEDED, crate::dialect::fleet::read::run::INITIALIZED].into_iter();
        let mut failed = failed.filter(|kind| node.status(kind) == Some("False"));
        let detail = failed.next().map_or("", |kind| node.message(kind)).to_owned();
        step.holds.push(rollout_hold(HoldReason::Failed { detail }, None));
    }
    step
}

pub(crate) fn step(pass: Pass<'_, '_>) -> Step {
    let mut step = Step::new(DIALECT, pass.run, Verdict::Moving);
    let mut decision = Map::new();
    decision.insert("roll".into(), json!(pass.roll));
    decision.insert("remove".into(), json!(pass.remove));
    if let Some(secs) = pass.requeue_secs {
        decision.insert("requeueAfterSeconds".into(), json!(secs));
    }
    step.decision = decision.into();
    groups(&pass, &mut step);
    step.verdict = verdict(&pass, &step);
    if let Some((reason, until)) = pass.waits {
        step.holds.push(rollout_hold(reason, until));
    }
    let status = pass.record.write();
    let unchanged = status == *pass.run.status()
        || pass.run.status().is_null() && status.as_object().is_some_and(Map::is_empty);
    step.status = (!unchanged).then_some(status);
    step.actions = pass.actions;
    step.wake_at = pass.wake_at;
    step
}

fn verdict(pass: &Pass<'_, '_>, step: &Step) -> Verdict {
    let moves = step.groups.iter().any(|group| group.moving + group.gone > 0);
    match &pass.waits {
        _ if pass.record.node.is_true(SUCCEEDED) => Verdict::Done,
        Some((HoldReason::Paused, _)) if !moves => Verdict::Paused,
        Some((HoldReason::Failed { .. }, _)) => Verdict::Stopped,
        Some((HoldReason::Depends { .. }, _)) if !pass.actions.is_empty() => Verdict::Moving,
        Some(_) => Verdict::Held,
        None if !moves && !pass.failing.is_empty() => Verdict::Stopped,
        None => Verdict::Moving,
    }
}

/// One group per stage. Clusters wait for room in their stage, for its tasks, or for the
/// stages before it.
fn groups(pass: &Pass<'_, '_>, step: &mut Step) {
    let aborted = matches!(pass.waits, Some((HoldReason::Failed { .. }, _)));
    let mut behind: Option<(String, usize)> = None;
    for (index, stage) in pass.record.stages.iter().enumerate() {
        let limit = stages::limit(&pass.config(index), stage.clusters.len());
        let ceiling = u32::try_from(limit).unwrap_or(u32::MAX);
        let reason = match (&pass.waits, &behind) {
            (Some((reason, until)), _) => (reason.clone(), *until),
            (None, Some((name, unfinished))) => (order(name, *unfinished), None),
            (None, None) => (room(stage, ceiling), None),
        };
        let mut report = count(pass, stage, &reason, step);
        report.ceiling = (!aborted).then_some(ceiling);
        step.groups.push(report);
        if behind.is_none() && !stage.node.is_true(SUCCEEDED) {
            behind = Some((stage.name().to_owned(), stage.unfinished()));
        }
    }
    let Some(stage) = pass.record.deletion.as_ref().filter(|it| !it.clusters.is_empty()) else {
        return;
    };
    let reason = match (&pass.waits, behind) {
        (Some((reason, until)), _) => (reason.clone(), *until),
        (None, Some((name, unfinished))) => (order(&name, unfinished), None),
        (None, None) => (HoldReason::Depends { on: "the next pass".to_owned() }, None),
    };
    let report = count(pass, stage, &reason, step);
    step.groups.push(report);
}

fn order(behind: &str, unfinished: usize) -> HoldReason {
    let unfinished = u32::try_from(unfinished).unwrap_or(u32::MAX);
    HoldReason::GroupOrder { behind: format!("stage {behind}"), unfinished }
}

fn room(stage: &Stage, ceiling: u32) -> HoldReason {
    let busy = stage
        .clusters
        .iter()
        .filter(|cluster| crate::dialect::fleet::read::run::is_under_way(cluster));
    let by = busy.clone().take(NAMED).map(|cluster| SmolStr::new(cluster.text("clusterName")));
    HoldReason::BudgetSpent {
        limit: "maxConcurrency",
        in_flight: u32::try_from(busy.clone().count()).unwrap_or(u32::MAX),
        ceiling,
        by: by.collect(),
    }
}

fn count(
    pass: &Pass<'_, '_>,
    stage: &Stage,
    (waiting, until): &(HoldReason, Option<Timestamp>),
    step: &mut Step,
) -> GroupReport {
    let mut report = GroupReport::new(stage.name());
    let failing: BTreeMap<&str, &str> =
        pass.failing.iter().map(|(name, detail)| (name.as_str(), detail.as_str())).collect();
    for cluster in &stage.clusters {
        let name = cluster.text("clusterName");
        let failing = failing.get(name);
        let state = standing(cluster, failing.is_some());
        report.count(state);
        let hold = match (state, failing) {
            (MemberState::Waiting, _) => Some((waiting.clone(), *until)),
            (MemberState::Failed, Some(detail)) => {
                Some((HoldReason::Failed { detail: (*detail).to_owned() }, None))
            }
            (MemberState::Failed, None) => {
                let detail = cluster.message(SUCCEEDED).to_owned();
                Some((HoldReason::Failed { detail }, None))
            }
            _ => None,
        };
        step.holds.extend(hold.map(|(reason, until)| {
            Hold::of_member(name, reason).in_group(stage.name()).until(until)
        }));
    }
    report
}

fn standing(cluster: &Node, failing: bool) -> MemberState {
    match cluster.end() {
        Some(End::Succeeded) => MemberState::Done,
        Some(End::Failed) => MemberState::Failed,
        None if failing => MemberState::Failed,
        None if cluster.is_true(STARTED) => MemberState::Moving,
        None => MemberState::Waiting,
    }
}
