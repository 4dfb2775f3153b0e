//! What the hub of a fleet does to objects.

use convoy_api::kinds::NAMESPACE;

use crate::dialect::fleet::names::{self, Family};
use crate::permission::ApiVerb::{BlockDeletion, Create, Delete, Patch, PatchStatus};
use crate::permission::{Permission, Within};

/// Objects that placements select are read and not written.
pub(crate) const PERMISSIONS: &[Permission] = &[
    Permission {
        kind: Family::Cluster.placement(),
        verbs: &[Patch, PatchStatus, BlockDeletion],
        within: Within::Everywhere,
        why: "Finalizers and status; its copy in a namespace has an owner.",
    },
    Permission {
        kind: Family::Namespaced.placement(),
        verbs: &[Patch, PatchStatus],
        within: Within::Everywhere,
        why: "",
    },
    Permission {
        kind: Family::Cluster.run(),
        verbs: &[Patch, PatchStatus],
        within: Within::Everywhere,
        why: "",
    },
    Permission {
        kind: Family::Namespaced.run(),
        verbs: &[Patch, PatchStatus],
        within: Within::Everywhere,
        why: "",
    },
    Permission {
        kind: names::EVICTION,
        verbs: &[PatchStatus],
        within: Within::Everywhere,
        why: "",
    },
    Permission {
        kind: names::CLUSTER_OVERRIDE,
        verbs: &[Patch],
        within: Within::Everywhere,
        why: "Finalizers.",
    },
    Permission { kind: names::OVERRIDE, verbs: &[Patch], within: Within::Everywhere, why: "" },
    Permission {
        kind: Family::Cluster.resource_snapshot(),
        verbs: &[Create, Patch, Delete],
        within: Within::Everywhere,
        why: "",
    },
    Permission {
        kind: Family::Cluster.policy_snapshot(),
        verbs: &[Create, Patch, PatchStatus, Delete],
        within: Within::Everywhere,
        why: "",
    },
    Permission {
        kind: Family::Cluster.binding(),
        verbs: &[Create, Patch, PatchStatus, Delete],
        within: Within::Everywhere,
        why: "",
    },
    Permission {
        kind: Family::Cluster.approval_request(),
        verbs: &[Create, PatchStatus, Delete],
        within: Within::Everywhere,
        why: "",
    },
    Permission {
        kind: Family::Namespaced.resource_snapshot(),
        verbs: &[Create, Patch, Delete],
        within: Within::Everywhere,
        why: "",
    },
    Permission {
        kind: Family::Namespaced.policy_snapshot(),
        verbs: &[Create, Patch, PatchStatus, Delete],
        within: Within::Everywhere,
        why: "",
    },
    Permission {
        kind: Family::Namespaced.binding(),
        verbs: &[Create, Patch, PatchStatus, Delete],
        within: Within::Everywhere,
        why: "",
    },
    Permission {
        kind: Family::Namespaced.approval_request(),
        verbs: &[Create, PatchStatus, Delete],
        within: Within::Everywhere,
        why: "",
    },
    Permission {
        kind: names::CLUSTER_OVERRIDE_SNAPSHOT,
        verbs: &[Create, Patch, Delete],
        within: Within::Everywhere,
        why: "",
    },
    Permission {
        kind: names::OVERRIDE_SNAPSHOT,
        verbs: &[Create, Patch, Delete],
        within: Within::Everywhere,
        why: "",
    },
    Permission {
        kind: names::PLACEMENT_STATUS,
        verbs: &[Create, Patch, Delete],
        within: Within::Everywhere,
        why: "",
    },
    Permission {
        kind: names::WORK,
        verbs: &[Create, Patch, Delete],
        within: Within::Everywhere,
        why: "",
    },
    Permission {
        kind: names::MEMBER_CLUSTER,
        verbs: &[Patch, PatchStatus],
        within: Within::Everywhere,
        why: "Finalizers and status.",
    },
    Permission {
        kind: names::INTERNAL_MEMBER_CLUSTER,
        verbs: &[Create, Patch],
        within: Within::Everywhere,
        why: "",
    },
    Permission {
        kind: NAMESPACE,
        verbs: &[Create, Delete],
        within: Within::Everywhere,
        why: "Each member cluster has a namespace, in which its agent may read and report.",
    },
    Permission { kind: names::ROLE, verbs: &[Create, Patch], within: Within::Everywhere, why: "" },
    Permission {
        kind: names::ROLE_BINDING,
        verbs: &[Create, Patch],
        within: Within::Everywhere,
        why: "",
    },
    Permission {
        kind: names::CLUSTER_PROFILE,
        verbs: &[Create, Patch, PatchStatus, Delete],
        within: Within::Everywhere,
        why: "Unless `--enable-cluster-inventory-apis` is false.",
    },
];
