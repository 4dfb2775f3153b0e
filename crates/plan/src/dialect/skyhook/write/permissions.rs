//! What the controller of Skyhooks does to objects.

use convoy_api::kinds::{CONFIG_MAP, NODE, POD};
use convoy_api::skyhook::SKYHOOK;

use crate::permission::ApiVerb::{BlockDeletion, Create, Delete, Evict, Patch, PatchStatus};
use crate::permission::{Permission, Within};

/// Objects are created only in the namespace of packages.
pub(crate) const PERMISSIONS: &[Permission] = &[
    Permission {
        kind: SKYHOOK,
        verbs: &[Patch, PatchStatus, BlockDeletion],
        within: Within::Everywhere,
        why: "Pods and ConfigMaps of packages have owners.",
    },
    Permission {
        kind: NODE,
        verbs: &[Patch, PatchStatus],
        within: Within::Everywhere,
        why: "Package state, cordons, taints and conditions.",
    },
    Permission {
        kind: POD,
        verbs: &[Evict],
        within: Within::Everywhere,
        why: "Draining a node evicts pods of all owners.",
    },
    Permission {
        kind: POD,
        verbs: &[Create, Patch, Delete],
        within: Within::OwnNamespace,
        why: "Packages run in pods.",
    },
    Permission {
        kind: CONFIG_MAP,
        verbs: &[Create, Patch, Delete],
        within: Within::OwnNamespace,
        why: "",
    },
];
