//! Bindings: a scheduler puts a pod on a node.

use convoy_api::schema::FieldError;
use convoy_store::{Expect, Write};
use serde_json::{Value, json};

use super::{conditions, done};
use crate::convert::stored_form;
use crate::handler_response::HandlerResponse;
use crate::kinds::At;
use crate::object_name;
use crate::options::Options;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};
use crate::write::together;
use crate::{clusters, metadata, reading};

/// Answers both `pods/NAME/binding` and `bindings`, where the binding names the pod.
pub(crate) async fn create(request: &ResourceRequest) -> ApiResult<HandlerResponse> {
    let options = Options::of(request)?;
    let mut binding = reading::other(request, "v1", "Binding")?;
    let is_bare = request.target.subresource.is_empty();
    if !is_bare && metadata::text(&binding, "name") != request.target.name {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    object_name::settle(request, &mut binding)?;
    let name = metadata::text(&binding, "name").to_owned();
    check(&binding)?;
    let pods = super::plain(request, "", "pods", &name);
    assign(&pods, &name, &binding, &options).await?;
    Ok(done())
}

fn check(binding: &Value) -> ApiResult<()> {
    let target = At::root(binding).get("target");
    let mut errors: Vec<FieldError> = Vec::new();
    let kind = target.get("kind");
    if !matches!(kind.text(), "" | "Node") {
        errors.push(kind.unsupported(&["Node", "<empty>"]));
    }
    if target.get("name").text().is_empty() {
        errors.push(target.get("name").required(""));
    }
    match errors.first() {
        None => Ok(()),
        Some(error) => Err(Status::failed(error.to_string())),
    }
}

async fn assign(
    pods: &ResourceRequest,
    name: &str,
    binding: &Value,
    options: &Options,
) -> ApiResult<()> {
    let key = pods.key(name);
    loop {
        let snapshot = pods.server.store.snapshot();
        let Some(entry) = snapshot.get(&key) else {
            return Err(Status::not_found(&pods.resource, name));
        };
        let mut pod = pods.read(entry);
        check_pod(name, &pod, binding)?;
        bind(pods, &mut pod, binding);
        crate::canonical::canonicalise(crate::form::shape_of(&pods.resource), &mut pod);
        if options.dry_run {
            return Ok(());
        }
        let value = stored_form(&pods.resource, &pod);
        let put = Write::put(key.clone(), Expect::At(entry.modified), value);
        if let Some(entries) = pods.server.commit(together(put, Vec::new())).await? {
            for entry in entries {
                clusters::after_write(pods, &entry).await?;
            }
            return Ok(());
        }
    }
}

/// Only a pod that waits for a node gets one.
fn check_pod(name: &str, pod: &Value, binding: &Value) -> ApiResult<()> {
    let conflict = |why: String| {
        let message = format!("Operation cannot be fulfilled on pods/binding {name:?}: {why}");
        let mut status = Status::apply_conflict(message, Vec::new());
        name.clone_into(&mut status.details.name);
        "pods/binding".clone_into(&mut status.details.kind);
        Err(status)
    };
    for field in ["uid", "resourceVersion"] {
        let (given, actual) = (metadata::text(binding, field), metadata::text(pod, field));
        if !given.is_empty() && given != actual {
            return conflict(format!(
                "Precondition failed: {field} in precondition: {given}, in object: {actual}"
            ));
        }
    }
    if !metadata::text(pod, "deletionTimestamp").is_empty() {
        return conflict(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if !node.is_empty() {
        return conflict(format!("pod {name} is already assigned to node {node:?}"));
    }
    if !At::root(pod).get("spec.schedulingGates").is_empty() {
        return conflict(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    Ok(())
}

fn bind(request: &ResourceRequest, pod: &mut Value, binding: &Value) {
    pod["spec"]["nodeName"] = binding["target"]["name"].clone();
    for field in ["annotations", "labels"] {
        let Some(Value::Object(given)) = binding["metadata"].get(field) else { continue };
        let into = metadata::of(pod).entry(field).or_insert_with(|| json!({}));
        if !into.is_object() {
            *into = json!({});
        }
        for (key, value) in given {
            into[key.as_str()] = value.clone();
        }
    }
    if let Some(status) = pod["status"].as_object_mut() {
        status.shift_remove("nominatedNodeName");
    }
    conditions::set(request, pod, &json!({"type": "PodScheduled", "status": "True"}));
}
