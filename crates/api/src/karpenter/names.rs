//! Labels, annotations, taints, finalizers and condition types that objects carry.

use crate::object::GroupKind;

pub const GROUP: &str = "karpenter.sh";
pub const NODE_POOL: GroupKind = GroupKind::new(GROUP, "NodePool");
pub const NODE_CLAIM: GroupKind = GroupKind::new(GROUP, "NodeClaim");
pub const KWOK_GROUP: &str = "karpenter.kwok.sh";
pub const KWOK_NODE_CLASS: GroupKind = GroupKind::new(KWOK_GROUP, "KWOKNodeClass");

/// Labels.
pub mod label {
    pub use crate::well_known::label::{HOSTNAME, INSTANCE_TYPE, REGION, ZONE};

    pub const NODE_POOL: &str = "karpenter.sh/nodepool";
    pub const INITIALIZED: &str = "karpenter.sh/initialized";
    pub const REGISTERED: &str = "karpenter.sh/registered";
    pub const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
    /// `true` on a NodeClaim whose Node keeps the taints that it came with.
    pub const DO_NOT_SYNC_TAINTS: &str = "karpenter.sh/do-not-sync-taints";
    /// Keeps load balancers from sending traffic to a node that is being drained.
    pub const EXCLUDE_BALANCERS: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
}

/// Annotations. Those under `convoy.dev/` are ours; the rest is upstream's.
pub mod annotation {
    pub const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";
    pub const HASH: &str = "karpenter.sh/nodepool-hash";
    pub const HASH_VERSION: &str = "karpenter.sh/nodepool-hash-version";
    pub const TERMINATION_TIMESTAMP: &str = "karpenter.sh/nodeclaim-termination-timestamp";

    /// On a NodePool: `all` or `unlisted`, what a budget without reasons covers.
    pub const DEFAULT_BUDGET: &str = "convoy.dev/default-budget";
    /// On a NodePool: `forceful` or `budgeted`.
    pub const EXPIRATION: &str = "convoy.dev/expiration";
    /// On a NodePool: the IANA zone of its schedules.
    pub const TIME_ZONE: &str = "convoy.dev/budget-time-zone";
    /// On a NodePool converted from `v1beta1`: its kubelet settings, verbatim.
    pub const KUBELET: &str = "convoy.dev/v1beta1-kubelet";
    /// On a NodePool converted from `v1beta1`: its `spec.disruption`, verbatim.
    pub const DISRUPTION: &str = "convoy.dev/v1beta1-disruption";
    /// On a NodePool converted from `v1beta1`: `resources` of its template, verbatim.
    pub const RESOURCES: &str = "convoy.dev/v1beta1-resources";
    /// On a NodePool shown as `v1beta1`: the fields of its spec that only `v1` has.
    pub const ONLY_V1: &str = "convoy.dev/v1-fields";
    /// On a NodePool converted from `v1beta1`: the version of its node class.
    pub const CLASS_VERSION: &str = "convoy.dev/v1beta1-node-class-version";
    /// On a NodePool: the last results of node registrations (see the concepts page).
    pub const REGISTRATIONS: &str = "convoy.dev/node-registrations";
    /// On a NodeClaim: the disruption it is part of (see the concepts page).
    pub const COMMAND: &str = "convoy.dev/disruption-command";
    /// On a NodeClaim: a disruption that starts once it has stayed sensible for a while.
    pub const PROPOSAL: &str = "convoy.dev/disruption-proposal";
    /// On a NodeClaim that takes the place of others: the disruption it belongs to.
    pub const REPLACES: &str = "convoy.dev/replaces";
    /// On a `KWOKNodeClass`: instance types, zones or capacity types that the simulated provider
    /// has no machines of, separated by commas.
    pub const SOLD_OUT: &str = "convoy.dev/sold-out";
    /// On a `KWOKNodeClass`: the image of new simulated machines. Those of another have drifted.
    pub const IMAGE: &str = "convoy.dev/image";
    /// On a `KWOKNodeClass`: the share of NodeClaims that the simulated provider does not launch,
    /// as `20%`.
    pub const LAUNCH_FAILURES: &str = "convoy.dev/launch-failures";
    /// On a `KWOKNodeClass`: how long the end of a simulated machine takes.
    pub const TERMINATION_DELAY: &str = "convoy.dev/termination-delay";
    /// On a NodeClaim, said by the provider: `Interrupted` if it takes the machine back, and on one
    /// that is being deleted `Terminated` once nothing is left.
    pub const INSTANCE: &str = "convoy.dev/instance-state";
}

/// The version of the NodePool hash.
pub const HASH_VERSION: &str = "v3";

/// Keeps pods off a node that is about to be disrupted. Effect `NoSchedule`, no value.
pub const DISRUPTED_TAINT: &str = "karpenter.sh/disrupted";
/// Keeps pods off a Node that its NodeClaim does not know yet. Effect `NoExecute`.
pub const UNREGISTERED_TAINT: &str = "karpenter.sh/unregistered";
pub const FINALIZER: &str = "karpenter.sh/termination";

/// Condition types.
pub mod condition {
    pub const LAUNCHED: &str = "Launched";
    pub const REGISTERED: &str = "Registered";
    pub const INITIALIZED: &str = "Initialized";
    pub const READY: &str = "Ready";
    pub const CONSOLIDATABLE: &str = "Consolidatable";
    pub const DRIFTED: &str = "Drifted";
    pub const EXPIRED: &str = "Expired";
    pub const DISRUPTION_REASON: &str = "DisruptionReason";
    pub const DRAINED: &str = "Drained";
    pub const VOLUMES_DETACHED: &str = "VolumesDetached";
    pub const INSTANCE_TERMINATING: &str = "InstanceTerminating";
    pub const CONSISTENT_STATE_FOUND: &str = "ConsistentStateFound";
    pub const VALIDATION_SUCCEEDED: &str = "ValidationSucceeded";
    pub const NODE_CLASS_READY: &str = "NodeClassReady";
    pub const NODE_REGISTRATION_HEALTHY: &str = "NodeRegistrationHealthy";
    pub const DISRUPTION_BUDGETS_VALID: &str = "DisruptionBudgetsValid";
}
