//! The status of a placement shown inside the namespace it selects, for people who may read
//! only there.

use serde_json::{Map, Value, json};

use crate::condition::instant;
use crate::dialect::fleet::names::{Family, PLACEMENT_GROUP, PLACEMENT_STATUS};
use crate::dialect::fleet::read::placement::{field, list, text};
use crate::dialect::fleet::status::rollup::Draft;
use crate::step::{Action, Verb, Why};

const SYNCED: &str = "StatusSynced";

/// Writes the mirror where it is asked for, and says so in the draft.
pub(crate) fn shown(draft: &mut Draft<'_, '_>) -> Vec<Action> {
    let placement = draft.inputs.placement;
    let spec = placement.object.spec();
    let asked = text(spec, "statusReportingScope") == "NamespaceAccessible";
    if !asked || placement.family != Family::Cluster {
        return Vec::new();
    }
    let selectors = list(spec, "resourceSelectors").iter();
    let mut namespaces = selectors.filter(|selector| text(selector, "kind") == "Namespace");
    let name = namespaces.next().map_or("", |selector| text(selector, "name"));
    if name.is_empty() {
        let message = "the placement selects no namespace by name";
        draft.set(SYNCED, "False", "StatusSyncFailed", message);
        return Vec::new();
    }
    draft.set(SYNCED, "True", "StatusSyncSucceeded", "the status is shown in the namespace");
    let mut source: Map<String, Value> = draft.fields.clone();
    source.insert("conditions".into(), json!(draft.conditions));
    let source = Value::Object(source);
    let existing = draft.inputs.snapshot.find(&PLACEMENT_STATUS, name, placement.name());
    let why = Why::new("StatusShown", format!("the placement is followed from namespace {name}"));
    match existing {
        Some(mirror) if *field(mirror.raw(), "sourceStatus") == source => Vec::new(),
        Some(mirror) => {
            // Replaced as a whole: what the source no longer has must not stay.
            let mut patch = field(mirror.raw(), "sourceStatus").clone();
            for (_, value) in patch.as_object_mut().into_iter().flatten() {
                *value = Value::Null;
            }
            if let (Some(patch), Some(source)) = (patch.as_object_mut(), source.as_object()) {
                patch.extend(source.clone());
            } else {
                patch = source;
            }
            let patch =
                json!({"sourceStatus": patch, "lastUpdatedTime": instant(draft.inputs.now)});
            vec![Action::patch(Verb::Record, mirror, patch, why)]
        }
        None => {
            let target = placement.object.key().sibling(&PLACEMENT_STATUS, name, placement.name());
            let object = json!({
                "apiVersion": format!("{PLACEMENT_GROUP}/v1beta1"),
                "kind": PLACEMENT_STATUS.kind,
                "metadata": {"name": placement.name(), "namespace": name},
                "sourceStatus": source,
                "lastUpdatedTime": instant(draft.inputs.now),
            });
            vec![Action::create(Verb::Record, target, object, why)]
        }
    }
}
