//! What is told about an update run: stages as groups, clusters as members, and why each waits.

use std::collections::BTreeMap;

use convoy_api::Object;
use serde_json::{Map, Value, json};

use crate::dialect::fleet::decide::staged::{Change, Pass};
use crate::dialect::fleet::names::{DIALECT, INITIALIZED, STARTED, SUCCEEDED};
use crate::dialect::fleet::read::run::{End, Node, Record, Stage};
use crate::hold::{Hold, HoldReason};
use crate::step::{Action, GroupReport, MemberState, Step, Verdict};

/// A run for which nothing is decided.
pub(crate) fn quiet(run: &Object) -> Step {
    let mut step = Step::new(DIALECT, run, Verdict::Done);
    step.decision = json!({"roll": [], "remove": []});
    step
}

/// A run that is over: its record stands, and nothing is written.
pub(crate) fn over(run: &Object, record: &Record) -> Step {
    let node = &record.node;
    let mut step = quiet(run);
    if !node.is_true(SUCCEEDED) {
        step.verdict = Verdict::Stopped;
        let failed = [SUCCEEDED, INITIALIZED].into_iter();
        let mut failed = failed.filter(|kind| node.status(kind) == Some("False"));
        let detail = failed.next().map_or("", |kind| node.message(kind)).to_owned();
        step.holds.push(Hold::of_rollout(HoldReason::Failed { detail }));
    }
    step
}

/// A run that goes on. `actions` are those that the pass comes to.
pub(crate) fn step(pass: &Pass<'_, '_>, actions: &[Action]) -> Step {
    let mut step = Step::new(DIALECT, pass.run, Verdict::Moving);
    step.decision = decision(pass);
    groups(pass, &mut step);
    step.verdict = verdict(pass, &step, actions);
    if let Some(wait) = &pass.wait {
        step.holds.push(Hold::of_rollout(wait.reason.clone()).until(wait.until));
    }
    step.wake_at = pass.wake_at;
    step
}

fn decision(pass: &Pass<'_, '_>) -> Value {
    let (mut roll, mut remove) = (Vec::new(), Vec::new());
    for change in &pass.changes {
        match change {
            Change::Updated { binding, .. } => roll.push(binding.name()),
            Change::Removed { binding, .. } => remove.push(binding.name()),
            _ => {}
        }
    }
    let mut decision = Map::new();
    decision.insert("roll".into(), json!(roll));
    decision.insert("remove".into(), json!(remove));
    if let Some(secs) = pass.requeue_secs {
        decision.insert("requeueAfterSeconds".into(), json!(secs));
    }
    decision.into()
}

fn verdict(pass: &Pass<'_, '_>, step: &Step, actions: &[Action]) -> Verdict {
    let moves = step.groups.iter().any(|group| group.moving + group.gone > 0);
    match pass.wait.as_ref().map(|wait| &wait.reason) {
        _ if pass.record.node.is_true(SUCCEEDED) => Verdict::Done,
        Some(HoldReason::Paused) if !moves => Verdict::Paused,
        Some(HoldReason::Failed { .. }) => Verdict::Stopped,
        Some(HoldReason::Depends { .. }) if !actions.is_empty() => Verdict::Moving,
        Some(_) => Verdict::Held,
        None if !moves && !pass.failing.is_empty() => Verdict::Stopped,
        None => Verdict::Moving,
    }
}

/// One group per stage, and one for the delete stage if it has clusters.
fn groups(pass: &Pass<'_, '_>, step: &mut Step) {
    let wait = pass.wait.as_ref().map(|wait| &wait.reason);
    let aborted = matches!(wait, Some(HoldReason::Failed { .. }));
    for (index, stage) in pass.record.stages.iter().enumerate() {
        let mut report = members(pass, index, stage, step);
        report.ceiling = (!aborted).then(|| pass.record.max_concurrency(index));
        step.groups.push(report);
    }
    if let Some(stage) = pass.record.deletion.as_ref().filter(|it| !it.clusters.is_empty()) {
        let report = members(pass, pass.record.stages.len(), stage, step);
        step.groups.push(report);
    }
}

/// Counts every cluster of a stage once, and holds those that wait or fail.
fn members(pass: &Pass<'_, '_>, index: usize, stage: &Stage, step: &mut Step) -> GroupReport {
    let mut report = GroupReport::new(stage.name());
    let failing: BTreeMap<&str, &str> =
        pass.failing.iter().map(|(name, detail)| (name.as_str(), detail.as_str())).collect();
    for cluster in &stage.clusters {
        let name = cluster.cluster_name();
        let failing = failing.get(name);
        let state = standing(cluster, failing.is_some());
        report.count_member(state, name);
        if state == MemberState::Failed {
            let detail = failing.copied().unwrap_or_else(|| cluster.message(SUCCEEDED));
            let reason = HoldReason::Failed { detail: detail.to_owned() };
            step.holds.push(Hold::of_member(name, reason).in_group(stage.name()));
        }
    }
    let until = pass.wait.as_ref().and_then(|wait| wait.until);
    for (at, reason) in pass.holds.get(&index).into_iter().flatten() {
        let name = stage.clusters[*at].cluster_name();
        let hold = Hold::of_member(name, reason.clone()).in_group(stage.name());
        step.holds.push(hold.until(until));
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
