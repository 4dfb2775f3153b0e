//! The status of a Deployment: sums over its ReplicaSets, and whether enough is available.

pub(super) mod denied;

use serde_json::{Map, Value, json};

use crate::dialect::apps::decide::progress::{self, AVAILABLE};
use crate::dialect::apps::decide::{Ending, Pass};

/// The numbers of a status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) replicas: i64,
    pub(crate) updated: i64,
    pub(crate) ready: i64,
    pub(crate) available: i64,
    pub(crate) unavailable: i64,
    /// Absent where one of the sets does not say.
    pub(crate) terminating: Option<i64>,
}

impl Pass<'_> {
    pub(crate) fn counters(&self) -> Counters {
        let mut counters = Counters { terminating: Some(0), ..Counters::default() };
        for set in &self.sets {
            counters.replicas += set.counts.replicas;
            counters.ready += set.counts.ready;
            counters.available += set.counts.available;
            counters.terminating =
                counters.terminating.zip(set.counts.terminating).map(|(sum, more)| sum + more);
        }
        counters.updated = self.new_set().map_or(0, |set| set.counts.replicas);
        counters.unavailable = (self.total() - counters.available).max(0);
        counters
    }

    /// Brings the conditions up to date with the counters.
    pub(crate) fn note_status(&mut self, counters: &Counters, ending: Ending) {
        let least = self.deployment.replicas - self.deployment.may_be_missing();
        let (status, reason, message) = if counters.available >= least {
            ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        } else {
            (
                "False",
                "MinimumReplicasUnavailable",
                "Deployment does not have minimum availability.",
            )
        };
        progress::set(&mut self.conditions, AVAILABLE, status, reason, message, self.now);
        if ending == Ending::Rollout {
            self.note_progress(counters);
            self.note_replica_failure();
        }
    }

    /// The whole status as it should read; fields that nobody here knows stay.
    pub(crate) fn status(&self, counters: Option<&Counters>) -> Value {
        let mut status = match self.deployment.object.status() {
            Value::Object(fields) => fields.clone(),
            _ => Map::new(),
        };
        if let Some(counters) = counters {
            let numbers = [
                ("observedGeneration", self.deployment.object.generation()),
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
        put(&mut status, "collisionCount", self.collision_count);
        if self.conditions.is_empty() {
            status.shift_remove("conditions");
        } else {
            status.insert("conditions".to_owned(), Value::Array(self.conditions.clone()));
        }
        Value::Object(status)
    }
}

fn put(status: &mut Map<String, Value>, field: &str, number: Option<i64>) {
    match number {
        Some(number) => _ = status.insert(field.to_owned(), json!(number)),
        None => _ = status.shift_remove(field),
    }
}

/// Whether two statuses say the same: a zero may be written or left out, and so may a null.
pub(crate) fn says_the_same(left: &Value, right: &Value) -> bool {
    let empty = Map::new();
    let left = left.as_object().unwrap_or(&empty);
    let right = right.as_object().unwrap_or(&empty);
    let told = |value: Option<&Value>| match value {
        None | Some(Value::Null) => false,
        Some(Value::Number(number)) => number.as_i64() != Some(0),
        Some(Value::Array(list)) => !list.is_empty(),
        Some(_) => true,
    };
    let differs = |key: &String| {
        let (left, right) = (left.get(key), right.get(key));
        left != right && (told(left) || told(right))
    };
    !left.keys().any(differs) && !right.keys().any(differs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_may_be_left_out() {
        let cases = [
            (json!({"replicas": 1}), json!({"replicas": 1, "readyReplicas": 0}), true),
            (json!({}), json!({"terminatingReplicas": 0, "conditions": []}), true),
            (json!(null), json!({}), true),
            (json!({"replicas": 1}), json!({}), false),
            (json!({"replicas": 1}), json!({"replicas": 2}), false),
        ];
        for (left, right, same) in cases {
            assert_eq!(says_the_same(&left, &right), same, "{left} {right}");
        }
    }
}
