//! A pass as a [`Step`]: its writes in order, its decision, and where the replicas stand.

pub(super) mod replica_set;
mod standing;

use serde_json::{Map, Value, json};

use crate::dialect::apps::decide::progress::word;
use crate::dialect::apps::decide::rollback::Rollback;
use crate::dialect::apps::decide::{Ending, Pass};
use crate::dialect::apps::read::owned_set::Set;
use crate::dialect::apps::status::says_the_same;
use crate::gate::Permit;
use crate::ownership as claim;
use crate::step::{
    Action, Event, EventType, Propagation, Step, Subresource, Verb, Verdict, Why, Write,
};

/// Finishes a pass: status, actions, explanations.
pub(crate) fn step(mut pass: Pass<'_>, ending: Ending) -> Step {
    let counters = pass.counters();
    if ending != Ending::Aside {
        pass.note_status(&counters, ending);
    }
    if ending == Ending::Rollout {
        pass.watch_over(&counters);
    }
    let status = pass.status((ending != Ending::Aside).then_some(&counters));
    let mut step = Step::new("apps", pass.deployment.object, Verdict::Moving);
    step.decision = decision(&pass, &status);
    step.events = std::mem::take(&mut pass.events);
    step.events.extend(scale_events(&pass));
    standing::fill(&mut step, &pass, &counters, ending);
    let changed = !says_the_same(&status, pass.deployment.object.status());
    step.status = changed.then_some(status);
    let object = pass.created.as_mut().map(|created| std::mem::take(&mut created.object));
    step.actions = actions(&pass, object.unwrap_or_default());
    standing::judge(&mut step, &pass, &counters, ending);
    step
}

/// Ownership first, then the new set, then sizes, then history, then the Deployment itself.
/// `object` is the new set, where one is made.
fn actions(pass: &Pass<'_>, object: Value) -> Vec<Action> {
    let owner = pass.deployment.object;
    let mut actions = Vec::new();
    for set in &pass.released {
        let why =
            Why::new("LabelsLeft", format!("its labels left the selector of {}", owner.name()));
        let patch = claim::patch(claim::released(owner, set));
        actions.push(Action::patch(Verb::Release, set, patch, why));
    }
    if let Some(created) = &pass.created {
        let key =
            owner.key().sibling(&convoy_api::apps::REPLICA_SET, owner.namespace(), &created.name);
        let message = format!(
            "no ReplicaSet has the template: revision {} starts with {} of {} replicas",
            created.revision, created.replicas, pass.deployment.replicas
        );
        let why = Why::new("NewTemplate", message);
        actions.push(Action::create(Verb::Create, key, object, why));
    }
    // Those that shrink go first: dying in between must not leave more than are allowed.
    let (growing, others): (Vec<_>, Vec<_>) =
        pass.sets.iter().filter(|set| set.is_written()).partition(|set| set.wants > set.had);
    actions.extend(others.into_iter().chain(growing).map(|set| written(pass, set)));
    for set in pass.sets.iter().filter(|set| set.trimmed) {
        let limit = pass.deployment.history_limit.unwrap_or_default();
        let why = Why::new("HistoryLimit", format!("old, empty, and beyond the {limit} to keep"));
        actions.push(Action::delete(Verb::Delete, set.object, Propagation::Background, why));
    }
    actions.extend(recorded(pass));
    actions.extend(rolled_back(pass));
    actions
}

/// One patch with everything that this step changes on a set, fenced by what was observed.
fn written(pass: &Pass<'_>, set: &Set<'_>) -> Action {
    let mut metadata = Map::new();
    if set.adopted {
        let references = claim::adopted(pass.deployment.object, set.object);
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
    let n = pass.deployment.replicas;
    let (verb, why) = match (set.wants != set.had, set.adopted) {
        (true, _) => {
            let message = format!("from {} to {} of {n} wanted", set.had, set.wants);
            (Verb::Scale(Permit::unchecked()), Why::new("ScalingReplicaSet", message))
        }
        (false, true) => {
            (Verb::Adopt, Why::new("LabelsMatch", "has no controller and matches".to_owned()))
        }
        (false, false) => {
            let keys: Vec<&str> = set.notes.keys().map(String::as_str).collect();
            (
                Verb::Record,
                Why::new("Bookkeeping", format!("brings {} up to date", keys.join(", "))),
            )
        }
    };
    Action::patch(verb, set.object, Value::Object(patch), why)
}

/// The Deployment's revision is written through its status, which leaves its generation as it is.
fn recorded(pass: &Pass<'_>) -> Option<Action> {
    let revision = pass.revision.as_ref()?;
    let patch =
        json!({"metadata": {"annotations": {convoy_api::apps::annotation::REVISION: revision}}});
    let why = Why::new("Revision", format!("the new ReplicaSet has revision {revision}"));
    let mut action = Action::patch(Verb::Record, pass.deployment.object, patch, why);
    if let Write::Patch { subresource, .. } = &mut action.write {
        *subresource = Some(Subresource::Status);
    }
    Some(action)
}

fn rolled_back(pass: &Pass<'_>) -> Option<Action> {
    let rollback = pass.rollback.as_ref()?;
    let (verb, why) = match rollback {
        Rollback::To { revision, .. } => {
            let message = format!("takes the template of revision {revision} again");
            (Verb::RollBack, Why::new("DeploymentRollback", message))
        }
        Rollback::Refused { reason } => (
            Verb::Record,
            Why::new(reason, "the request cannot be met and is taken away".to_owned()),
        ),
    };
    Some(Action::patch(verb, pass.deployment.object, pass.rollback_patch(rollback), why))
}

fn scale_events(pass: &Pass<'_>) -> Vec<Event> {
    let resized = pass.sets.iter().filter(|set| set.wants != set.had);
    let event = |set: &Set<'_>| {
        let way = if set.wants > set.had { "up" } else { "down" };
        let message =
            format!("Scaled {way} replica set {} from {} to {}", set.name(), set.had, set.wants);
        Event {
            regarding: pass.deployment.object.key().clone(),
            kind: EventType::Normal,
            reason: "ScalingReplicaSet".to_owned(),
            message,
            reports: Some(set.object.key().clone()),
        }
    };
    resized.map(event).collect()
}

fn decision(pass: &Pass<'_>, status: &Value) -> Value {
    let names =
        |sets: &mut dyn Iterator<Item = &str>| -> Value { sets.map(|name| json!(name)).collect() };
    let resized = pass.sets.iter().filter(|set| set.wants != set.had);
    let scale: Map<String, Value> =
        resized.map(|set| (set.name().to_string(), json!(set.wants))).collect();
    let create = pass.created.as_ref().map(|created| {
        let annotations = created.object.pointer("/metadata/annotations").cloned();
        json!({"name": created.name, "replicas": created.replicas, "annotations": annotations})
    });
    let label =
        |set: &Set<'_>| set.object.label(convoy_api::apps::TEMPLATE_HASH).map(str::to_owned);
    let hash = pass.created.as_ref().map(|created| created.hash.clone());
    let created = pass.created.as_ref().map(|created| created.revision.to_string());
    let noted = pass.new_set().and_then(|set| set.note(convoy_api::apps::annotation::REVISION));
    let rollback = pass.rollback.as_ref().map(|rollback| match rollback {
        Rollback::To { revision, .. } => json!(revision),
        Rollback::Refused { reason } => json!(reason),
    });
    let mut decision = Map::new();
    let mut put = |key: &str, value: Value| decision.insert(key.to_owned(), value);
    put("scale", Value::Object(scale));
    put("create", create.unwrap_or_default());
    let trimmed = pass.sets.iter().filter(|set| set.trimmed);
    put("delete", names(&mut trimmed.map(|set| set.name().as_str())));
    let adopted = pass.sets.iter().filter(|set| set.adopted);
    put("adopt", names(&mut adopted.map(|set| set.name().as_str())));
    put("release", names(&mut pass.released.iter().map(|set| set.name().as_str())));
    put("revision", json!(created.as_deref().or(noted)));
    put("hash", json!(hash.or_else(|| pass.new_set().and_then(label))));
    put("rollbackTo", rollback.unwrap_or_default());
    put("conditions", conditions(&pass.conditions));
    put("status", status.clone());
    Value::Object(decision)
}

/// `Type: "Status/Reason"`.
pub(crate) fn conditions(conditions: &[Value]) -> Value {
    let entry = |condition: &Value| {
        let told = Some(condition);
        let text = format!("{}/{}", word(told, "status"), word(told, "reason"));
        (word(told, "type").to_owned(), json!(text))
    };
    Value::Object(conditions.iter().map(entry).collect())
}
