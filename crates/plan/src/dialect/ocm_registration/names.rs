//! The words of the registration agent. Those that it shares with the hub are in the names of
//! `ocm`.

pub(crate) use crate::dialect::ocm::names::{
    CLOCK_SYNCED, CLUSTER_AVAILABLE, CLUSTER_LEASE, HUB_ACCEPTED,
};

/// The word that decision logs use.
pub const DIALECT: &str = "ocm-registration";

/// The field manager of the agent.
pub const REGISTRATION_AGENT: &str = "registration-agent";

/// A condition of a managed cluster.
pub(crate) const JOINED: &str = "ManagedClusterJoined";

/// Claims that are always reported.
pub(crate) const RESERVED_CLAIMS: [&str; 4] = [
    "id.k8s.io",
    "kubeversion.open-cluster-management.io",
    "platform.open-cluster-management.io",
    "product.open-cluster-management.io",
];

/// On a claim that stays on its cluster.
pub(crate) const MEMBER_ONLY: &str = "open-cluster-management.io/spoke-only";
