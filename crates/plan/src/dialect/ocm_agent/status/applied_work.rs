//! The status of an `AppliedManifestWork`: the objects that belong to it, and since when its work
//! is missing.

use convoy_api::Object;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::condition::instant;
use crate::dialect::ocm_agent::decide::applied_work::AppliedPhase;
use crate::dialect::ocm_agent::decide::manifest::Processed;
use crate::dialect::ocm_agent::decide::removal::Removal;
use crate::dialect::ocm_agent::decide::work::Application;
use crate::dialect::ocm_agent::read::recorded::{AppliedResource, applied_resources};
use crate::merge_patch::nested;
use crate::step::{Action, Verb, Why};

/// Lists the objects that exist, and those that are going; none if they are listed already.
pub(crate) fn listed(application: &Application<'_>) -> Option<Action> {
    if !application.is_understood() {
        return None;
    }
    let present = |it: &Processed<'_>| Some(AppliedResource::of(&it.item, it.live?));
    let asked = application.processed.iter().filter_map(present);
    let going = application.removals.iter().filter(|it| it.is_listed());
    let mut wanted: Vec<AppliedResource> =
        asked.chain(going.map(|it| it.resource.clone())).collect();
    wanted.sort();
    wanted.dedup();
    let object = application.applied_work;
    if applied_resources(object) == wanted {
        return None;
    }
    let why = Why::new("ObjectsRecorded", "the objects that belong to the work");
    let patch = nested(&["status", "appliedResources"], values(&wanted));
    Some(Action::patch_status(Verb::Record, object, patch, why))
}

fn values(resources: &[AppliedResource]) -> Value {
    resources.iter().map(AppliedResource::to_value).collect()
}

/// Its status by what becomes of it; none if it reads so already.
pub(crate) fn status(
    applied_work: &Object,
    phase: &AppliedPhase<'_>,
    now: Timestamp,
) -> Option<Value> {
    let present = applied_work.status().as_object().cloned().unwrap_or_default();
    let mut status = present.clone();
    match phase {
        AppliedPhase::Managed => _ = status.shift_remove("evictionStartTime"),
        AppliedPhase::Unmanaged { .. } => {
            if !status.contains_key("evictionStartTime") {
                status.insert("evictionStartTime".into(), instant(now));
            }
        }
        AppliedPhase::Removing(removals) => {
            let left = removals.iter().filter(|it| it.is_listed());
            let left: Vec<AppliedResource> =
                left.map(|it: &Removal<'_>| it.resource.clone()).collect();
            status.insert("appliedResources".into(), values(&left));
        }
        AppliedPhase::Evicted | AppliedPhase::Removed | AppliedPhase::Released => {}
    }
    (status != present).then(|| json!(status))
}
