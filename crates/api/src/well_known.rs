//! Labels, annotations, taints and types that are Kubernetes' own, or Convoy's, and that more than
//! one part of Convoy names. A dialect's own names stand in its `names`.

/// The domain of names that are Kubernetes' own.
pub const DOMAIN: &str = "kubernetes.io/";

pub mod label {
    /// On nodes.
    pub const HOSTNAME: &str = "kubernetes.io/hostname";
    pub const ARCH: &str = "kubernetes.io/arch";
    pub const OS: &str = "kubernetes.io/os";
    pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
    pub const REGION: &str = "topology.kubernetes.io/region";
    pub const ZONE: &str = "topology.kubernetes.io/zone";
    /// On namespaces: their name.
    pub const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";
    /// On pods: the uid of the Job that made them.
    pub const JOB_UID: &str = "batch.kubernetes.io/controller-uid";
    /// On EndpointSlices: their Service.
    pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
    /// On Endpoints: no slices are made of them.
    pub const SKIP_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";
    /// On EndpointSlices: the controller that writes them.
    pub const SLICE_MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
}

/// Labels of nodes that those of [`label`] have replaced.
pub mod former_label {
    pub const ARCH: &str = "beta.kubernetes.io/arch";
    pub const OS: &str = "beta.kubernetes.io/os";
    pub const INSTANCE_TYPE: &str = "beta.kubernetes.io/instance-type";
    pub const REGION: &str = "failure-domain.beta.kubernetes.io/region";
    pub const ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
}

pub mod annotation {
    /// On nodes that Convoy's kubelets simulate: `"true"`.
    pub const SIMULATED: &str = "sim.convoy.dev/node";
    /// On pods: what a `LimitRange` has filled in.
    pub const LIMIT_RANGER: &str = "kubernetes.io/limit-ranger";
    /// On claims for volumes, from before they had a field for it.
    pub const STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
    /// On storage classes.
    pub const IS_DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
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

/// Types of Secrets.
pub mod secret_type {
    pub const SERVICE_ACCOUNT_TOKEN: &str = "kubernetes.io/service-account-token";
    pub const TLS: &str = "kubernetes.io/tls";
}

/// Who signs certificates of clients.
pub const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
