//! The outside of a fleet: members that apply and report, people that approve.

use convoy_api::{GroupKind, Object};
use convoy_check::Applier;
use convoy_testkit::{NOW, fleet, object};
use serde_json::{Value, json};

pub(crate) const BINDING: GroupKind =
    GroupKind::new("placement.kubernetes-fleet.io", "ClusterResourceBinding");
const REQUEST: GroupKind =
    GroupKind::new("placement.kubernetes-fleet.io", "ClusterApprovalRequest");

/// How the members behave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agents {
    /// How many bindings report per round.
    pub(crate) pace: usize,
    /// Whether approvals are given.
    pub(crate) approve: bool,
    /// Reports only that nothing can be tracked.
    pub(crate) untracked: bool,
}

/// Whether anything was done: members apply and report, deleted bindings lose their
/// resources, people approve, heartbeats come in.
pub(crate) fn act(applier: &mut Applier, agents: Agents) -> bool {
    let now = applier.now().to_string();
    let mut done = 0;
    let bindings: Vec<Object> = applier.world().of(&BINDING).cloned().collect();
    for binding in bindings {
        if done == agents.pace {
            break;
        }
        done += usize::from(serve(applier, &binding, agents, &now));
    }
    let requests: Vec<Object> = applier.world().of(&REQUEST).cloned().collect();
    for request in requests.iter().filter(|it| agents.approve && it.condition("Approved").is_none())
    {
        let generation = request.generation();
        let approved = fleet::condition("Approved", "True", "ByHand", generation, &now);
        applier.edit(request.key(), |raw| raw["status"]["conditions"] = json!([approved]));
        done += 1;
    }
    done > 0
}

fn serve(applier: &mut Applier, binding: &Object, agents: Agents, now: &str) -> bool {
    if binding.is_deleting() {
        let cleaned = binding.has_finalizer("kubernetes-fleet.io/work-cleanup");
        applier.remove(binding.key());
        return cleaned || applier.world().get(binding.key()).is_none();
    }
    let generation = binding.generation();
    let current = |kind: &str| {
        binding.condition(kind).is_some_and(|it| it["observedGeneration"] == generation)
    };
    if !current("RolloutStarted") || current("Available") || binding.spec()["state"] != "Bound" {
        return false;
    }
    let reason =
        if agents.untracked { "NotAllWorkAreAvailabilityTrackable" } else { "AllWorkAreAvailable" };
    let mut conditions: Vec<Value> =
        binding.status()["conditions"].as_array().cloned().unwrap_or_default();
    conditions.retain(|entry| entry["type"] == "RolloutStarted");
    let applied = fleet::condition("Applied", "True", "AllWorkHaveBeenApplied", generation, now);
    conditions.push(applied);
    conditions.push(fleet::condition("Available", "True", reason, generation, now));
    applier.edit(binding.key(), |raw| raw["status"]["conditions"] = json!(conditions));
    true
}

pub(crate) fn namespace() -> Object {
    object("v1", "Namespace", "shop").build()
}

pub(crate) fn instant() -> jiff::Timestamp {
    NOW.parse().expect("an instant")
}

pub(crate) fn decision<'p>(plan: &'p convoy_plan::Plan, kind: &str) -> &'p convoy_plan::Step {
    plan.steps.iter().find(|step| step.rollout.kind.kind == kind).expect("the rollout is planned")
}
