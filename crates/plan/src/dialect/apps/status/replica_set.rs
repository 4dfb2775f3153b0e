//! The status of a ReplicaSet as it should read.

use convoy_api::Object;
use convoy_api::apps::REPLICA_SET;
use convoy_api::object::member::text;
use serde_json::{Value, json};

use crate::condition;
use crate::dialect::apps::names::REPLICA_FAILURE;
use crate::dialect::apps::read::replica_set::ReplicaSet;
use crate::dialect::apps::read::template;

/// The whole status as it should read, by the pods there were before this step's writes.
/// Managing has succeeded once a step is carried out; otherwise there is a failure.
pub(crate) fn status(set: &ReplicaSet<'_>, failure: Option<&condition::Condition<'_>>) -> Value {
    let labels = template(set.object).pointer("/metadata/labels").and_then(Value::as_object);
    let labelled = |pod: &Object| {
        let mut wanted = labels.into_iter().flatten();
        wanted.all(|(key, text)| pod.label(key) == text.as_str())
    };
    let active = &set.active;
    let fully_labelled = active.iter().filter(|pod| labelled(pod.object)).count();
    let ready = active.iter().filter(|pod| pod.is_ready()).count();
    let available = active.iter().filter(|pod| set.is_available(pod)).count();
    let mut status = set.object.status().as_object().cloned().unwrap_or_default();
    status.insert("replicas".to_owned(), json!(active.len()));
    // A ReplicationController has no such field.
    if *set.object.kind() == REPLICA_SET {
        status.insert("terminatingReplicas".to_owned(), json!(set.terminating));
    }
    let numbers = [
        ("fullyLabeledReplicas", json!(fully_labelled)),
        ("readyReplicas", json!(ready)),
        ("availableReplicas", json!(available)),
        ("observedGeneration", json!(set.object.generation())),
    ];
    for (field, number) in numbers {
        if number == json!(0) {
            status.shift_remove(field);
        } else {
            status.insert(field.to_owned(), number);
        }
    }
    let told = status.shift_remove("conditions");
    let mut conditions = match told {
        Some(Value::Array(conditions)) => conditions,
        _ => Vec::new(),
    };
    match failure {
        // One that is told already is left as it is.
        Some(failure) if !is_told(&conditions) => {
            condition::set(&mut conditions, failure, set.now);
        }
        Some(_) => {}
        None => condition::remove(&mut conditions, REPLICA_FAILURE),
    }
    if !conditions.is_empty() {
        status.insert("conditions".to_owned(), conditions.into());
    }
    Value::Object(status)
}

fn is_told(conditions: &[Value]) -> bool {
    conditions.iter().any(|entry| text(entry, "type") == REPLICA_FAILURE)
}
