//! Subresources with handlers of their own, and kinds that are never stored.

pub(crate) mod binding;
pub(crate) mod component;
mod conditions;
mod eviction;
mod log;
pub(crate) mod review;
mod scale;
mod token_request;

use serde_json::{Value, json};

use crate::handler_response::HandlerResponse;
use crate::request_info::Verb;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};
use crate::verb;

/// A request on a sub-resource of a kind of its own.
pub(crate) async fn carry_out(request: &ResourceRequest) -> ApiResult<HandlerResponse> {
    let name = request.target.subresource.as_str();
    match (name, &request.verb) {
        ("token", Verb::Create) => token_request::create(request),
        ("scale", _) => scale::carry_out(request).await,
        ("binding", Verb::Create) => binding::create(request).await,
        ("eviction", Verb::Create) => eviction::create(request).await,
        ("log", Verb::Get) => log::get(request),
        ("finalize" | "approval" | "ephemeralcontainers" | "resize", Verb::Update) => {
            verb::update::update(request).await
        }
        ("approval" | "ephemeralcontainers" | "resize", Verb::Patch) => {
            verb::patch::patch(request).await
        }
        ("approval" | "ephemeralcontainers" | "resize", Verb::Get) => verb::get::get(request).await,
        ("exec" | "attach" | "portforward", Verb::Get | Verb::Create) | ("proxy", _) => {
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
    ResourceRequest::internal(&request.server, &request.cluster, resource, namespace, name)
        .on_behalf_of(request)
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
