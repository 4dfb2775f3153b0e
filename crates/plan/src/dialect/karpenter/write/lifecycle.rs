//! The actions that bring a NodeClaim to a node that is ready for pods.

use convoy_api::Object;
use convoy_api::object::member::list;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::counts;
use crate::dialect::karpenter::decide::lifecycle::{Stage, inconsistencies};
use crate::dialect::karpenter::names::{
    FINALIZER, NODE, SIMULATED, UNREGISTERED_TAINT, condition, event, label, node_label,
};
use crate::dialect::karpenter::read::catalogue::{InstanceType, Offering};
use crate::dialect::karpenter::read::lifecycle::Claim;
use crate::dialect::karpenter::status;
use crate::finalizer;
use crate::gate::Permit;
use crate::metric::Increment;
use crate::object_patch::ObjectPatch;
use crate::step::{Action, Event, EventType, Propagation, Verb, Why};
use crate::taint::{self, Taint};

/// What is written for a stage, in order.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) actions: Vec<Action>,
    pub(crate) events: Vec<Event>,
    pub(crate) counts: Vec<Increment>,
}

pub(crate) fn write(claim: &Claim<'_>, stage: &Stage<'_>, now: Timestamp) -> Progress {
    let mut progress = Progress::default();
    let object = claim.object;
    if let Stage::GiveUp { reason, message, permit } = stage {
        return give_up(claim, reason, message, *permit);
    }
    let why = Why::new("Lifecycle", "the NodeClaim goes on to its next stage");
    if let Some(added) = finalizer::added(object, &[FINALIZER], why.clone()) {
        // Before anything is launched: what is launched has to be given back.
        progress.actions.push(added);
        return progress;
    }
    let mut patch = ObjectPatch::new(object, now);
    await_conditions(&mut patch);
    match stage {
        Stage::Launch(kind, offering) => {
            progress.actions.extend(labelled(object, kind, *offering, &why));
            launched(claim, kind, &mut patch);
        }
        Stage::Appear => progress.actions.push(appear(claim, &why)),
        Stage::Register(node) => {
            progress.actions.push(join(object, node, &mut progress.events, &why));
            progress.counts.push(counts::node_created(object, node));
            patch.set(condition::REGISTERED, "True", condition::REGISTERED, "");
            patch.status("nodeName", json!(node.name()));
        }
        Stage::Initialize(node) => {
            let labels = json!({"metadata": {"labels": {label::INITIALIZED: "true"}}});
            progress.actions.push(Action::patch(Verb::Advance, node, labels, why.clone()));
            patch.set(condition::INITIALIZED, "True", condition::INITIALIZED, "");
        }
        Stage::Several => {
            let text = "Invariant violated, matched multiple nodes";
            patch.set(condition::REGISTERED, "False", "MultipleNodesFound", text);
        }
        Stage::Wait { reason, message, .. } => {
            patch.set(condition::INITIALIZED, "Unknown", reason, message);
        }
        Stage::Refused { message, .. } => {
            patch.set(condition::LAUNCHED, "Unknown", "LaunchFailed", message);
        }
        Stage::Booting { .. } => {
            let text = "Node not registered with cluster";
            patch.set(condition::REGISTERED, "Unknown", "NodeNotFound", text);
        }
        Stage::Foreign | Stage::Ready | Stage::GiveUp { .. } => {}
    }
    hydrate(claim, stage, &mut progress.actions);
    consistency(claim, stage, &mut patch, &mut progress.events);
    let parts = [condition::LAUNCHED, condition::REGISTERED, condition::INITIALIZED];
    status::root(&mut patch, &parts);
    progress.actions.extend(patch.actions(Verb::Advance, &why));
    progress
}

/// Labels a claim, and its Node, with their node class, where they come from before that label.
fn hydrate(claim: &Claim<'_>, stage: &Stage<'_>, actions: &mut Vec<Action>) {
    let Some((key, class)) = claim.class_label() else { return };
    let nodes = claim.nodes.iter().filter(|_| matches!(stage, Stage::Ready));
    for object in nodes.copied().chain([claim.object]) {
        if object.label(&key) != Some(class) {
            let patch = json!({"metadata": {"labels": {key.as_str(): class}}});
            let why = Why::new("Hydrated", "the label of the node class was missing");
            actions.push(Action::patch(Verb::Record, object, patch, why));
        }
    }
}

/// Whether a node that is ready for pods has what its claim expects of it.
fn consistency(
    claim: &Claim<'_>,
    stage: &Stage<'_>,
    patch: &mut ObjectPatch<'_>,
    events: &mut Vec<Event>,
) {
    let kind = condition::CONSISTENT_STATE_FOUND;
    let node = claim.nodes.first().filter(|_| matches!(stage, Stage::Ready | Stage::Initialize(_)));
    let Some(node) = node else { return };
    let found = inconsistencies(claim, node);
    if found.is_empty() {
        return patch.set(kind, "True", kind, "");
    }
    patch.set(kind, "False", "ConsistencyCheckFailed", "Consistency Check Failed");
    for message in found {
        let reason = event::FAILED_CONSISTENCY_CHECK;
        events.push(Event::new(claim.object.key(), EventType::Warning, reason, message));
    }
}

/// Conditions that nothing is known about yet.
fn await_conditions(patch: &mut ObjectPatch<'_>) {
    for kind in [condition::LAUNCHED, condition::REGISTERED, condition::INITIALIZED] {
        if patch.current(kind).is_none() {
            let text = "object is awaiting reconciliation";
            patch.set(kind, "Unknown", "AwaitingReconciliation", text);
        }
    }
}

fn give_up(
    Claim { object: claim, facts, .. }: &Claim<'_>,
    reason: &'static str,
    message: &str,
    permit: Permit,
) -> Progress {
    let event = match reason {
        "insufficient_capacity" => Some(event::INSUFFICIENT_CAPACITY_ERROR),
        _ => None,
    };
    let events = event.map(|word| {
        let message = format!("NodeClaim {} event: {message}", claim.name());
        Event::new(claim.key(), EventType::Warning, word, message)
    });
    let (verb, why) = (Verb::DeleteMember(permit), Why::new(reason, message));
    Progress {
        actions: vec![Action::delete(verb, claim, Propagation::Background, why)],
        events: events.into_iter().collect(),
        counts: counts::claim_disrupted(claim, facts, reason, None, 0).collect(),
    }
}

/// The labels of the machine, as far as the claim has no others.
fn labelled(claim: &Object, kind: &InstanceType, offering: Offering, why: &Why) -> Option<Action> {
    let keys = [
        label::INSTANCE_TYPE,
        label::ZONE,
        label::CAPACITY_TYPE,
        node_label::ARCH,
        node_label::OS,
        node_label::INSTANCE_FAMILY,
        node_label::INSTANCE_SIZE,
        node_label::INSTANCE_CPU,
        node_label::INSTANCE_MEMORY,
    ];
    let missing = keys.into_iter().filter(|key| claim.label(key).is_none());
    let labels: Map<String, Value> = missing
        .filter_map(|key| Some((key.to_owned(), json!(kind.label(offering, key)?))))
        .collect();
    let patch = json!({"metadata": {"labels": labels}});
    (!labels.is_empty()).then(|| Action::patch(Verb::Advance, claim, patch, why.clone()))
}

fn launched(claim: &Claim<'_>, kind: &InstanceType, patch: &mut ObjectPatch<'_>) {
    patch.status("providerID", json!(format!("kwok://{}", claim.object.name())));
    if let Some(image) = claim.class.as_ref().and_then(|class| class.image) {
        patch.status("imageID", json!(image));
    }
    patch.status("capacity", capacity(kind));
    patch.status("allocatable", allocatable(kind));
    patch.set(condition::LAUNCHED, "True", condition::LAUNCHED, "");
}

fn capacity(kind: &InstanceType) -> Value {
    json!({
        "cpu": kind.cpu.to_string(),
        "memory": format!("{}Gi", kind.memory_gib),
        "pods": kind.pods().to_string(),
        "ephemeral-storage": InstanceType::storage().to_string(),
    })
}

fn allocatable(kind: &InstanceType) -> Value {
    json!({
        "cpu": format!("{}m", kind.allocatable_cpu_millis()),
        "memory": kind.allocatable_memory().to_string(),
        "pods": kind.pods().to_string(),
        "ephemeral-storage": InstanceType::storage().to_string(),
    })
}

/// The Node of a machine that came up. Pods stay away until it is registered.
fn appear(claim: &Claim<'_>, why: &Why) -> Action {
    let object = claim.object;
    let mut labels = map(object, "labels");
    labels.insert(label::HOSTNAME.to_owned(), json!(object.name()));
    let mut taints = claim_taints(object);
    taints.push(json!({"key": UNREGISTERED_TAINT, "effect": "NoExecute"}));
    let node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": object.name(), "labels": labels,
            "annotations": {SIMULATED: "true"}},
        "spec": {"providerID": claim.facts.provider_id, "taints": taints},
        "status": {
            "capacity": object.status_member("capacity"),
            "allocatable": object.status_member("allocatable"),
        },
    });
    let target = object.key().sibling(&NODE, "", object.name());
    Action::create(Verb::Create, target, node, why.clone())
}

/// Makes a Node one of ours: finalizer, owner, labels, annotations and taints of its claim.
fn join(claim: &Object, node: &Object, events: &mut Vec<Event>, why: &Why) -> Action {
    let current = list(node.spec(), "taints").iter();
    let is_unregistered =
        |entry: &Value| taint::is(&Taint::from_value(entry), UNREGISTERED_TAINT, "NoExecute");
    if !current.clone().any(is_unregistered) {
        let message = format!(
            "Missing {UNREGISTERED_TAINT} taint which prevents registration \
            related race conditions on Karpenter-managed nodes"
        );
        let reason = event::UNREGISTERED_TAINT_MISSING;
        events.push(Event::new(claim.key(), EventType::Warning, reason, message));
    }
    let mut taints: Vec<Value> = current.filter(|entry| !is_unregistered(entry)).cloned().collect();
    if claim.label(label::DO_NOT_SYNC_TAINTS) != Some("true") {
        for wanted in claim_taints(claim) {
            let like = Taint::from_value(&wanted);
            let has = |entry: &Value| taint::is(&Taint::from_value(entry), like.key, like.effect);
            if !taints.iter().any(has) {
                taints.push(wanted);
            }
        }
    }
    let mut labels = map(claim, "labels");
    labels.insert(label::REGISTERED.to_owned(), json!("true"));
    let owner = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": claim.name(),
        "uid": claim.uid().unwrap_or_default(), "blockOwnerDeletion": true});
    let mut owners = list(node.metadata(), "ownerReferences").to_vec();
    if !owners.iter().any(|known| known.get("uid") == owner.get("uid")) {
        owners.push(owner);
    }
    let mut metadata = json!({"labels": labels, "annotations": map(claim, "annotations"),
        "ownerReferences": owners});
    if let Some(finalizers) = finalizer::with(node, &[FINALIZER]) {
        metadata["finalizers"] = finalizers;
    }
    let patch = json!({"metadata": metadata, "spec": {"taints": taints}});
    Action::patch(Verb::Advance, node, patch, why.clone())
}

fn claim_taints(claim: &Object) -> Vec<Value> {
    let lists = ["taints", "startupTaints"].into_iter();
    lists.flat_map(|field| list(claim.spec(), field).iter().cloned()).collect()
}

fn map(object: &Object, field: &str) -> Map<String, Value> {
    object.metadata().get(field).and_then(Value::as_object).cloned().unwrap_or_default()
}
