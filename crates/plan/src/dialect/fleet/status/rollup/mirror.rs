//! The status of a placement shown inside the namespace it selects, for people who may read
//! only there.

use convoy_api::Object;
use convoy_api::kinds::NAMESPACE;
use serde_json::{Map, Value, json};

use crate::condition::instant;
use crate::dialect::fleet::names::{Family, PLACEMENT_GROUP, PLACEMENT_STATUS};
use crate::dialect::fleet::read::placement::{field, list, text};
use crate::dialect::fleet::status::rollup::{CLUSTERS, Draft};
use crate::ownership;
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
    let snapshot = draft.inputs.snapshot;
    let is_gone = snapshot.find(&NAMESPACE, "", name).is_none_or(Object::is_deleting);
    if snapshot.knows(&NAMESPACE) && is_gone {
        let message = format!("namespace {name} does not exist on the hub");
        draft.set(SYNCED, "False", "StatusSyncFailed", &message);
        return Vec::new();
    }
    draft.set(SYNCED, "True", "StatusSyncSucceeded", "the status is shown in the namespace");
    let source = source(draft);
    let existing = snapshot.find(&PLACEMENT_STATUS, name, placement.name());
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
                "metadata": {"name": placement.name(), "namespace": name,
                    "ownerReferences": [owner(placement.object)]},
                "sourceStatus": source,
                "lastUpdatedTime": instant(draft.inputs.now),
            });
            vec![Action::create(Verb::Record, target, object, why)]
        }
    }
}

/// The placement as the owner of its mirror, in the version of the mirror.
fn owner(placement: &Object) -> Value {
    let mut owner = ownership::reference(placement);
    owner["apiVersion"] = json!(format!("{PLACEMENT_GROUP}/v1beta1"));
    owner
}

/// The status as the mirror has it: without the condition that tells about the mirror.
fn source(draft: &Draft<'_, '_>) -> Value {
    let mut source: Map<String, Value> = draft.fields.clone();
    if source.get(CLUSTERS).is_some_and(Value::is_null) {
        let clusters = field(draft.inputs.placement.object.status(), CLUSTERS);
        source.insert(CLUSTERS.into(), clusters.clone());
    }
    let synced = draft.prefixed(SYNCED);
    let conditions: Vec<&Value> =
        draft.conditions.iter().filter(|condition| text(condition, "type") != synced).collect();
    source.insert("conditions".into(), json!(conditions));
    // The API server stores no empty lists of a mirror, and they would be written again and again.
    source.retain(|_, value| !value.is_null() && value != "" && *value != json!([]));
    Value::Object(source)
}

#[cfg(test)]
mod tests {
    use convoy_testkit::{fleet, object};

    use super::*;
    use crate::dialect::Dialect;
    use crate::dialect::fleet::Fleet;
    use crate::world::World;

    fn placement(namespace: &str) -> Object {
        let selector =
            json!({"group": "", "version": "v1", "kind": "Namespace", "name": namespace});
        fleet::placement("web", json!({"placementType": "PickAll"}))
            .with("/metadata/generation", json!(1))
            .with("/metadata/uid", json!("web-uid"))
            .with("/spec/resourceSelectors", json!([selector]))
            .with("/spec/statusReportingScope", json!("NamespaceAccessible"))
            .status(json!({"selectedResources":
                [{"version": "v1", "kind": "Namespace", "name": "shop"}]}))
            .build()
    }

    fn decided(placement: &Object, namespaces: &[&str]) -> (Value, Vec<Value>) {
        let namespaces = namespaces.iter().map(|name| object("v1", "Namespace", name).build());
        let world: World = namespaces.chain([placement.clone()]).collect();
        let snapshot = Fleet.snapshot(&world, placement);
        let step = Fleet.step(&snapshot, "2026-01-01T00:00:00Z".parse().unwrap());
        let mirrors = step.actions.iter().filter(|action| action.target.kind == PLACEMENT_STATUS);
        let mirrors = mirrors.map(|action| serde_json::to_value(&action.write).unwrap()).collect();
        (step.status.unwrap_or_default(), mirrors)
    }

    fn condition(status: &Value, kind: &str) -> String {
        let mut all = status["conditions"].as_array().unwrap().iter();
        let kind = format!("ClusterResourcePlacement{kind}");
        let found = all.find(|condition| condition["type"] == *kind);
        found
            .map_or_else(String::new, |it| format!("{}/{}", text(it, "status"), text(it, "reason")))
    }

    #[test]
    fn a_mirror_has_the_status_without_the_condition_about_itself() {
        let (status, mirrors) = decided(&placement("shop"), &["shop"]);
        assert_eq!(condition(&status, SYNCED), "True/StatusSyncSucceeded");
        let written = mirrors[0].to_string();
        assert!(written.contains("\"uid\":\"web-uid\"") && !written.contains(SYNCED), "{written}");
    }

    #[test]
    fn without_its_namespace_a_mirror_is_not_written() {
        let (status, mirrors) = decided(&placement("shop"), &["other"]);
        assert_eq!(condition(&status, SYNCED), "False/StatusSyncFailed");
        assert!(mirrors.is_empty(), "{mirrors:?}");
    }

    #[test]
    fn a_mirror_does_not_move_to_another_namespace() {
        let (status, _) = decided(&placement("other"), &["shop", "other"]);
        assert_eq!(condition(&status, "Scheduled"), "False/InvalidResourceSelectors");
        assert_eq!(status["selectedResources"][0]["name"], "shop");
    }

    #[test]
    fn a_mirror_that_is_gone_concerns_its_placement() {
        let placement = placement("shop");
        let gone = placement.key().sibling(&PLACEMENT_STATUS, "shop", "web");
        let world: World = [placement.clone()].into_iter().collect();
        assert_eq!(Fleet.affected(&world, &gone), [placement.key().clone()]);
    }
}
