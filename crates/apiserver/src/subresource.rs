//! Subresources with handlers of their own, and kinds that are never stored.

pub(crate) mod binding;
mod component;
mod conditions;
mod eviction;
mod log;
pub(crate) mod review;
mod scale;
mod token_request;

use serde_json::{Value, json};

use crate::handler_response::HandlerResponse;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};
use crate::verb;

/// A read of kinds that nobody stores; none if the resource is an ordinary one.
pub(crate) fn read(request: &ResourceRequest) -> Option<ApiResult<HandlerResponse>> {
    if !request.resource.is("", "componentstatuses") {
        return None;
    }
    match request.verb.as_str() {
        "get" => Some(component::get(request)),
        "list" => Some(Ok(component::list(request))),
        _ => None,
    }
}

/// A request on a sub-resource of a kind of its own.
pub(crate) async fn carry_out(request: &ResourceRequest) -> ApiResult<HandlerResponse> {
    let name = request.target.subresource.as_str();
    match (name, request.verb.as_str()) {
        ("token", "create") => token_request::create(request),
        ("scale", _) => scale::carry_out(request).await,
        ("binding", "create") => binding::create(request).await,
        ("eviction", "create") => eviction::create(request).await,
        ("log", "get") => log::get(request),
        ("finalize" | "approval" | "ephemeralcontainers" | "resize", "update") => {
            verb::update::update(request).await
        }
        ("approval" | "ephemeralcontainers" | "resize", "patch") => {
            verb::patch::patch(request).await
        }
        ("approval" | "ephemeralcontainers" | "resize", "get") => verb::get::get(request).await,
        ("exec" | "attach" | "portforward", "get" | "create") | ("proxy", _) => {
            Err(not_simulated(name))
        }
        _ => Err(Status::method_not_allowed()),
    }
}

/// Containers run nowhere here, so nothing can be reached inside them.
fn not_simulated(name: &str) -> Box<Status> {
    Status::not_provided(format!(
        "{name} is not provided: workloads are simulated, no container runs behind this API"
    ))
}

/// The same caller's request on a built-in kind itself.
fn plain(request: &ResourceRequest, group: &str, plural: &str, name: &str) -> ResourceRequest {
    let resource = request.registry.get(group, "v1", plural).expect("a built-in resource");
    let namespace = &request.target.namespace;
    let mut plain =
        ResourceRequest::internal(&request.server, &request.cluster, resource, namespace, name);
    plain.caller = request.caller.clone();
    plain.user_agent.clone_from(&request.user_agent);
    plain
}

/// The response of an action without a result: a `Status` of success.
fn done() -> HandlerResponse {
    let status: Value = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
    });
    HandlerResponse::Plain(201, status)
}

#[cfg(test)]
mod tests;
