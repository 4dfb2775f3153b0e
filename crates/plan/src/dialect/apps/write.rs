//! Actions of a Deployment: ownership first, then the new set, then sizes, then history, then the
//! Deployment itself.

pub(crate) mod intervention;
mod new_set;
pub(crate) mod permissions;
pub(crate) mod replica_set;
mod rollback;

use convoy_api::apps::{REPLICA_SET, annotation};
use serde_json::{Map, Value, json};

use super::decide::DeploymentDecision;
use super::decide::new_set::NewSet;
use super::decide::rollback::Rollback;
use super::read::owned_set::OwnedSet;
use crate::ownership;
use crate::step::{Action, Event, EventType, Propagation, Subresource, Verb, Why, Write};

pub(crate) fn actions(decision: &DeploymentDecision<'_>) -> Vec<Action> {
    let owner = decision.deployment.object;
    let mut actions = Vec::new();
    for set in &decision.released {
        let message = format!("its labels no longer match the selector of {}", owner.name());
        let patch = ownership::patch(ownership::released(owner, set));
        actions.push(Action::patch(Verb::Release, set, patch, Why::new("LabelsLeft", message)));
    }
    if decision.sets.iter().any(|set| set.adopted) {
        actions.push(ownership::confirmed(owner));
    }
    actions.extend(decision.created.as_ref().map(|new| created(decision, new)));
    // Sets that shrink go first: dying in between must not leave more than are allowed.
    let written = decision.sets.iter().filter(|set| set.is_written());
    let (growing, others): (Vec<_>, Vec<_>) = written.partition(|set| set.wants > set.had);
    actions.extend(others.into_iter().chain(growing).map(|set| patched(decision, set)));
    for set in decision.sets.iter().filter(|set| set.trimmed) {
        let limit = decision.deployment.history_limit.unwrap_or_default();
        let message =
            format!("it has no replicas, and revisionHistoryLimit keeps {limit} old ones");
        let why = Why::new("HistoryLimit", message);
        actions.push(Action::delete(Verb::Delete, set.object, Propagation::Background, why));
    }
    actions.extend(recorded(decision));
    actions.extend(rolled_back(decision));
    actions
}

fn created(decision: &DeploymentDecision<'_>, new: &NewSet) -> Action {
    let owner = decision.deployment.object;
    let key = owner.key().sibling(&REPLICA_SET, owner.namespace(), &new.name);
    let message = format!(
        "no ReplicaSet has the template: revision {} starts with {} of {} replicas",
        new.revision, new.replicas, decision.deployment.replicas
    );
    let object = new_set::object(&decision.deployment, new);
    let verb = new.permit.map_or(Verb::Create, Verb::CreateWithMembers);
    Action::create(verb, key, object, Why::new("NewTemplate", message))
}

/// One patch with everything that this step changes on a set, fenced by what was observed.
fn patched(decision: &DeploymentDecision<'_>, set: &OwnedSet<'_>) -> Action {
    let mut metadata = Map::new();
    if set.adopted {
        let references = ownership::adopted(decision.deployment.object, set.object);
        metadata.insert("ownerReferences".to_owned(), references);
    }
    if !set.notes.is_empty() {
        metadata.insert("annotations".to_owned(), Value::Object(set.notes.clone()));
    }
    let mut spec = Map::new();
    if set.wants != set.had {
        spec.insert("replicas".to_owned(), json!(set.wants));
    }
    if let Some(secs) = set.min_ready_secs {
        spec.insert("minReadySeconds".to_owned(), json!(secs));
    }
    let mut patch = Map::new();
    for (key, part) in [("metadata", metadata), ("spec", spec)] {
        if !part.is_empty() {
            patch.insert(key.to_owned(), Value::Object(part));
        }
    }
    let (verb, why) = meaning(decision, set);
    Action::patch(verb, set.object, Value::Object(patch), why)
}

fn meaning(decision: &DeploymentDecision<'_>, set: &OwnedSet<'_>) -> (Verb, Why) {
    if let Some(permit) = set.permit {
        let n = decision.deployment.replicas;
        let message = format!("from {} to {} of {n} wanted", set.had, set.wants);
        return (Verb::Scale(permit), Why::new("ScalingReplicaSet", message));
    }
    if set.adopted {
        let message = "it has no controller and its labels match the selector";
        return (Verb::Adopt, Why::new("LabelsMatch", message));
    }
    let keys: Vec<&str> = set.notes.keys().map(String::as_str).collect();
    (Verb::Record, Why::new("Bookkeeping", format!("updates {}", keys.join(", "))))
}

/// The Deployment's revision is written through its status, which leaves its generation as it is.
fn recorded(decision: &DeploymentDecision<'_>) -> Option<Action> {
    let revision = decision.revision.as_ref()?;
    let patch = json!({"metadata": {"annotations": {annotation::REVISION: revision}}});
    let why = Why::new("Revision", format!("the new ReplicaSet has revision {revision}"));
    let mut action = Action::patch(Verb::Record, decision.deployment.object, patch, why);
    if let Write::Patch { subresource, .. } = &mut action.write {
        *subresource = Some(Subresource::Status);
    }
    Some(action)
}

fn rolled_back(decision: &DeploymentDecision<'_>) -> Option<Action> {
    let rollback = decision.rollback.as_ref()?;
    let (verb, why) = match rollback {
        Rollback::To { revision, .. } => {
            let message = format!("takes the template of revision {revision} again");
            (Verb::RollBack, Why::new("DeploymentRollback", message))
        }
        Rollback::Refused { reason } => {
            (Verb::Record, Why::new(reason, "removes a rollback request that cannot be met"))
        }
    };
    let patch = rollback::patch(&decision.deployment, rollback);
    Some(Action::patch(verb, decision.deployment.object, patch, why))
}

/// The events that Kubernetes records when sizes change.
pub(crate) fn scale_events(decision: &DeploymentDecision<'_>) -> Vec<Event> {
    let owner = decision.deployment.object.key();
    let resized = decision.sets.iter().filter(|set| set.wants != set.had);
    let event = |set: &OwnedSet<'_>| {
        let way = if set.wants > set.had { "up" } else { "down" };
        let message =
            format!("Scaled {way} replica set {} from {} to {}", set.name(), set.had, set.wants);
        Event::new(owner, EventType::Normal, "ScalingReplicaSet", message)
            .reporting(set.object.key())
    };
    resized.map(event).collect()
}
