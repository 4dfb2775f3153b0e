//! What a placement's status says: how many clusters, which groups, and the two conditions.

use std::borrow::Cow;

use convoy_api::Object;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::condition::{self, Condition};
use crate::count;
use crate::dialect::ocm::decide::group::Group;
use crate::dialect::ocm::decide::placement::{Decision, Wanted};
use crate::dialect::ocm::decide::satisfaction::Satisfaction;
use crate::dialect::ocm::decide::slice::Slice;
use crate::dialect::ocm::names::{PLACEMENT_MISCONFIGURED, PLACEMENT_SATISFIED};

/// The whole status with new conditions and, unless they are to stay, new groups; none if it
/// reads so already.
pub(crate) fn status(placement: &Object, decision: &Decision<'_>, now: Timestamp) -> Option<Value> {
    let satisfaction = decision.satisfaction.as_ref()?;
    let mut status = placement.status().as_object().cloned().unwrap_or_default();
    if let Some(Wanted { groups, slices }) = &decision.wanted {
        let selected: usize = groups.iter().map(|group| group.clusters.len()).sum();
        status.insert("numberOfSelectedClusters".into(), json!(count(selected)));
        status.insert("decisionGroups".into(), Value::Array(group_entries(groups, slices)));
    } else {
        status.entry("numberOfSelectedClusters").or_insert(json!(0));
        status.entry("decisionGroups").or_insert(json!([]));
    }
    let conditions = status.get("conditions").and_then(Value::as_array);
    let mut conditions = conditions.cloned().unwrap_or_default();
    for wanted in conditions_of(satisfaction) {
        condition::set(&mut conditions, &wanted, now);
    }
    status.insert("conditions".into(), Value::Array(conditions));
    let status = Value::Object(status);
    (status != *placement.status()).then_some(status)
}

/// The groups as the status lists them.
fn group_entries(groups: &[Group<'_>], slices: &[Slice<'_>]) -> Vec<Value> {
    let mut entries = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let own = slices.iter().filter(|slice| slice.group == index);
        let names: Vec<&str> = own.map(|slice| slice.name.as_str()).collect();
        entries.push(json!({
            "decisionGroupIndex": index,
            "decisionGroupName": group.name,
            "decisions": names,
            "clusterCount": group.clusters.len(),
        }));
    }
    entries
}

fn conditions_of(satisfaction: &Satisfaction) -> [Condition<'_>; 2] {
    let condition = |kind: &'static str, holds, reason: &'static str, message| {
        Condition::new(kind, condition::truth(holds), reason, Cow::Borrowed(message))
    };
    let misconfigured = if let Some(message) = &satisfaction.misconfigured {
        condition(PLACEMENT_MISCONFIGURED, true, "Misconfigured", message)
    } else {
        let message = "Placement configurations check pass";
        condition(PLACEMENT_MISCONFIGURED, false, "Succeedconfigured", message)
    };
    let Satisfaction { satisfied, reason, message, .. } = satisfaction;
    [misconfigured, condition(PLACEMENT_SATISFIED, *satisfied, reason, message)]
}
