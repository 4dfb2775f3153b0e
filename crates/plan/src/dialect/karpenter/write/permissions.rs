//! What the controller of NodePools does to objects.

use convoy_api::kinds::{NODE, POD};

use crate::dialect::karpenter::names::{NODE_CLAIM, NODE_POOL};
use crate::permission::ApiVerb::{BlockDeletion, Create, Delete, Evict, Patch, PatchStatus};
use crate::permission::{Permission, Within};

/// Simulated machines are Nodes.
pub(crate) const PERMISSIONS: &[Permission] = &[
    Permission {
        kind: NODE_POOL,
        verbs: &[Patch, PatchStatus, BlockDeletion],
        within: Within::Everywhere,
        why: "The hash of the template, as an annotation. Claims have owners.",
    },
    Permission {
        kind: NODE_CLAIM,
        verbs: &[Create, Patch, PatchStatus, Delete, BlockDeletion],
        within: Within::Everywhere,
        why: "Nodes have owners.",
    },
    Permission {
        kind: NODE,
        verbs: &[Create, Patch, Delete],
        within: Within::Everywhere,
        why: "Nodes are labelled, tainted and deleted with their claims.",
    },
    Permission {
        kind: POD,
        verbs: &[Delete, Evict],
        within: Within::Everywhere,
        why: "Pods are deleted only when the terminationGracePeriod of their node ends.",
    },
];
