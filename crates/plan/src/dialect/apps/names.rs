//! Names on the wire: condition types and reasons of Deployments and ReplicaSets, in the words of
//! Kubernetes. Labels and annotations are in [`convoy_api::apps`].

/// The name of Deployments in plans, metrics and logs, and of both kinds in a plan.
pub(crate) const APPS: &str = "apps";
/// The name of the controller of ReplicaSets in metrics and logs.
pub(crate) const REPLICA_SETS: &str = "replicasets";

pub(crate) const PROGRESSING: &str = "Progressing";
pub(crate) const AVAILABLE: &str = "Available";
pub(crate) const REPLICA_FAILURE: &str = "ReplicaFailure";
/// Ours: the Deployment went back to an earlier revision by itself.
pub(crate) const ROLLED_BACK: &str = "RolledBack";

/// Reasons of `Progressing`.
pub(crate) const TIMED_OUT: &str = "ProgressDeadlineExceeded";
pub(crate) const COMPLETE: &str = "NewReplicaSetAvailable";
pub(crate) const PAUSED: &str = "DeploymentPaused";

/// On a template: `kubectl rollout restart` makes a new revision by it.
pub(crate) const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";
/// On a Deployment and its ReplicaSets, by people: why a revision was made.
pub(crate) const CHANGE_CAUSE: &str = "kubernetes.io/change-cause";
