//! A plan as JSON: the stable, documented shape that `convoy plan -o json` prints.

use serde_json::{Map, Value, json};

use crate::{Plan, Step};

impl Plan {
    /// The whole plan, keys in their documented order.
    pub fn to_json(&self) -> Value {
        json!({
            "now": self.now.to_string(),
            "diagnostics": self.diagnostics,
            "rollouts": self.steps.iter().map(Step::to_json).collect::<Vec<_>>(),
        })
    }
}

impl Step {
    /// One rollout of the plan.
    pub fn to_json(&self) -> Value {
        let namespace = (!self.rollout.namespace.is_empty()).then_some(&self.rollout.namespace);
        let mut step = Map::new();
        let mut put = |key: &str, value: Value| step.insert(key.to_owned(), value);
        put("dialect", json!(self.dialect));
        let (kind, name) = (&self.rollout.kind.kind, &self.rollout.name);
        put(
            "object",
            json!({"apiVersion": self.api_version, "kind": kind, "namespace": namespace, "name": name}),
        );
        put("verdict", json!(self.verdict));
        put("decision", self.decision.clone());
        put("groups", json!(self.groups));
        put("actions", json!(self.actions));
        put("holds", json!(self.holds));
        put("status", self.status.clone().unwrap_or_default());
        put("events", json!(self.events));
        put("wakeAt", json!(self.wake_at.map(|at| at.to_string())));
        Value::Object(step)
    }
}
