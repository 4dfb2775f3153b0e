//! Pods: their first status, what an update may change, and how they share a node.

mod containers;
mod quality;
mod resources;
mod spec;
mod sysctls;
mod update;
mod volumes;

use serde_json::{Value, json};

use super::at::{At, Errors};
use crate::metadata;
use crate::resource_request::ResourceRequest;

pub(super) use containers::{port_name, port_reference};
pub(super) use resources::amount;
pub(super) use spec::{SpecParent, validate as validate_spec};

pub(super) fn prepare_create(object: &mut Value, now: &str) {
    let mut status = json!({"phase": "Pending", "qosClass": quality::class(object)});
    if !At::root(object).get("spec.schedulingGates").is_empty() {
        status["conditions"] = json!([{"type": "PodScheduled", "status": "False",
            "reason": "SchedulingGated", "lastTransitionTime": now,
            "message": "Scheduling is blocked due to non-empty scheduling gates"}]);
    }
    object["status"] = status;
}

pub(super) fn prepare_update(request: &ResourceRequest, object: &mut Value, current: &Value) {
    match request.target.subresource.as_str() {
        "" => super::priority::admit_pod_update(object, current),
        "status" => keep_observations(object, current),
        "ephemeralcontainers" => {
            let containers = object["spec"]["ephemeralContainers"].take();
            replace(object, current);
            object["spec"]["ephemeralContainers"] = containers;
        }
        "resize" => {
            let wanted = object["spec"].take();
            replace(object, current);
            resize(&mut object["spec"], &wanted);
        }
        _ => {}
    }
}

/// Everything of the current object, with who owns what of the wanted one.
fn replace(object: &mut Value, current: &Value) {
    let managed = object["metadata"].get("managedFields").cloned();
    *object = current.clone();
    if let Some(managed) = managed {
        metadata::of(object).insert("managedFields".into(), managed);
    }
}

/// A status that leaves out what only the server knows keeps it.
fn keep_observations(object: &mut Value, current: &Value) {
    if !object["status"].is_object() {
        object["status"] = json!({});
    }
    for field in ["qosClass", "observedGeneration"] {
        if At::root(&object["status"][field]).is_empty() || object["status"][field] == json!(0) {
            let known = current["status"][field].clone();
            if !known.is_null() {
                object["status"][field] = known;
            }
        }
    }
}

/// Takes over the resources of containers, and nothing else.
fn resize(spec: &mut Value, wanted: &Value) {
    for list in ["containers", "initContainers"] {
        let Some(containers) = spec[list].as_array_mut() else { continue };
        for (container, new) in
            containers.iter_mut().zip(wanted[list].as_array().into_iter().flatten())
        {
            if container["name"] != new["name"] {
                continue;
            }
            for field in ["resources", "resizePolicy"] {
                if !new[field].is_null() {
                    container[field] = new[field].clone();
                }
            }
        }
    }
    if !wanted["resources"].is_null() {
        spec["resources"] = wanted["resources"].clone();
    }
}

pub(super) fn validate(subresource: &str, object: &Value, old: Option<&Value>) -> Errors {
    let root = At::root(object);
    let mut errors = Errors::new();
    if subresource == "status" {
        return errors;
    }
    spec::validate(&root.get("spec"), spec::SpecParent::Pod, &mut errors);
    if let Some(old) = old {
        match subresource {
            "" => update::validate(&root, &At::root(old), &mut errors),
            "ephemeralcontainers" => update::ephemeral(&root, &At::root(old), &mut errors),
            "resize" => {
                let class = quality::class(object);
                if object["status"]["qosClass"] != json!(class) {
                    let detail = "Pod QOS Class may not change as a result of resizing";
                    let before = object["status"]["qosClass"].as_str().unwrap_or_default();
                    errors.push(root.get("spec").invalid_as(before, detail));
                }
            }
            _ => {}
        }
    }
    errors
}
