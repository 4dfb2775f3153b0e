//! One stored form per resource, several spellings: custom kinds differ by `apiVersion` alone,
//! unless a webhook knows more ([`crate::conversion`]), but for NodePools, whose older version is converted
//! here; events and autoscalers have two spellings with different fields.

mod autoscaler;

use bytes::Bytes;
use convoy_api::karpenter::convert as karpenter;
use serde_json::{Map, Value};

use crate::encoding;
use crate::registry::Resource;

/// Fields of `events.k8s.io/v1` and what core `v1`, which is stored, calls them.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// Whether a request on this resource sees other fields than the stored ones.
pub(crate) fn differs_from_stored(resource: &Resource) -> bool {
    is_new_event(resource) || is_old_autoscaler(resource) || is_old_pool(resource)
}

/// Rewrites a stored object into the spelling of `resource`.
pub(crate) fn from_stored(resource: &Resource, object: &mut Value) {
    if is_new_event(resource) {
        rename(object, EVENT_FIELDS.map(|(new, old)| (old, new)));
    } else if is_old_autoscaler(resource) {
        autoscaler::to_v1(object);
    } else if is_old_pool(resource) && object["apiVersion"] == "karpenter.sh/v1" {
        *object = karpenter::to_v1beta1(object);
    }
    set_api_version(object, &resource.api_version());
}

/// Rewrites an object in the spelling of `resource` into the stored one.
pub(crate) fn to_stored(resource: &Resource, object: &mut Value) {
    if is_new_event(resource) {
        rename(object, EVENT_FIELDS);
        set_api_version(object, "v1");
    } else if is_old_autoscaler(resource) {
        autoscaler::to_v2(object);
        set_api_version(object, "autoscaling/v2");
    } else if is_old_pool(resource) {
        *object = karpenter::to_v1(object);
    } else if let Some(custom) = &resource.custom {
        let stored = crate::registry::api_version(&resource.group, &custom.storage_version);
        set_api_version(object, &stored);
    }
}

/// The bytes of an object in its stored version.
pub(crate) fn stored_form(resource: &Resource, object: &Value) -> Bytes {
    let is_empty_list = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
    let has_empty_list = resource.custom.is_none()
        && object.as_object().is_some_and(|fields| fields.values().any(is_empty_list));
    if resource.custom.is_none() && !differs_from_stored(resource) && !has_empty_list {
        return encoding::stored(object);
    }
    let mut object = object.clone();
    if has_empty_list && let Value::Object(fields) = &mut object {
        // Lists that are always shown come out of the store without being told from none.
        fields.values_mut().filter(|value| is_empty_list(value)).for_each(|value| {
            value.take();
        });
    }
    to_stored(resource, &mut object);
    encoding::stored(&object)
}

fn is_new_event(resource: &Resource) -> bool {
    resource.is("events.k8s.io", "events")
}

fn is_old_autoscaler(resource: &Resource) -> bool {
    resource.is("autoscaling", "horizontalpodautoscalers") && resource.version == "v1"
}

/// The version in which budgets by reason were proposed, where `v1` is stored and no webhook
/// converts.
fn is_old_pool(resource: &Resource) -> bool {
    let is_stored_newer = resource
        .custom
        .as_ref()
        .is_some_and(|custom| &*custom.storage_version == "v1" && custom.conversion.is_none());
    resource.is("karpenter.sh", "nodepools") && resource.version == "v1beta1" && is_stored_newer
}

fn set_api_version(object: &mut Value, api_version: &str) {
    if let Some(Value::String(current)) = object.get_mut("apiVersion")
        && current != api_version
    {
        api_version.clone_into(current);
    }
}

fn rename<const N: usize>(object: &mut Value, names: [(&str, &str); N]) {
    let Value::Object(fields) = object else { return };
    let old = std::mem::take(fields);
    for (key, value) in old {
        let renamed = names.iter().find(|(from, _)| *from == key).map(|(_, to)| (*to).to_owned());
        fields.insert(renamed.unwrap_or(key), value);
    }
}

fn annotations(object: &mut Value) -> &mut Map<String, Value> {
    let fields = object.as_object_mut().expect("a decoded object is a map");
    let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    let metadata = metadata.as_object_mut().expect("made a map above");
    let annotations = metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
    if !annotations.is_object() {
        *annotations = Value::Object(Map::new());
    }
    annotations.as_object_mut().expect("made a map above")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::builtin;

    #[test]
    fn both_spellings_of_an_event_are_one() {
        let resource = builtin().get("events.k8s.io", "v1", "events").unwrap();
        let new = json!({"apiVersion": "events.k8s.io/v1", "regarding": {"name": "p"}, "note": "hello",
            "reportingController": "c", "deprecatedCount": 2, "reason": "R"});
        let mut object = new.clone();
        to_stored(resource, &mut object);
        assert_eq!(
            object,
            json!({"apiVersion": "v1", "involvedObject": {"name": "p"}, "message": "hello",
            "reportingComponent": "c", "count": 2, "reason": "R"})
        );
        from_stored(resource, &mut object);
        assert_eq!(object, new);
    }
}
