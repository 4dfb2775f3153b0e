//! What the work agent of a managed cluster does to objects.

use convoy_api::ocm::names::{APPLIED_MANIFEST_WORK, MANIFEST_WORK};

use crate::permission::ApiVerb::{Create, Delete, Patch, PatchStatus};
use crate::permission::{Permission, Within};

/// On the hub, which grants this to the account of the cluster.
pub(crate) const PERMISSIONS: &[Permission] = &[Permission {
    kind: MANIFEST_WORK,
    verbs: &[Patch, PatchStatus],
    within: Within::Everywhere,
    why: "",
}];

/// On the member, beside what users place there.
pub(crate) const MEMBER_PERMISSIONS: &[Permission] = &[Permission {
    kind: APPLIED_MANIFEST_WORK,
    verbs: &[Create, Patch, PatchStatus, Delete],
    within: Within::Everywhere,
    why: "Notes what was applied; deleting the note deletes the objects.",
}];
