//! What the controller of Deployments does to objects.

use convoy_api::apps::{DEPLOYMENT, REPLICA_SET};

use crate::permission::ApiVerb::{BlockDeletion, Create, Delete, Patch, PatchStatus};
use crate::permission::{Permission, Within};

/// ReplicaSets and their pods are the work of another controller.
pub(crate) const PERMISSIONS: &[Permission] = &[
    Permission {
        kind: DEPLOYMENT,
        verbs: &[Patch, PatchStatus, BlockDeletion],
        within: Within::Everywhere,
        why: "The revision is recorded, and a rollback restores the template. ReplicaSets have owners.",
    },
    Permission {
        kind: REPLICA_SET,
        verbs: &[Create, Patch, Delete],
        within: Within::Everywhere,
        why: "",
    },
];
