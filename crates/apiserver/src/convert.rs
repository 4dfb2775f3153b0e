//! One stored form per resource, several spellings: custom kinds differ by `apiVersion` alone;
//! events and autoscalers have two spellings with different fields.

use serde_json::{Map, Value};

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
    is_new_event(resource) || is_old_autoscaler(resource)
}

/// Rewrites a stored object into the spelling of `resource`.
pub(crate) fn from_stored(resource: &Resource, object: &mut Value) {
    if is_new_event(resource) {
        rename(object, EVENT_FIELDS.map(|(new, old)| (old, new)));
    } else if is_old_autoscaler(resource) {
        autoscaler_to_v1(object);
    }
    set_api_version(object, &resource.api_version());
}

/// Rewrites an object in the spelling of `resource` into the stored one.
pub(crate) fn to_stored(resource: &Resource, object: &mut Value) {
    if is_new_event(resource) {
        rename(object, EVENT_FIELDS);
        set_api_version(object, "v1");
    } else if is_old_autoscaler(resource) {
        autoscaler_to_v2(object);
        set_api_version(object, "autoscaling/v2");
    } else if let Some(custom) = &resource.custom {
        let stored = crate::registry::api_version(&resource.group, &custom.storage_version);
        set_api_version(object, &stored);
    }
}

fn is_new_event(resource: &Resource) -> bool {
    resource.is("events.k8s.io", "events")
}

fn is_old_autoscaler(resource: &Resource) -> bool {
    resource.is("autoscaling", "horizontalpodautoscalers") && resource.version == "v1"
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

/// `v1` knows one metric: the processor. The others travel in an annotation, as Kubernetes
/// keeps them.
const METRICS_ANNOTATION: &str = "autoscaling.alpha.kubernetes.io/metrics";

fn autoscaler_to_v1(object: &mut Value) {
    let Some(Value::Object(spec)) = object.get_mut("spec") else { return };
    let Some(Value::Array(metrics)) = spec.shift_remove("metrics") else { return };
    let (processor, others): (Vec<Value>, Vec<Value>) =
        metrics.into_iter().partition(|metric| processor_target(metric).is_some());
    if let Some(target) = processor.iter().find_map(processor_target) {
        spec.insert("targetCPUUtilizationPercentage".into(), target.clone());
    }
    if !others.is_empty() {
        let text = Value::Array(others).to_string();
        annotations(object).insert(METRICS_ANNOTATION.into(), Value::String(text));
    }
}

fn autoscaler_to_v2(object: &mut Value) {
    let kept = annotations(object).shift_remove(METRICS_ANNOTATION);
    if let Some(Value::Object(metadata)) = object.get_mut("metadata")
        && metadata.get("annotations").is_some_and(|map| map.as_object().is_some_and(Map::is_empty))
    {
        metadata.shift_remove("annotations");
    }
    let Some(Value::Object(spec)) = object.get_mut("spec") else { return };
    let mut metrics = Vec::new();
    if let Some(target) = spec.shift_remove("targetCPUUtilizationPercentage") {
        metrics.push(serde_json::json!({"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": target}}}));
    }
    let kept = kept.as_ref().and_then(Value::as_str);
    if let Some(Value::Array(others)) = kept.and_then(|text| serde_json::from_str(text).ok()) {
        metrics.extend(others);
    }
    if !metrics.is_empty() {
        spec.insert("metrics".into(), Value::Array(metrics));
    }
}

fn processor_target(metric: &Value) -> Option<&Value> {
    let resource = metric.get("resource").filter(|resource| resource["name"] == "cpu")?;
    resource.pointer("/target/averageUtilization")
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

    #[test]
    fn an_old_autoscaler_keeps_its_other_metrics() {
        let resource = builtin().get("autoscaling", "v1", "horizontalpodautoscalers").unwrap();
        let stored = json!({"apiVersion": "autoscaling/v2", "metadata": {"name": "h", "annotations": {"a": "b"}}, "spec": {"maxReplicas": 3, "metrics": [
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}},
            {"type": "Pods", "pods": {"metric": {"name": "qps"}}}]}});
        let mut object = stored.clone();
        from_stored(resource, &mut object);
        assert_eq!(object["spec"], json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 80}));
        to_stored(resource, &mut object);
        assert_eq!(object, stored);
    }
}
