//! The writes of a staged update run.

use convoy_api::Object;
use serde_json::{Value, json};

use super::{binding, rollout, snapshot};
use crate::condition::{self, Condition};
use crate::dialect::fleet::decide::staged::{Change, Pass};
use crate::dialect::fleet::names::{
    ACCEPTED, Family, LATEST_APPROVAL, RUN_CLEANUP, TARGET_RUN, TARGET_STAGE, TASK_TYPE,
};
use crate::dialect::fleet::read::binding::{Binding, DesiredBinding};
use crate::dialect::fleet::read::overrides::Applicable;
use crate::dialect::fleet::read::placement::list;
use crate::dialect::fleet::read::strategy::When;
use crate::finalizer;
use crate::gate::Permit;
use crate::snapshot::Snapshot;
use crate::step::{Action, Propagation, Verb, Why};

pub(crate) fn actions(pass: &Pass<'_, '_>) -> Vec<Action> {
    let why = Why::new("Begun", "approval requests are cleaned up with the run");
    let mut actions: Vec<Action> =
        finalizer::added(pass.run, &[RUN_CLEANUP], why).into_iter().collect();
    for change in &pass.changes {
        match change {
            Change::Snapshots { placement, decision } => {
                actions.extend(snapshot::actions(decision, placement, pass.stamp.now));
            }
            Change::ApprovalRequested { request, stage, when } => {
                actions.push(requested(pass.run, request, stage, *when));
            }
            Change::ApprovalAccepted { request, stage } => {
                actions.push(accepted(pass, request, stage));
            }
            Change::Updated { binding, resources, overrides, permit } => {
                actions.extend(updated(pass, binding, resources, overrides, *permit));
            }
            Change::RolloutStarted { binding, resources } => {
                actions.extend(started(pass, binding, resources, binding.generation()));
            }
            Change::Removed { binding, permit } => {
                actions.push(rollout::removed(binding, Verb::Remove(*permit)));
            }
        }
    }
    actions
}

/// A run that is being deleted takes its approval requests along.
pub(crate) fn cleanup(snapshot: &Snapshot<'_>, run: &Object) -> Vec<Action> {
    let why = Why::new("RunDeleted", "nothing of the run is left to clean up");
    let Some(released) = finalizer::removed(run, &[RUN_CLEANUP], why) else { return Vec::new() };
    let requests = snapshot.of(&Family::of(run).approval_request()).iter();
    let ours = requests.filter(|request| {
        request.namespace() == run.namespace()
            && request.label(TARGET_RUN) == Some(run.name().as_str())
            && !request.is_deleting()
    });
    let deleted = ours.map(|request| {
        let why = Why::new("RunDeleted", "the update run it belongs to is being deleted");
        Action::delete(Verb::Delete, request, Propagation::Background, why)
    });
    deleted.chain([released]).collect()
}

/// The binding as wanted, then the condition that tells the work generator to act on it.
fn updated(
    pass: &Pass<'_, '_>,
    target: &Binding<'_>,
    resources: &str,
    overrides: &Applicable,
    permit: Permit,
) -> impl Iterator<Item = Action> {
    let strategy = pass.record.apply_strategy();
    let desired =
        DesiredBinding { resource_snapshot: resources, overrides, apply_strategy: Some(&strategy) };
    let why = Why::new("StageReached", format!("cluster {} gets {resources}", target.cluster()));
    let bound = binding::bound(&desired, target, Verb::Update(permit), why);
    let next = target.generation().saturating_add(1);
    [bound].into_iter().chain(started(pass, target, resources, next))
}

fn started(
    pass: &Pass<'_, '_>,
    target: &Binding<'_>,
    resources: &str,
    generation: i64,
) -> Option<Action> {
    let run = pass.run.name();
    let message = format!("update run {run} brings {resources} to the cluster");
    binding::rollout_started(target, true, generation, &message, pass.stamp.now)
}

fn requested(run: &Object, name: &str, stage: &str, when: When) -> Action {
    let kind = Family::of(run).approval_request();
    let mut metadata = json!({"name": name, "labels": {
        TARGET_STAGE: stage,
        TARGET_RUN: run.name(),
        TASK_TYPE: when.task_type(),
        LATEST_APPROVAL: "true",
    }});
    if !run.namespace().is_empty() {
        metadata["namespace"] = json!(run.namespace());
    }
    let object: Value = json!({
        "apiVersion": run.api_version(),
        "kind": kind.kind,
        "metadata": metadata,
        "spec": {"parentStageRollout": run.name(), "targetStage": stage},
    });
    let target = run.key().sibling(&kind, run.namespace(), name);
    let why = Why::new("ApprovalNeeded", format!("stage {stage} needs an approval"));
    Action::create(Verb::Create, target, object, why)
}

fn accepted(pass: &Pass<'_, '_>, request: &Object, stage: &str) -> Action {
    let mut conditions = list(request.status(), "conditions").to_vec();
    let wanted = Condition::new(
        ACCEPTED,
        "True",
        "ApprovalRequestApprovalAccepted",
        "the approval is accepted and cannot be taken back",
    )
    .of_generation(request.generation());
    condition::set(&mut conditions, &wanted, pass.stamp.now);
    let why = Why::new("Approved", format!("stage {stage} is approved"));
    let patch = json!({"status": {"conditions": conditions}});
    Action::patch_status(Verb::Record, request, patch, why)
}
