//! What a placement's status says: how many clusters, which groups, and the two conditions.

use std::borrow::Cow;

use convoy_api::Object;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::condition::{self, Condition};
use crate::dialect::ocm::decide::group::{Group, count};
use crate::dialect::ocm::decide::schedule::Schedule;
use crate::dialect::ocm::list;
use crate::dialect::ocm::read::placement::Misconfiguration;
use crate::dialect::ocm::write::slice::Slice;

/// What the conditions say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Satisfaction {
    pub(crate) satisfied: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// `plugin:message`, where the placement is not sound.
    pub(crate) misconfigured: Option<String>,
}

impl Satisfaction {
    /// The first that applies, from "nowhere to look" to "all there".
    pub(crate) fn of(placement: &Object, schedule: &Schedule<'_>) -> Self {
        let eligibility = &schedule.eligibility;
        let no = |reason, message: String| (false, reason, message);
        let (satisfied, reason, message) = if !eligibility.bound {
            let message = "No valid ManagedClusterSetBindings found in placement namespace";
            no("NoManagedClusterSetBindings", message.to_owned())
        } else if eligibility.sets.is_empty() {
            let asked = list(placement.spec().get("clusterSets")).iter().filter_map(Value::as_str);
            let asked = asked.collect::<Vec<_>>().join(",");
            let message =
                format!("None of ManagedClusterSets [{asked}] is bound to placement namespace");
            no("NoIntersection", message)
        } else if let Some(error) = &eligibility.error {
            no("NotAllDecisionsScheduled", error.clone())
        } else if eligibility.candidates == 0 {
            let sets = eligibility.sets.join(",");
            let message = format!("All ManagedClusterSets [{sets}] have no member ManagedCluster");
            no("AllManagedClusterSetsEmpty", message)
        } else if schedule.selected.is_empty() {
            let message = "No ManagedCluster matches any of the cluster predicate";
            no("NoManagedClusterMatched", message.to_owned())
        } else if schedule.unscheduled == 0 {
            (true, "AllDecisionsScheduled", "All cluster decisions scheduled".to_owned())
        } else {
            let message = format!("{} cluster decisions unscheduled", schedule.unscheduled);
            no("NotAllDecisionsScheduled", message)
        };
        Self { satisfied, reason, message, misconfigured: None }
    }

    /// A placement that cannot be read keeps what it has, and says so.
    pub(crate) fn misconfigured(wrong: &Misconfiguration) -> Self {
        let message = format!("{}:{}", wrong.plugin, wrong.message);
        Self {
            satisfied: false,
            reason: "NotAllDecisionsScheduled",
            message: wrong.message.clone(),
            misconfigured: Some(message),
        }
    }
}

/// The groups as the status lists them.
pub(crate) fn group_entries(groups: &[Group<'_>], slices: &[Slice<'_>]) -> Vec<Value> {
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

/// The whole status with new conditions and, unless they are to stay, new groups; none if it
/// reads so already.
pub(crate) fn status(
    placement: &Object,
    groups: Option<(&[Group<'_>], &[Slice<'_>])>,
    satisfaction: &Satisfaction,
    now: Timestamp,
) -> Option<Value> {
    let mut status = placement.status().as_object().cloned().unwrap_or_default();
    if let Some((groups, slices)) = groups {
        let selected: usize = groups.iter().map(|group| group.clusters.len()).sum();
        status.insert("numberOfSelectedClusters".into(), json!(count(selected)));
        status.insert("decisionGroups".into(), Value::Array(group_entries(groups, slices)));
    } else {
        status.entry("numberOfSelectedClusters").or_insert(json!(0));
        status.entry("decisionGroups").or_insert(json!([]));
    }
    let mut conditions = list(status.get("conditions")).to_vec();
    for wanted in conditions_of(satisfaction) {
        condition::set(&mut conditions, &wanted, now);
    }
    status.insert("conditions".into(), Value::Array(conditions));
    changed(placement, status)
}

pub(crate) fn changed(placement: &Object, status: Map<String, Value>) -> Option<Value> {
    let status = Value::Object(status);
    (status != *placement.status()).then_some(status)
}

fn conditions_of(satisfaction: &Satisfaction) -> [Condition<'_>; 2] {
    let condition = |kind: &'static str, holds, reason: &'static str, message| Condition {
        kind: kind.into(),
        status: if holds { "True" } else { "False" },
        reason: reason.into(),
        message: Cow::Borrowed(message),
        observed_generation: None,
    };
    let misconfigured = if let Some(message) = &satisfaction.misconfigured {
        condition("PlacementMisconfigured", true, "Misconfigured", message)
    } else {
        let message = "Placement configurations check pass";
        condition("PlacementMisconfigured", false, "Succeedconfigured", message)
    };
    let Satisfaction { satisfied, reason, message, .. } = satisfaction;
    [misconfigured, condition("PlacementSatisfied", *satisfied, reason, message)]
}
