//! The status of a budget.

use convoy_api::Object;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::condition::{self, Condition};
use crate::dialect::workloads::decide::budget::Count;

const DISRUPTION_ALLOWED: &str = "DisruptionAllowed";

/// The status as it should read; absent if it reads so already.
pub(crate) fn status(
    budget: &Object,
    count: Result<&Count<'_>, &str>,
    now: Timestamp,
) -> Option<Value> {
    let mut status = budget.status().as_object().cloned().unwrap_or_default();
    let observed = status.get("observedGeneration").and_then(Value::as_i64).unwrap_or(0);
    let condition = match count {
        Ok(count) => {
            numbers(&mut status, count, budget.generation());
            let (word, reason) = match count.allowed {
                0 => ("False", "InsufficientPods"),
                _ => ("True", "SufficientPods"),
            };
            Condition::new(DISRUPTION_ALLOWED, word, reason, "").of_generation(budget.generation())
        }
        Err(why) => {
            status.insert("disruptionsAllowed".into(), json!(0));
            for required in ["currentHealthy", "desiredHealthy", "expectedPods"] {
                status.entry(required).or_insert(json!(0));
            }
            Condition::new(DISRUPTION_ALLOWED, "False", "SyncFailed", why).of_generation(observed)
        }
    };
    let entry = status.entry("conditions").or_insert_with(|| json!([]));
    let mut conditions = entry.as_array().cloned().unwrap_or_default();
    condition::set(&mut conditions, &condition, now);
    *entry = Value::Array(conditions);
    (budget.status().as_object() != Some(&status)).then_some(Value::Object(status))
}

fn numbers(status: &mut Map<String, Value>, count: &Count<'_>, generation: i64) {
    let fields = [
        ("currentHealthy", count.healthy),
        ("desiredHealthy", count.desired),
        ("expectedPods", count.expected),
        ("disruptionsAllowed", count.allowed),
        ("observedGeneration", generation),
    ];
    for (name, value) in fields {
        status.insert(name.to_owned(), json!(value));
    }
    let disrupted = count.disrupted.iter();
    let disrupted: Map<String, Value> =
        disrupted.map(|(name, at)| ((*name).to_owned(), condition::instant(*at))).collect();
    if disrupted.is_empty() {
        status.remove("disruptedPods");
    } else {
        status.insert("disruptedPods".into(), Value::Object(disrupted));
    }
}
