//! G8: no object grows with the fleet. Writes stay far below the size limit of a store, and holds
//! name a few members, not all.

use convoy_plan::{HoldReason, Write};
use serde_json::Value;

use crate::{Finding, Guarantee, Subject};

/// Two thirds of etcd's request limit, which leaves room for additions by other clients.
const LARGEST_WRITE_BYTES: usize = 1_000_000;

/// Maximum number of members that a hold names.
const MOST_NAMES: usize = 10;

pub(crate) fn no_object_grows_with_the_fleet(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let mut too_large = |what: String, body: &Value| {
        let bytes = serde_json::to_string(body).map_or(0, |text| text.len());
        if bytes > LARGEST_WRITE_BYTES {
            let message = format!("{what} has {bytes} bytes, more than {LARGEST_WRITE_BYTES}");
            findings.push(subject.finding(Guarantee::G8, message));
        }
    };
    for action in &subject.step.actions {
        if let Write::Create { object: body } | Write::Patch { patch: body, .. } = &action.write {
            too_large(format!("the write to {}", action.target), body);
        }
    }
    if let Some(status) = &subject.step.status {
        too_large("the status".to_owned(), status);
    }
    for hold in &subject.step.holds {
        if let HoldReason::BudgetSpent { by, .. } | HoldReason::BatchRunning { by, .. } =
            &hold.reason
            && by.len() > MOST_NAMES
        {
            let message = format!("a hold names {} members", by.len());
            findings.push(subject.finding(Guarantee::G8, message));
        }
    }
}
