//! The status of an `AppliedWork`: the objects that belong to it.

use serde_json::{Value, json};

use crate::dialect::fleet_agent::decide::manifest::ApplyOrReportResult;
use crate::dialect::fleet_agent::decide::work::Application;
use crate::dialect::fleet_agent::read::manifest::Identifier;
use crate::merge_patch::nested;
use crate::step::{Action, Verb, Why};

/// The write that makes it so; none if it reads so already.
pub(crate) fn recorded(application: &Application<'_>) -> Option<Action> {
    let entry = |identifier: &Identifier, uid: Option<&str>| {
        let mut entry = identifier.to_value();
        if let Some(uid) = uid {
            entry["uid"] = json!(uid);
        }
        entry
    };
    let applied = application.processed.iter().filter_map(|it| {
        let is_applied = matches!(it.result, ApplyOrReportResult::Applied { .. });
        let live = it.live.filter(|_| is_applied)?;
        Some(entry(&it.manifest.identifier, live.uid()))
    });
    let left = application.left_over.iter().map(|it| entry(&it.identifier, it.live.uid()));
    let wanted: Vec<Value> = applied.chain(left).collect();
    let object = application.applied_work;
    let present = object.status().get("appliedResources").and_then(Value::as_array);
    if present.map_or(&[][..], Vec::as_slice) == wanted {
        return None;
    }
    let why = Why::new("ObjectsRecorded", "the objects that belong to the Work");
    let patch = nested(&["status", "appliedResources"], Value::Array(wanted));
    Some(Action::patch_status(Verb::Record, object, patch, why))
}
