//! A decision about the life of one NodeClaim, or the end of a Node without one, as a [`Step`].

use jiff::Timestamp;
use serde_json::json;

use crate::dialect::karpenter::decide::lifecycle::{self, Stage};
use crate::dialect::karpenter::names::{KWOK_GROUP, POD_DISRUPTION_BUDGET};
use crate::dialect::karpenter::read::lifecycle::Claim;
use crate::dialect::karpenter::read::pod::Pod;
use crate::dialect::karpenter::read::{Facts, member_of, node_alone};
use crate::dialect::karpenter::write::drain::Drain;
use crate::dialect::karpenter::write::follow;
use crate::dialect::karpenter::write::lifecycle::write;
use crate::dialect::karpenter::write::terminate::{self, Leaving};
use crate::dialect::karpenter::write::writes::Writes;
use crate::hold::{Hold, HoldReason};
use crate::pod_budget::PodBudgets;
use crate::snapshot::Snapshot;
use crate::step::{Step, Verdict};

pub(crate) fn step(dialect: &'static str, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
    let claim = Claim::read(snapshot);
    let mut step = Step::new(dialect, claim.object, Verdict::Done);
    let stage = lifecycle::stage(&claim, now);
    let progress = write(&claim, &stage, now);
    let is_ready = matches!(stage, Stage::Ready);
    step.decision = json!({"stage": word(&stage)});
    step.events = progress.events;
    step.counts = progress.counts;
    let until = match &stage {
        Stage::Booting { until } => Some(*until),
        Stage::Refused { until, .. } => *until,
        _ => None,
    };
    step.wake_at =
        until.into_iter().chain(lifecycle::gives_up_at(claim.object).filter(|_| !is_ready)).min();
    if let Some(detail) = waits_for(&stage) {
        let hold = Hold::of_rollout(HoldReason::NotAvailable { detail });
        step.holds.push(hold.until(step.wake_at));
    }
    step.judged(progress.actions)
}

/// The life of a claim that has no pool, and goes with its Node.
pub(crate) fn step_alone(
    dialect: &'static str,
    snapshot: &Snapshot<'_>,
    facts: &Facts,
    now: Timestamp,
) -> Step {
    let member = member_of(snapshot, facts);
    let permit = member.as_ref().and_then(lifecycle::follows);
    let (Some(member), Some(permit)) = (member, permit) else {
        return step(dialect, snapshot, now);
    };
    let mut writes = Writes::default();
    follow(&member, permit, &mut writes);
    let mut step = Step::new(dialect, snapshot.rollout(), Verdict::Done);
    step.decision = json!({"stage": "Delete"});
    let actions = writes.fill(&mut step);
    step.judged(actions)
}

/// The end of a claim whose pool is gone.
pub(crate) fn end(
    dialect: &'static str,
    snapshot: &Snapshot<'_>,
    facts: &Facts,
    now: Timestamp,
) -> Step {
    let mut step = Step::new(dialect, snapshot.rollout(), Verdict::Done);
    let Some(member) = member_of(snapshot, facts) else { return step };
    let node = member.node.map(|node| node.object.name().as_str());
    let on_node = |pod: &Pod<'_>| node.is_some() && pod.node_name() == node;
    let pods: Vec<Pod<'_>> = facts.pods(snapshot).filter(on_node).collect();
    let budgets = PodBudgets::new(snapshot.of(&POD_DISRUPTION_BUDGET).iter().copied());
    let leaving = Leaving {
        now,
        member: &member,
        pods: &pods,
        pod_budgets: &budgets,
        snapshot,
        is_hurried: false,
    };
    let mut writes = Writes::default();
    let wait = terminate::claim(leaving, &mut writes);
    step.decision = json!({"stage": "Delete"});
    if let Some((reason, until)) = wait {
        step.wake_at = until;
        step.holds.push(Hold::of_rollout(reason).until(until));
    }
    let actions = writes.fill(&mut step);
    step.judged(actions)
}

/// The end of a Node that has no claim of its own.
pub(crate) fn end_of_node(
    dialect: &'static str,
    snapshot: &Snapshot<'_>,
    facts: &Facts,
    now: Timestamp,
) -> Step {
    let mut step = Step::new(dialect, snapshot.rollout(), Verdict::Done);
    let Some(node) = node_alone(snapshot, facts) else { return step };
    let name = node.object.name().as_str();
    let pods: Vec<Pod<'_>> =
        facts.pods(snapshot).filter(|pod| pod.node_name() == Some(name)).collect();
    let budgets = PodBudgets::new(snapshot.of(&POD_DISRUPTION_BUDGET).iter().copied());
    let (pod_budgets, deadline) = (&budgets, None);
    let drain = Drain { now, node, pods: &pods, pod_budgets, snapshot, deadline, disruption: "" };
    let mut writes = Writes::default();
    let wait = terminate::node_alone(&drain, &mut writes);
    step.decision = json!({"stage": "Delete"});
    if let Some((reason, until)) = wait {
        step.wake_at = until;
        step.holds.push(Hold::of_rollout(reason).until(until));
    }
    let actions = writes.fill(&mut step);
    step.judged(actions)
}

/// Upstream's words for the stages of a claim.
fn word(stage: &Stage<'_>) -> &'static str {
    match stage {
        Stage::Foreign | Stage::Launch(..) | Stage::Refused { .. } => "Launch",
        Stage::GiveUp { .. } => "Delete",
        Stage::Booting { .. } | Stage::Appear | Stage::Several | Stage::Register(_) => "Register",
        Stage::Wait { .. } | Stage::Initialize(_) => "Initialize",
        Stage::Ready => "Ready",
    }
}

/// What a claim waits for that nothing is done about.
fn waits_for(stage: &Stage<'_>) -> Option<String> {
    match stage {
        Stage::Foreign => Some(format!(
            "its node class is of a provider that Convoy does not run: only KWOKNodeClass of \
             {KWOK_GROUP} is simulated"
        )),
        Stage::Booting { .. } => Some("its machine is coming up".to_owned()),
        Stage::Several => Some("several Nodes have its provider id".to_owned()),
        Stage::Wait { message, .. } | Stage::Refused { message, .. } => Some(message.clone()),
        _ => None,
    }
}
