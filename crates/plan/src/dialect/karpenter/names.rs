//! Labels, annotations, taints and kinds, the API group's own and Kubernetes'.

use convoy_api::GroupKind;
pub(crate) use convoy_api::karpenter::names::*;
pub(crate) use convoy_api::kinds::{DAEMON_SET, NODE, POD, POD_DISRUPTION_BUDGET};
pub(crate) use convoy_api::well_known::annotation::{CONFIG_MIRROR, POD_DELETION_COST, SIMULATED};
use convoy_api::well_known::{former_label, taint};

pub(crate) const VOLUME_ATTACHMENT: GroupKind =
    GroupKind::new("storage.k8s.io", "VolumeAttachment");

/// On a NodePool: `convoy pause` added a budget of 0 nodes.
pub(crate) const PAUSED: &str = "convoy/paused";

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
