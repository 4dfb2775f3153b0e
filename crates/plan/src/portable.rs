//! Objects as they are taken to another cluster: which ones are made there anyway, and what of the
//! others is worth sending.

use convoy_api::Object;
use convoy_api::object::member::text;
use convoy_api::well_known::annotation::{DEPLOYMENT_REVISION, LAST_APPLIED};
use convoy_api::well_known::label::{JOB_UID as BATCH_JOB_UID, SLICE_MANAGED_BY};
use convoy_api::well_known::secret_type::SERVICE_ACCOUNT_TOKEN;
use serde_json::{Map, Value};

/// What controllers put on objects, and what is not sent with them.
const JOB_UID: &str = "controller-uid";

const DROPPED_METADATA: [&str; 8] = [
    "resourceVersion",
    "uid",
    "generation",
    "creationTimestamp",
    "managedFields",
    "ownerReferences",
    "selfLink",
    "deletionTimestamp",
];

const DROPPED_ANNOTATIONS: [&str; 2] = [LAST_APPLIED, DEPLOYMENT_REVISION];

const JOB_LABELS: [&str; 2] = [JOB_UID, BATCH_JOB_UID];

/// Whether this object, of a kind that may be selected, is made by a controller that will make
/// it again over there.
pub(crate) fn is_derived(object: &Object, service_exists: impl Fn(&Object) -> bool) -> bool {
    let name = object.name().as_str();
    match (object.kind().group.as_str(), object.kind().kind.as_str()) {
        ("", "ConfigMap") => name == "kube-root-ca.crt",
        ("", "ServiceAccount") => name == "default",
        ("", "Secret") => text(object.raw(), "type") == SERVICE_ACCOUNT_TOKEN,
        ("", "Endpoints") => service_exists(object),
        ("discovery.k8s.io", "EndpointSlice") => object.label(SLICE_MANAGED_BY).is_some(),
        ("apps", "ReplicaSet" | "ControllerRevision") => object.owners().next().is_some(),
        _ => false,
    }
}

/// The object as it is sent: without what the server and controllers here put into it.
pub(crate) fn cleaned(object: &Object) -> Value {
    let mut raw = object.raw().clone();
    let Some(fields) = raw.as_object_mut() else {
        return raw;
    };
    fields.shift_remove("status");
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        for name in DROPPED_METADATA {
            metadata.shift_remove(name);
        }
        drop_keys(metadata, "annotations", &DROPPED_ANNOTATIONS);
    }
    match object.kind().kind.as_str() {
        "Service" if object.api_version() == "v1" => clean_service(fields),
        "Job" if object.api_version() == "batch/v1" => clean_job(fields),
        _ => {}
    }
    raw
}

/// Addresses and ports are given out by each cluster; headless stays headless.
fn clean_service(fields: &mut Map<String, Value>) {
    let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    if spec.get("clusterIP").and_then(Value::as_str) != Some("None") {
        spec.shift_remove("clusterIP");
        spec.shift_remove("clusterIPs");
    }
    spec.shift_remove("healthCheckNodePort");
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        port.shift_remove("nodePort");
    }
}

/// A selector that the server made up names the Job's uid here.
fn clean_job(fields: &mut Map<String, Value>) {
    let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    if spec.get("manualSelector").and_then(Value::as_bool) == Some(true) {
        return;
    }
    if let Some(selector) = spec.get_mut("selector").and_then(Value::as_object_mut) {
        drop_keys(selector, "matchLabels", &JOB_LABELS);
        if selector.is_empty() {
            spec.shift_remove("selector");
        }
    }
    let template = spec.get_mut("template").and_then(|template| template.get_mut("metadata"));
    if let Some(metadata) = template.and_then(Value::as_object_mut) {
        metadata.shift_remove("creationTimestamp");
        drop_keys(metadata, "labels", &JOB_LABELS);
    }
}

/// Takes keys out of a map member, and the member itself if nothing is left.
fn drop_keys(parent: &mut Map<String, Value>, member: &str, keys: &[&str]) {
    let Some(map) = parent.get_mut(member).and_then(Value::as_object_mut) else {
        return;
    };
    for key in keys {
        map.shift_remove(*key);
    }
    if map.is_empty() {
        parent.shift_remove(member);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_put_in_here_is_taken_out() {
        let object = |value| Object::from_value(value).unwrap();
        let service = object(json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "namespace": "shop", "uid": "1", "resourceVersion": "7",
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}},
            "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
                "ports": [{"port": 80, "nodePort": 30080}]},
            "status": {"loadBalancer": {}}}));
        assert_eq!(
            cleaned(&service),
            json!({"apiVersion": "v1", "kind": "Service",
                "metadata": {"name": "web", "namespace": "shop"},
                "spec": {"ports": [{"port": 80}]}})
        );
        let headless = object(json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "db"}, "spec": {"clusterIP": "None", "clusterIPs": ["None"]}}));
        assert_eq!(cleaned(&headless)["spec"]["clusterIP"], "None");
        let job =
            object(json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
            "spec": {"selector": {"matchLabels": {"controller-uid": "1"}},
                "template": {"metadata": {"labels": {"controller-uid": "1", "app": "j"}}}}}));
        assert_eq!(
            cleaned(&job)["spec"],
            json!({"template": {"metadata": {"labels": {"app": "j"}}}})
        );
    }
}
