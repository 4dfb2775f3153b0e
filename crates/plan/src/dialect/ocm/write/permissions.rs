//! What the hub of managed clusters does to objects.

use convoy_api::kinds::{CLUSTER_ROLE, CLUSTER_ROLE_BINDING, LEASE, NAMESPACE, ROLE_BINDING};
use convoy_api::ocm::names::{
    MANAGED_CLUSTER, MANAGED_CLUSTER_SET, MANAGED_CLUSTER_SET_BINDING, MANIFEST_WORK,
    MANIFEST_WORK_REPLICA_SET, PLACEMENT, PLACEMENT_DECISION,
};

use crate::permission::ApiVerb::{BlockDeletion, Create, Delete, Patch, PatchStatus};
use crate::permission::{Permission, Within};

/// Of all parts.
pub(crate) const PERMISSIONS: &[Permission] = &[
    Permission {
        kind: MANAGED_CLUSTER,
        verbs: &[Patch, PatchStatus],
        within: Within::Everywhere,
        why: "Finalizers and taints; Convoy accepts no cluster.",
    },
    Permission {
        kind: MANAGED_CLUSTER_SET,
        verbs: &[Create, Patch, PatchStatus],
        within: Within::Everywhere,
        why: "The sets default and global.",
    },
    Permission {
        kind: MANAGED_CLUSTER_SET_BINDING,
        verbs: &[PatchStatus],
        within: Within::Everywhere,
        why: "",
    },
    Permission {
        kind: PLACEMENT,
        verbs: &[BlockDeletion, PatchStatus],
        within: Within::Everywhere,
        why: "Decisions have owners.",
    },
    Permission {
        kind: PLACEMENT_DECISION,
        verbs: &[Create, Patch, PatchStatus, Delete],
        within: Within::Everywhere,
        why: "",
    },
    Permission {
        kind: MANIFEST_WORK_REPLICA_SET,
        verbs: &[Patch, PatchStatus],
        within: Within::Everywhere,
        why: "",
    },
    Permission {
        kind: MANIFEST_WORK,
        verbs: &[Create, Patch, Delete],
        within: Within::Everywhere,
        why: "",
    },
    Permission {
        kind: NAMESPACE,
        verbs: &[Create],
        within: Within::Everywhere,
        why: "An accepted cluster has a namespace, and in it a Lease that its agent renews.",
    },
    Permission { kind: LEASE, verbs: &[Create], within: Within::Everywhere, why: "" },
    Permission {
        kind: CLUSTER_ROLE,
        verbs: &[Create, Patch, Delete],
        within: Within::Everywhere,
        why: "What agents may do.",
    },
    Permission {
        kind: CLUSTER_ROLE_BINDING,
        verbs: &[Create, Patch, Delete],
        within: Within::Everywhere,
        why: "",
    },
    Permission {
        kind: ROLE_BINDING,
        verbs: &[Create, Patch, Delete],
        within: Within::Everywhere,
        why: "",
    },
];
