//! The renewal of the Lease.

use jiff::Timestamp;
use serde_json::json;

use super::decide::{Registration, Renewal};
use crate::merge_patch::nested;
use crate::step::{Action, Verb, Why};

pub(crate) fn actions(registration: &Registration<'_>, now: Timestamp) -> Vec<Action> {
    let Registration::Accepted { renewal: Renewal::Due(lease), .. } = registration else {
        return Vec::new();
    };
    let patch = nested(&["spec", "renewTime"], json!(format!("{now:.6}")));
    let why = Why::new("LeaseDue", "the hub takes a cluster with an expired Lease for lost");
    vec![Action::patch(Verb::Record, lease, patch, why)]
}
