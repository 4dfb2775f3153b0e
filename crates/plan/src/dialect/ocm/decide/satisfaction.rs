//! Whether a placement has the clusters it asks for, and if not, what is missing.

use convoy_api::Object;

use super::schedule::Schedule;
use crate::dialect::ocm::names::NOT_ALL_DECISIONS_SCHEDULED;
use crate::dialect::ocm::read::placement::{Misconfiguration, cluster_sets};

/// Whether a placement has the clusters it asks for, in the words of its conditions.
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
            let asked = cluster_sets(placement).collect::<Vec<_>>().join(",");
            let message =
                format!("None of ManagedClusterSets [{asked}] is bound to placement namespace");
            no("NoIntersection", message)
        } else if let Some(error) = &eligibility.error {
            no(NOT_ALL_DECISIONS_SCHEDULED, error.clone())
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
            no(NOT_ALL_DECISIONS_SCHEDULED, message)
        };
        Self { satisfied, reason, message, misconfigured: None }
    }

    /// A placement that cannot be read keeps what it has, and says so.
    pub(crate) fn misconfigured(wrong: &Misconfiguration) -> Self {
        let message = format!("{}:{}", wrong.plugin, wrong.message);
        Self {
            satisfied: false,
            reason: NOT_ALL_DECISIONS_SCHEDULED,
            message: wrong.message.clone(),
            misconfigured: Some(message),
        }
    }
}
