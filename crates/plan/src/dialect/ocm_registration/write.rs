//! The renewal of the Lease.

use convoy_api::kinds::LEASE;
use convoy_api::ocm::names::MANAGED_CLUSTER;
use jiff::Timestamp;
use serde_json::json;

use super::decide::{Registration, Renewal};
use crate::merge_patch::nested;
use crate::permission::{ApiVerb, Permission, Within};
use crate::step::{Action, Verb, Why};

/// On the hub, which grants this to the account of the cluster.
pub(crate) const PERMISSIONS: &[Permission] = &[
    Permission {
        kind: MANAGED_CLUSTER,
        verbs: &[ApiVerb::PatchStatus],
        within: Within::Everywhere,
        why: "",
    },
    Permission { kind: LEASE, verbs: &[ApiVerb::Patch], within: Within::Everywhere, why: "" },
];

pub(crate) fn actions(registration: &Registration<'_>, now: Timestamp) -> Vec<Action> {
    let Registration::Accepted { renewal: Renewal::Due(lease), .. } = registration else {
        return Vec::new();
    };
    let patch = nested(&["spec", "renewTime"], json!(format!("{now:.6}")));
    let why = Why::new("LeaseDue", "the hub takes a cluster with an expired Lease for lost");
    vec![Action::patch(Verb::Record, lease, patch, why)]
}
