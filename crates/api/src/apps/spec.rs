//! Specs of Deployments, ReplicaSets, DaemonSets, StatefulSets, Jobs, CronJobs and
//! PodDisruptionBudgets as typed views.
//!
//! The templates of pods and Jobs, the selector of controllers and the volume claim templates are
//! left out: they are compared, hashed and copied as the JSON that arrived, and reading a view must
//! not clone them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize;

use crate::text::CountOrPercent;

/// `spec` of a Deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentSpec {
    pub replicas: Option<i64>,
    pub strategy: Option<UpdateStrategy>,
    pub min_ready_seconds: Option<i64>,
    pub revision_history_limit: Option<i64>,
    pub progress_deadline_seconds: Option<i64>,
    pub paused: Option<bool>,
}

/// `spec` of a ReplicaSet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaSetSpec {
    pub replicas: Option<i64>,
    pub min_ready_seconds: Option<i64>,
}

/// `spec` of a DaemonSet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonSetSpec {
    pub update_strategy: Option<UpdateStrategy>,
    pub min_ready_seconds: Option<i64>,
    pub revision_history_limit: Option<i64>,
}

/// `spec` of a StatefulSet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatefulSetSpec {
    pub replicas: Option<i64>,
    pub ordinals: Option<Ordinals>,
    pub pod_management_policy: Option<String>,
    pub update_strategy: Option<UpdateStrategy>,
    pub min_ready_seconds: Option<i64>,
    pub revision_history_limit: Option<i64>,
}

/// Which number the first pod of a StatefulSet has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Ordinals {
    pub start: Option<i64>,
}

/// `spec.strategy` of a Deployment, `spec.updateStrategy` of a DaemonSet or a StatefulSet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStrategy {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub rolling_update: Option<RollingUpdate>,
}

/// Parameters of a rolling update; StatefulSets have the partition, the others the budgets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RollingUpdate {
    pub max_unavailable: Option<CountOrPercent>,
    pub max_surge: Option<CountOrPercent>,
    pub partition: Option<i64>,
}

/// `spec` of a Job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobSpec {
    pub parallelism: Option<i64>,
    pub completions: Option<i64>,
    pub completion_mode: Option<String>,
    pub backoff_limit: Option<i64>,
    pub backoff_limit_per_index: Option<i64>,
    pub max_failed_indexes: Option<i64>,
    pub active_deadline_seconds: Option<i64>,
    pub ttl_seconds_after_finished: Option<i64>,
    pub suspend: Option<bool>,
    pub pod_replacement_policy: Option<String>,
}

/// An entry of `spec.podFailurePolicy.rules` of a Job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodFailureRule {
    pub action: Option<String>,
    pub on_exit_codes: Option<ExitCodes>,
    pub on_pod_conditions: Option<Vec<PodConditionPattern>>,
}

/// Which exit codes of which container a rule is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExitCodes {
    /// Absent: any container.
    pub container_name: Option<String>,
    /// `In` or `NotIn`.
    pub operator: Option<String>,
    pub values: Option<Vec<i64>>,
}

/// A condition of a pod that a rule is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct PodConditionPattern {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Absent: `True`.
    pub status: Option<String>,
}

/// `spec` of a PodDisruptionBudget.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodDisruptionBudgetSpec {
    /// Absent: no pods.
    pub selector: Option<LabelSelector>,
    pub max_unavailable: Option<CountOrPercent>,
    pub min_available: Option<CountOrPercent>,
}

/// `spec` of a CronJob.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CronJobSpec {
    pub schedule: Option<String>,
    pub time_zone: Option<String>,
    pub starting_deadline_seconds: Option<i64>,
    pub concurrency_policy: Option<String>,
    pub suspend: Option<bool>,
    pub successful_jobs_history_limit: Option<i64>,
    pub failed_jobs_history_limit: Option<i64>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::view::view_of;

    #[test]
    fn templates_are_passed_over_and_nulls_read_as_absent() {
        let spec = json!({"replicas": 3, "paused": null, "template": {"spec": {"containers": [1]}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}}});
        let spec: DeploymentSpec = view_of(&spec).unwrap();
        assert_eq!((spec.replicas, spec.paused), (Some(3), None));
        let rolling = spec.strategy.unwrap().rolling_update.unwrap();
        assert_eq!(rolling.max_surge, Some(CountOrPercent::Text("25%".to_owned())));
    }

    #[test]
    fn a_wrong_type_names_its_field() {
        let spec = json!({"updateStrategy": {"rollingUpdate": {"maxSurge": []}}});
        let error = view_of::<DaemonSetSpec>(&spec).unwrap_err();
        assert_eq!(error.field, "updateStrategy.rollingUpdate.maxSurge");
    }
}
