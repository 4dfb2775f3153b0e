//! What the agent of a member cluster does to objects.

use crate::dialect::fleet_agent::names::{APPLIED_WORK, INTERNAL_MEMBER_CLUSTER, WORK};
use crate::permission::ApiVerb::{BlockDeletion, Create, Delete, Patch, PatchStatus};
use crate::permission::{Permission, Within};

/// On the hub, which grants this to the account of the cluster.
pub(crate) const PERMISSIONS: &[Permission] = &[
    Permission { kind: WORK, verbs: &[Patch, PatchStatus], within: Within::Everywhere, why: "" },
    Permission {
        kind: INTERNAL_MEMBER_CLUSTER,
        verbs: &[PatchStatus],
        within: Within::Everywhere,
        why: "",
    },
];

/// On the member, beside what users place there.
pub(crate) const MEMBER_PERMISSIONS: &[Permission] = &[Permission {
    kind: APPLIED_WORK,
    verbs: &[Create, PatchStatus, Delete, BlockDeletion],
    within: Within::Everywhere,
    why: "Notes what was applied, which has it as owner; deleting the note deletes the objects.",
}];
