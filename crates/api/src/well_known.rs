//! Labels, annotations and taints that are Kubernetes' own and that more than one part of Convoy
//! names. A dialect's own names stand in its `names`.

/// The domain of names that are Kubernetes' own.
pub const DOMAIN: &str = "kubernetes.io/";

pub mod label {
    /// On nodes.
    pub const HOSTNAME: &str = "kubernetes.io/hostname";
    pub const REGION: &str = "topology.kubernetes.io/region";
    pub const ZONE: &str = "topology.kubernetes.io/zone";
    /// On EndpointSlices: the controller that writes them.
    pub const SLICE_MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
}

pub mod annotation {
    /// On whatever `kubectl apply` wrote: the manifest.
    pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
    /// On Deployments and their ReplicaSets.
    pub const DEPLOYMENT_REVISION: &str = "deployment.kubernetes.io/revision";
    /// On the mirror of a static pod, which its kubelet runs from a file.
    pub const CONFIG_MIRROR: &str = "kubernetes.io/config.mirror";
    /// On pods: the least goes first when their number shrinks.
    pub const POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
}

/// Keys of the taints that Kubernetes puts on nodes.
pub mod taint {
    pub const NOT_READY: &str = "node.kubernetes.io/not-ready";
    pub const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
    /// Of a cordoned node.
    pub const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
}
