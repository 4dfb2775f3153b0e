//! Names on the wire: labels, annotations, finalizers, condition types and taints.

use convoy_api::well_known::taint;

/// The label of a pod that says which revision it was created from.
pub(crate) const REVISION_HASH: &str = "controller-revision-hash";
/// On pods of a DaemonSet: its generation when the pod was created.
pub(crate) const TEMPLATE_GENERATION: &str = "pod-template-generation";
/// On pods of a StatefulSet: their own name, for Services that select one pod.
pub(crate) const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
/// On pods of a StatefulSet: their ordinal.
pub(crate) const POD_INDEX: &str = "apps.kubernetes.io/pod-index";
/// On pods of an indexed Job: their index, as a label and as an annotation.
pub(crate) const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// On pods of a Job whose indexes have a limit of failures each: how often pods of the index
/// failed before, and how often without being counted.
pub(crate) const INDEX_FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
pub(crate) const INDEX_IGNORED_FAILURES: &str =
    "batch.kubernetes.io/job-index-ignored-failure-count";
/// On pods of a Job, until they are counted.
pub(crate) const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// On Jobs of a CronJob: the time that they were due, in the zone of the schedule.
pub(crate) const SCHEDULED_TIMESTAMP: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// The controller of a Job that names none in `spec.managedBy`: this one.
pub(crate) const JOB_CONTROLLER: &str = "kubernetes.io/job-controller";

/// Conditions of a Job.
pub(crate) const SUSPENDED: &str = "Suspended";
pub(crate) const COMPLETE: &str = "Complete";
pub(crate) const FAILED: &str = "Failed";
/// Conditions of a Job that announce how it will end, while pods are still there.
pub(crate) const SUCCESS_CRITERIA_MET: &str = "SuccessCriteriaMet";
pub(crate) const FAILURE_TARGET: &str = "FailureTarget";

/// Taints that every daemon pod tolerates, with their effect: daemons have to run on nodes that
/// are in trouble.
pub(crate) const DAEMON_TOLERATIONS: [(&str, &str); 6] = [
    (taint::NOT_READY, "NoExecute"),
    (taint::UNREACHABLE, "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    (taint::UNSCHEDULABLE, "NoSchedule"),
];
/// The same for daemon pods on the network of their host.
pub(crate) const HOST_NETWORK_TOLERATION: (&str, &str) =
    ("node.kubernetes.io/network-unavailable", "NoSchedule");
