//! What is reported about a decision: its summary, groups, holds and verdict.

pub(crate) mod events;
pub(crate) mod series;

use convoy_api::skyhook::StatusWord;
use serde_json::{Map, Value, json};

use crate::count;
use crate::dialect::skyhook::decide::Decision;
use crate::dialect::skyhook::decide::compartment::Compartment;
use crate::dialect::skyhook::read::node::word_text;
use crate::dialect::skyhook::status::conditions::NOTHING_SELECTED;
use crate::hold::{Hold, HoldReason};
use crate::step::{BatchReport, GroupReport, MemberState, Verdict};

/// The summary with the keys that vectors use.
pub(crate) fn summary(decision: &Decision<'_, '_>, rolled_up: StatusWord) -> Value {
    let names = |indices: &[usize]| {
        let mut names: Vec<&str> =
            indices.iter().map(|index| decision.members[*index].node.name().as_str()).collect();
        names.sort_unstable();
        Value::Array(names.into_iter().map(Value::from).collect())
    };
    let (mut compartments, mut start_count, mut batch) = (Map::new(), Map::new(), Map::new());
    let (mut starts, mut stopped) = (Vec::new(), Vec::new());
    for compartment in &decision.compartments {
        let name = compartment.spec.name.as_str();
        // Not as a literal, which would copy the names once more.
        let mut report = Map::new();
        report.insert("members".to_owned(), names(&compartment.members));
        report.insert("ceiling".to_owned(), compartment.ceiling.into());
        if let Some(strategy) = &compartment.spec.strategy {
            report.insert("strategy".to_owned(), strategy.word().into());
            let state = &compartment.batch;
            batch.insert(
                name.to_owned(),
                json!({
                    "currentBatch": state.current_batch,
                    "consecutiveFailures": state.consecutive_failures,
                    "shouldStop": state.should_stop,
                    "nextBatchSize": compartment.next_size(),
                }),
            );
        }
        compartments.insert(name.to_owned(), Value::Object(report));
        start_count.insert(name.to_owned(), json!(compartment.starts.len()));
        starts.extend_from_slice(&compartment.starts);
        if compartment.is_stopped() {
            stopped.push(name);
        }
    }
    stopped.sort_unstable();
    let mut summary = Map::new();
    let mut put = |name: &str, value: Value| summary.insert(name.to_owned(), value);
    put("status", word_text(rolled_up).into());
    put("start", names(&starts));
    put("startCount", Value::Object(start_count));
    put("stopped", stopped.into());
    put("batch", Value::Object(batch));
    put("compartments", Value::Object(compartments));
    Value::Object(summary)
}

/// How far each compartment has come.
pub(crate) fn groups(decision: &Decision<'_, '_>) -> Vec<GroupReport> {
    let report = |compartment: &Compartment| {
        let mut group = GroupReport::new(compartment.spec.name.as_str());
        for index in &compartment.members {
            group.count_member(
                state(decision, *index),
                decision.members[*index].node.name().clone(),
            );
        }
        group.ceiling = Some(compartment.ceiling);
        group.batch = compartment.spec.strategy.map(|_| BatchReport {
            number: compartment.batch.current_batch,
            size: compartment.next_size(),
            consecutive_failures: compartment.batch.consecutive_failures,
            stopped: compartment.batch.should_stop,
        });
        group
    };
    decision.compartments.iter().map(report).collect()
}

/// Where a member stands after this decision.
fn state(decision: &Decision<'_, '_>, index: usize) -> MemberState {
    let member = &decision.members[index];
    if member.is_complete() {
        MemberState::Done
    } else if member.is_in_flight() || decision.is_started(index) {
        MemberState::Moving
    } else if member.word() == StatusWord::Erroring {
        MemberState::Failed
    } else {
        MemberState::Waiting
    }
}

/// Why the Skyhook and its nodes do not move. Takes the reasons out of the decision: there may
/// be as many as nodes.
pub(crate) fn holds(decision: &mut Decision<'_, '_>) -> Vec<Hold> {
    let mut holds = Vec::new();
    if decision.members.is_empty() {
        let detail = NOTHING_SELECTED.to_owned();
        holds.push(Hold::of_rollout(HoldReason::NotSelected { detail }));
    }
    if !decision.complete {
        holds.extend(decision.standstills().next().map(Hold::of_rollout));
    }
    for (index, reason) in std::mem::take(&mut decision.holds).into_iter().enumerate() {
        let Some(reason) = reason else { continue };
        let hold = Hold::of_member(decision.members[index].node.name().clone(), reason);
        holds.push(match decision.compartment_of(index) {
            Some(compartment) => hold.in_group(compartment.spec.name.clone()),
            None => hold,
        });
    }
    holds
}

/// Where the rollout stands.
pub(crate) fn verdict(decision: &Decision<'_, '_>) -> Verdict {
    if decision.complete && decision.config_due && decision.is_active() {
        return Verdict::Moving;
    }
    if decision.complete {
        return if decision.members.is_empty() { Verdict::Held } else { Verdict::Done };
    }
    if decision.hook.stands_still() {
        return Verdict::Paused;
    }
    let moves = |(index, hold): (usize, &Option<HoldReason>)| {
        let evicts = || decision.plan(index).is_some_and(|plan| !plan.evictions.is_empty());
        state(decision, index) == MemberState::Moving && (hold.is_none() || evicts())
    };
    if decision.holds.iter().enumerate().any(moves) {
        return Verdict::Moving;
    }
    let for_good = |reason: &HoldReason| {
        matches!(reason, HoldReason::FailureStop { .. } | HoldReason::Failed { .. })
    };
    let stopped = decision.holds.iter().flatten().all(for_good);
    if stopped && decision.standstills().next().is_none() {
        return Verdict::Stopped;
    }
    Verdict::Held
}

/// How many nodes start now.
pub(crate) fn starting(decision: &Decision<'_, '_>) -> u32 {
    decision.compartments.iter().map(|compartment| count(compartment.starts.len())).sum()
}
