//! Evictions, as PodDisruptionBudgets allow them.

use convoy_api::kinds::POD_DISRUPTION_BUDGET;
use convoy_api::{Object, ObjectKey};
use convoy_plan::selector::Selector;
use serde_json::{Value, json};

use super::{Light, Refused, place};
use crate::kubelet::stamp;
use crate::shared_object::SharedObject;

impl Light {
    /// Deletes a pod if every budget over it has a disruption left, and takes one of each.
    pub(super) fn evict(
        &mut self,
        key: &ObjectKey,
        eviction: &Value,
    ) -> Result<(u16, SharedObject), Refused> {
        let pod = self.objects.get(&place(key)).ok_or((404, "NotFound"))?.clone();
        let budgets = self.budgets_over(&pod)?;
        if !pod.is_deleting() && pod.condition_status("Ready") == Some("True") {
            if budgets.iter().any(|budget| left(budget) <= 0) {
                return Err((429, "TooManyRequests"));
            }
            let is_behind = |budget: &Object| {
                budget.status()["observedGeneration"].as_i64().unwrap_or(0) < budget.generation()
            };
            if budgets.iter().any(is_behind) {
                return Err((429, "TooManyRequests"));
            }
            for budget in budgets {
                let mut raw = budget.raw().clone();
                raw["status"]["disruptionsAllowed"] = json!(left(&budget) - 1);
                // Until the deletion is seen, the pod counts as one that is going.
                raw["status"]["disruptedPods"][pod.name().as_str()] = json!(stamp(self.now));
                self.restore(&budget, raw);
            }
        }
        let options = eviction.get("deleteOptions").unwrap_or(&Value::Null);
        self.delete(key, options).map(|(_, object)| (201, object))
    }

    fn budgets_over(&self, pod: &Object) -> Result<Vec<Object>, Refused> {
        let mut over = Vec::new();
        let known = self.budgets.iter().filter_map(|key| self.objects.get(&place(key)));
        for budget in known.filter(|budget| budget.namespace() == pod.namespace()) {
            let selector = Selector::from_value(&budget.spec()["selector"]);
            if selector.map_err(|_| (500, "InternalError"))?.matches(pod) {
                over.push(budget.clone());
            }
        }
        Ok(over)
    }

    /// Keeps the names of the budgets, so that an eviction does not look through every object.
    pub(super) fn note_budget(&mut self, object: &Object) {
        if *object.kind() == POD_DISRUPTION_BUDGET {
            self.budgets.insert(object.key().clone());
        }
    }
}

fn left(budget: &Object) -> i64 {
    budget.status()["disruptionsAllowed"].as_i64().unwrap_or(0)
}
