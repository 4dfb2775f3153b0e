//! Labels, annotations, taints and kinds, the API group's own and Kubernetes'.

use convoy_api::GroupKind;
pub(crate) use convoy_api::karpenter::names::*;
pub(crate) use convoy_api::kinds::{DAEMON_SET, NODE, POD, POD_DISRUPTION_BUDGET};
pub(crate) use convoy_api::well_known::annotation::{CONFIG_MIRROR, POD_DELETION_COST, SIMULATED};
use convoy_api::well_known::{former_label, taint};

pub(crate) const VOLUME_ATTACHMENT: GroupKind =
    GroupKind::new("storage.k8s.io", "VolumeAttachment");

/// The label by which claims and Nodes name their `KWOKNodeClass`.
pub(crate) const KWOK_CLASS_LABEL: &str = "karpenter.kwok.sh/kwoknodeclass";

/// On a NodePool: `convoy pause` added a budget of 0 nodes.
pub(crate) const PAUSED: &str = "convoy/paused";

/// The reasons of Events. All but two are upstream's.
pub(crate) mod event {
    pub(crate) const DISRUPTION_BLOCKED: &str = "DisruptionBlocked";
    pub(crate) const DISRUPTION_LAUNCHING: &str = "DisruptionLaunching";
    pub(crate) const DISRUPTION_TERMINATING: &str = "DisruptionTerminating";
    pub(crate) const DISRUPTION_WAITING_READINESS: &str = "DisruptionWaitingReadiness";
    /// Ours: a disruption was undone, because a replacement did not come.
    pub(crate) const DISRUPTION_ROLLED_BACK: &str = "DisruptionRolledBack";
    /// Ours: a budget cannot be evaluated, so that nothing of the pool is disrupted.
    pub(crate) const INVALID_BUDGET: &str = "InvalidBudget";
    pub(crate) const UNCONSOLIDATABLE: &str = "Unconsolidatable";
    pub(crate) const CONSOLIDATION_CANDIDATE: &str = "ConsolidationCandidate";
    pub(crate) const CONSOLIDATION_REJECTED: &str = "ConsolidationRejected";
    pub(crate) const CONSOLIDATION_APPROVED: &str = "ConsolidationApproved";
    pub(crate) const FAILED_SCHEDULING: &str = "FailedScheduling";
    pub(crate) const NO_COMPATIBLE_INSTANCE_TYPES: &str = "NoCompatibleInstanceTypes";
    pub(crate) const NOMINATED: &str = "Nominated";
    pub(crate) const NODE_REPAIR_BLOCKED: &str = "NodeRepairBlocked";
    pub(crate) const DISRUPTED: &str = "Disrupted";
    pub(crate) const EVICTED: &str = "Evicted";
    pub(crate) const FAILED_DRAINING: &str = "FailedDraining";
    pub(crate) const AWAITING_VOLUME_DETACHMENT: &str = "AwaitingVolumeDetachment";
    pub(crate) const TERMINATION_GRACE_PERIOD_EXPIRING: &str = "TerminationGracePeriodExpiring";
    pub(crate) const INVALID_DO_NOT_DISRUPT_ANNOTATION: &str = "InvalidDoNotDisruptAnnotation";
    pub(crate) const DO_NOT_DISRUPT_UNTIL: &str = "DoNotDisruptUntil";
    pub(crate) const DO_NOT_DISRUPT_GRACE_PERIOD_ELAPSED: &str = "DoNotDisruptGracePeriodElapsed";
    pub(crate) const FAILED_CONSISTENCY_CHECK: &str = "FailedConsistencyCheck";
    pub(crate) const INSUFFICIENT_CAPACITY_ERROR: &str = "InsufficientCapacityError";
    pub(crate) const UNREGISTERED_TAINT_MISSING: &str = "UnregisteredTaintMissing";

    /// All of them, as the list of the reference has them.
    #[cfg(test)]
    pub(crate) const ALL: &[&str] = &[
        DISRUPTION_BLOCKED,
        DISRUPTION_LAUNCHING,
        DISRUPTION_TERMINATING,
        DISRUPTION_WAITING_READINESS,
        DISRUPTION_ROLLED_BACK,
        INVALID_BUDGET,
        UNCONSOLIDATABLE,
        CONSOLIDATION_CANDIDATE,
        CONSOLIDATION_REJECTED,
        CONSOLIDATION_APPROVED,
        FAILED_SCHEDULING,
        NO_COMPATIBLE_INSTANCE_TYPES,
        NOMINATED,
        NODE_REPAIR_BLOCKED,
        DISRUPTED,
        EVICTED,
        FAILED_DRAINING,
        AWAITING_VOLUME_DETACHMENT,
        TERMINATION_GRACE_PERIOD_EXPIRING,
        INVALID_DO_NOT_DISRUPT_ANNOTATION,
        DO_NOT_DISRUPT_UNTIL,
        DO_NOT_DISRUPT_GRACE_PERIOD_ELAPSED,
        FAILED_CONSISTENCY_CHECK,
        INSUFFICIENT_CAPACITY_ERROR,
        UNREGISTERED_TAINT_MISSING,
    ];
}

/// Labels that the simulated provider and kubelets put on nodes.
pub(crate) mod node_label {
    pub(crate) use convoy_api::well_known::label::{ARCH, OS};

    pub(crate) const INSTANCE_FAMILY: &str = "karpenter.kwok.sh/instance-family";
    pub(crate) const INSTANCE_SIZE: &str = "karpenter.kwok.sh/instance-size";
    pub(crate) const INSTANCE_CPU: &str = "karpenter.kwok.sh/instance-cpu";
    pub(crate) const INSTANCE_MEMORY: &str = "karpenter.kwok.sh/instance-memory";
}

/// Labels that come from machines, or that Karpenter sets itself.
pub(crate) const WELL_KNOWN_LABELS: [&str; 13] = [
    label::NODE_POOL,
    label::CAPACITY_TYPE,
    label::INSTANCE_TYPE,
    label::ZONE,
    label::HOSTNAME,
    label::REGION,
    "node.kubernetes.io/windows-build",
    node_label::ARCH,
    node_label::OS,
    node_label::INSTANCE_FAMILY,
    node_label::INSTANCE_SIZE,
    node_label::INSTANCE_CPU,
    node_label::INSTANCE_MEMORY,
];

/// Beta labels and the stable labels that replace them.
pub(crate) const RENAMED_LABELS: [(&str, &str); 5] = [
    (former_label::ZONE, label::ZONE),
    (former_label::REGION, label::REGION),
    (former_label::ARCH, node_label::ARCH),
    (former_label::OS, node_label::OS),
    (former_label::INSTANCE_TYPE, label::INSTANCE_TYPE),
];

/// The effect with which [`DISRUPTED_TAINT`] keeps pods away.
pub(crate) const DISRUPTED_EFFECT: &str = "NoSchedule";

/// Taints, with their effects, that a node has while it comes up.
pub(crate) const EPHEMERAL_TAINTS: [(&str, &str); 5] = [
    (taint::NOT_READY, "NoSchedule"),
    (taint::NOT_READY, "NoExecute"),
    (taint::UNREACHABLE, "NoSchedule"),
    ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
    (UNREGISTERED_TAINT, "NoExecute"),
];

/// Others of these begin so.
pub(crate) const EPHEMERAL_PREFIX: &str = "readiness.k8s.io/";
