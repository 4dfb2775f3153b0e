//! What a pass says: the decision's summary, groups, holds, the verdict and events.

pub(crate) mod series;
pub(crate) mod waiting;

use convoy_api::ObjectKey;
use convoy_api::skyhook::{PackageState, Stage, StatusWord};
use serde_json::{Map, Value, json};

use crate::dialect::skyhook::decide::Pass;
use crate::dialect::skyhook::decide::compartment::{Compartment, count};
use crate::dialect::skyhook::decide::member::word_text;
use crate::dialect::skyhook::read::state::stage_word;
use crate::hold::{Hold, HoldReason};
use crate::step::{BatchReport, Event, EventType, GroupReport, MemberState, Verdict};

/// The summary with the keys that vectors use.
pub(super) fn decision(pass: &Pass<'_, '_>, rolled_up: StatusWord) -> Value {
    let names = |indices: &[usize]| {
        let mut names: Vec<&str> =
            indices.iter().map(|index| pass.members[*index].node.name().as_str()).collect();
        names.sort_unstable();
        Value::Array(names.into_iter().map(Value::from).collect())
    };
    let (mut compartments, mut start_count, mut batch) = (Map::new(), Map::new(), Map::new());
    let (mut starts, mut stopped) = (Vec::new(), Vec::new());
    for compartment in &pass.compartments {
        let name = compartment.terms.name.as_str();
        // Not as a literal, which would copy the names once more.
        let mut report = Map::new();
        report.insert("members".to_owned(), names(&compartment.members));
        report.insert("ceiling".to_owned(), compartment.ceiling.into());
        if let Some(strategy) = &compartment.terms.strategy {
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
    let mut decision = Map::new();
    let mut put = |name: &str, value: Value| decision.insert(name.to_owned(), value);
    put("status", word_text(rolled_up).into());
    put("start", names(&starts));
    put("startCount", Value::Object(start_count));
    put("stopped", stopped.into());
    put("batch", Value::Object(batch));
    put("compartments", Value::Object(compartments));
    Value::Object(decision)
}

/// How far each compartment has come.
pub(super) fn groups(pass: &Pass<'_, '_>) -> Vec<GroupReport> {
    let report = |compartment: &Compartment| {
        let mut group = GroupReport::new(compartment.terms.name.as_str());
        for index in &compartment.members {
            group.count(state(pass, *index));
        }
        group.ceiling = Some(compartment.ceiling);
        group.batch = compartment.terms.strategy.map(|_| BatchReport {
            number: compartment.batch.current_batch,
            size: compartment.next_size(),
            consecutive_failures: compartment.batch.consecutive_failures,
            stopped: compartment.batch.should_stop,
        });
        group
    };
    pass.compartments.iter().map(report).collect()
}

/// Where a member stands after this pass.
fn state(pass: &Pass<'_, '_>, index: usize) -> MemberState {
    let member = &pass.members[index];
    if member.is_complete() {
        MemberState::Done
    } else if member.is_in_flight() || pass.is_started(index) {
        MemberState::Moving
    } else if member.word() == StatusWord::Erroring {
        MemberState::Failed
    } else {
        MemberState::Waiting
    }
}

/// One reason for every member that does not move, and one for the rollout if it stands still.
pub(super) fn holds(pass: &Pass<'_, '_>) -> Vec<Hold> {
    let mut holds = Vec::new();
    let whole = standing_still(pass);
    if let Some(reason) = whole.clone().filter(|_| !pass.complete) {
        holds.push(Hold::of_rollout(reason));
    }
    let no_room: Vec<HoldReason> =
        pass.compartments.iter().map(|compartment| compartment.no_room(&pass.members)).collect();
    for (index, member) in pass.members.iter().enumerate() {
        let reason = match state(pass, index) {
            MemberState::Done => None,
            MemberState::Moving => moving_hold(pass, index, whole.as_ref()),
            _ => Some(waiting_hold(pass, index, whole.as_ref(), &no_room)),
        };
        let Some(reason) = reason else { continue };
        let hold = Hold::of_member(member.node.name().clone(), reason);
        holds.push(match pass.compartment_of(index) {
            Some(compartment) => hold.in_group(compartment.terms.name.clone()),
            None => hold,
        });
    }
    holds
}

/// What keeps the rollout as a whole from moving.
fn standing_still(pass: &Pass<'_, '_>) -> Option<HoldReason> {
    if pass.hook.paused {
        return Some(HoldReason::Paused);
    }
    if pass.hook.disabled {
        return Some(HoldReason::Disabled);
    }
    let name = pass.hook.policy.clone();
    pass.policy_missing.then_some(HoldReason::Missing { kind: "DeploymentPolicy", name })
}

/// Why a member that holds a slot does not go on, where it does not.
fn moving_hold(
    pass: &Pass<'_, '_>,
    index: usize,
    whole: Option<&HoldReason>,
) -> Option<HoldReason> {
    let member = &pass.members[index];
    if let Some(work) = pass.work(index) {
        return work.hold.clone();
    }
    let at_work = member.seen.as_ref().is_some_and(|seen| seen.is_at_work());
    let stopped = pass.compartment_of(index).filter(|compartment| compartment.is_stopped());
    match (whole, member.obstacle.as_deref()) {
        _ if at_work => None, // its pods finish in any case
        (Some(reason), _) | (None, Some(reason)) => Some(reason.clone()),
        (None, None) => stopped.map(|compartment| compartment.no_room(&pass.members)),
    }
}

fn waiting_hold(
    pass: &Pass<'_, '_>,
    index: usize,
    whole: Option<&HoldReason>,
    no_room: &[HoldReason],
) -> HoldReason {
    let member = &pass.members[index];
    if let Some(reason) = member.obstacle.as_deref() {
        return reason.clone();
    }
    if let Some(reason) = whole {
        return reason.clone();
    }
    if let Some(failure) = member.assessed.failure.as_ref().filter(|_| member.retries_by_itself()) {
        return HoldReason::Failed { detail: failure.clone() };
    }
    no_room.get(member.compartment).cloned().unwrap_or(HoldReason::NoReason)
}

/// Where the rollout stands.
pub(super) fn verdict(pass: &Pass<'_, '_>, holds: &[Hold]) -> Verdict {
    if pass.complete && pass.config_due && pass.is_active() {
        return Verdict::Moving;
    }
    if pass.complete {
        return Verdict::Done;
    }
    if pass.hook.stands_still() {
        return Verdict::Paused;
    }
    let whole = standing_still(pass);
    let moves = (0..pass.members.len()).any(|index| {
        let acts = || pass.work(index).is_some_and(|work| !work.evictions.is_empty());
        let goes_on = || moving_hold(pass, index, whole.as_ref()).is_none();
        state(pass, index) == MemberState::Moving && (acts() || goes_on())
    });
    if moves {
        return Verdict::Moving;
    }
    let for_good = |reason: &HoldReason| {
        matches!(reason, HoldReason::FailureStop { .. } | HoldReason::Failed { .. })
    };
    if holds.iter().all(|hold| for_good(&hold.reason)) {
        return Verdict::Stopped;
    }
    Verdict::Held
}

/// What people watching the objects are told.
pub(super) fn events(pass: &Pass<'_, '_>, rolled_up: StatusWord) -> Vec<Event> {
    let skyhook = pass.hook.name();
    let on_skyhook = pass.hook.object.key();
    let mut events = Vec::new();
    let mut tell = |regarding: &ObjectKey, reason: &str, message: String| {
        let (regarding, reason) = (regarding.clone(), reason.to_owned());
        let (kind, reports) = (EventType::Normal, None);
        events.push(Event { regarding, kind, reason, message, reports });
    };
    for (index, member) in pass.members.iter().enumerate() {
        let (on_node, node) = (member.node.key(), member.node.name());
        if member.rebooted {
            let message = format!("detected reboot, resetting node [{node}] to be reapplied");
            tell(on_skyhook, "Reboot", message.clone());
            tell(on_node, "Reboot", message);
        }
        for (name, version, state) in member.seen.iter().flat_map(|seen| &seen.results) {
            tell(on_node, "Apply", result(skyhook, name, version, *state));
        }
        let came_from = [StatusWord::InProgress, StatusWord::Erroring, StatusWord::Waiting];
        if member.is_complete() && member.observed.is_some_and(|word| came_from.contains(&word)) {
            tell(on_node, "State", format!("Skyhook [{skyhook}] complete."));
        }
        let Some(work) = pass.work(index) else { continue };
        if !work.evictions.is_empty() {
            let package = &work.drained_for;
            let message =
                format!("draining node [{node}] package [{package}] from [skyhook:{skyhook}]");
            tell(on_node, "Interrupt", message);
        }
        for pod in &work.pods {
            let package = format!("{}:{}", pod.entry.name, pod.entry.version);
            if pod.entry.stage == Stage::Interrupt {
                let message = format!(
                    "Interrupting node [{node}] package [{package}] from [skyhook:{skyhook}]"
                );
                tell(on_skyhook, "Interrupt", message);
                continue;
            }
            let stage = stage_word(pod.entry.stage);
            let what = format!("Applying package [{package}]");
            tell(on_node, "Apply", format!("{what} from [skyhook:{skyhook}] stage [{stage}]"));
            tell(on_skyhook, "Apply", format!("{what} to node [{node}] stage [{stage}]"));
        }
    }
    let old = pass.published().unwrap_or("unknown");
    let new = word_text(rolled_up);
    if old != new {
        tell(on_skyhook, "State", format!("Skyhook transitioned [{old}] -> [{new}]"));
    }
    events
}

/// That a stage of a package ended.
pub(super) fn result(skyhook: &str, name: &str, version: &str, state: PackageState) -> String {
    let word = if state == PackageState::Complete { "complete" } else { "erroring" };
    format!("Package [{name}:{version}] state {word} on [skyhook:{skyhook}]")
}

/// How many members begin now.
pub(super) fn starting(pass: &Pass<'_, '_>) -> u32 {
    pass.compartments.iter().map(|compartment| count(compartment.starts.len())).sum()
}
