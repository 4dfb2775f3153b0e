//! Pods: their first status, what an update may change, and how they share a node.

mod columns;
mod containers;
pub(super) mod defaults;
mod quality;
mod resources;
mod spec;
mod sysctls;
mod update;
mod volumes;

use serde_json::{Value, json};

use super::at::{At, Errors};
use super::kind::{Change, Kind};
use super::{account, limits, priority, runtime_class};
use crate::column::Column;
use crate::metadata;
use crate::registry::Resource;
use crate::resource_request::ResourceRequest;
use crate::status::ApiResult;
use crate::surroundings::seconds;

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

pub(super) struct Pod;

impl Kind for Pod {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::pod(object);
    }

    fn admit(&self, request: &ResourceRequest, object: &mut Value) -> ApiResult<()> {
        if !request.target.subresource.is_empty() {
            return Ok(());
        }
        limits::fill_in(request, object);
        priority::admit_pod(request, object)?;
        account::admit_pod(request, object);
        runtime_class::admit_pod(request, object)
    }

    fn refuse(
        &self,
        request: &ResourceRequest,
        object: &Value,
        old: Option<&Value>,
    ) -> ApiResult<()> {
        if old.is_some() || !request.target.subresource.is_empty() {
            return Ok(());
        }
        limits::check(request, object)?;
        runtime_class::check(request, object)
    }

    fn prepare_create(&self, request: &ResourceRequest, object: &mut Value) -> ApiResult<()> {
        prepare_create(object, &seconds(request.server.now()));
        Ok(())
    }

    fn prepare_update(
        &self,
        request: &ResourceRequest,
        object: &mut Value,
        current: &Value,
    ) -> ApiResult<()> {
        prepare_update(request, object, current);
        Ok(())
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        validate(change.subresource, change.object, change.old)
    }

    fn validate_status(&self, change: &Change<'_>) -> Errors {
        validate(change.subresource, change.object, change.old)
    }

    fn pod<'o>(&self, object: &'o Value) -> Option<At<'o>> {
        Some(At::root(object))
    }

    fn repeats_warnings(&self) -> bool {
        false
    }

    fn status_metadata(&self) -> &'static [&'static str] {
        &["labels", "annotations", "finalizers", "managedFields"]
    }

    fn grace_seconds(&self, object: &Value, asked: Option<i64>) -> i64 {
        let is_bound = object["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
        let has_ended = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        if !is_bound || has_ended {
            return 0;
        }
        let own = object["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
        match asked.unwrap_or(own) {
            negative if negative < 0 => 1,
            seconds => seconds,
        }
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ]
    }

    fn field_alias(&self, field: &str) -> Option<&'static str> {
        (field == "spec.host").then_some("spec.nodeName")
    }

    fn indexed_field(&self) -> Option<&'static str> {
        Some("spec.nodeName")
    }

    fn goes_first(&self) -> bool {
        true
    }

    fn columns(&self) -> &'static [Column] {
        columns::COLUMNS
    }

    fn row_conditions(&self, object: &Value) -> Option<Value> {
        columns::row_conditions(object)
    }
}
