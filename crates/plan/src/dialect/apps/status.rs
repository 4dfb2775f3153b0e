//! The status of a Deployment as it should read: sums over its ReplicaSets, and conditions.

pub(crate) mod denied;
pub(crate) mod replica_set;

use serde_json::{Map, Value, json};

use super::decide::{DeploymentDecision, StatusScope};
use super::read::deployment::Deployment;

/// The whole status; fields that nobody here knows stay.
pub(crate) fn status(decision: &DeploymentDecision<'_>) -> Value {
    let object = decision.deployment.object;
    let mut status = match object.status() {
        Value::Object(fields) => fields.clone(),
        _ => Map::new(),
    };
    if decision.scope != StatusScope::Conditions {
        let counters = &decision.counters;
        let numbers = [
            ("observedGeneration", object.generation()),
            ("replicas", counters.replicas),
            ("updatedReplicas", counters.updated),
            ("readyReplicas", counters.ready),
            ("availableReplicas", counters.available),
            ("unavailableReplicas", counters.unavailable),
        ];
        for (field, number) in numbers {
            put(&mut status, field, Some(number).filter(|number| *number != 0));
        }
        put(&mut status, "terminatingReplicas", counters.terminating);
    }
    put(&mut status, "collisionCount", decision.collision_count);
    let conditions = decision.conditions.as_slice();
    if conditions.is_empty() {
        status.shift_remove("conditions");
    } else {
        status.insert("conditions".to_owned(), Value::Array(conditions.to_vec()));
    }
    Value::Object(status)
}

/// The status of a Deployment that cannot be decided, once its generation was looked at.
pub(crate) fn observed(deployment: &Deployment<'_>) -> Option<Value> {
    let object = deployment.object;
    if deployment.stored.observed_generation >= object.generation() {
        return None;
    }
    let mut status = object.status().clone();
    if !status.is_object() {
        status = json!({});
    }
    status["observedGeneration"] = json!(object.generation());
    Some(status)
}

fn put(status: &mut Map<String, Value>, field: &str, number: Option<i64>) {
    match number {
        Some(number) => _ = status.insert(field.to_owned(), json!(number)),
        None => _ = status.shift_remove(field),
    }
}
