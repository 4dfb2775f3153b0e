//! What the agent says about its cluster, beside what the hub says.

use convoy_api::Object;
use convoy_api::object::member::list;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::decide::{Registration, Report};
use super::names::{CLUSTER_AVAILABLE, JOINED};
use crate::condition::{self, Condition};

/// The status of the `ManagedCluster`. None: it reads so already.
pub(crate) fn status(
    cluster: &Object,
    registration: &Registration<'_>,
    now: Timestamp,
) -> Option<Value> {
    let Registration::Accepted { report: Some(report), .. } = registration else { return None };
    let mut status = cluster.status().as_object().cloned().unwrap_or_default();
    let mut conditions = list(cluster.status(), "conditions").to_vec();
    let joined = Condition::new(JOINED, "True", JOINED, "Managed cluster joined");
    // The agent could not say so if the API server of the cluster did not answer.
    let available = Condition::new(
        CLUSTER_AVAILABLE,
        "True",
        "ManagedClusterAvailable",
        "Managed cluster is available",
    );
    for wanted in [joined, available] {
        condition::set(&mut conditions, &wanted, now);
    }
    status.insert("conditions".into(), Value::Array(conditions));
    tell(&mut status, report);
    let status = Value::Object(status);
    (status != *cluster.status()).then_some(status)
}

fn tell(status: &mut Map<String, Value>, report: &Report) {
    // Others may report resources too.
    let before = status.get("capacity").and_then(Value::as_object).cloned();
    let mut capacity = before.unwrap_or_default();
    capacity.extend(report.capacity.clone());
    let mut say = |name: &str, value: Value, is_empty: bool| {
        if is_empty {
            status.remove(name);
        } else {
            status.insert(name.into(), value);
        }
    };
    let is_empty = capacity.is_empty();
    say("capacity", Value::Object(capacity), is_empty);
    let allocatable = &report.allocatable;
    say("allocatable", Value::Object(allocatable.clone()), allocatable.is_empty());
    say("clusterClaims", json!(report.claims), report.claims.is_empty());
    if !report.version.is_empty() {
        say("version", json!({"kubernetes": report.version}), false);
    }
}
