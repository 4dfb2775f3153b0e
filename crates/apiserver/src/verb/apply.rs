//! Server-side apply.

use serde_json::Value;

use crate::handler_response::HandlerResponse;
use crate::options::Options;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};
use crate::write::{self, Wanted};
use crate::{managed, metadata, reading};

/// Server-side apply: the object becomes what its owners want of it.
pub(crate) async fn apply(
    request: &ResourceRequest,
    options: &Options,
) -> ApiResult<HandlerResponse> {
    managed::check_manager(request)?;
    let reading::Configuration { value: config, refusal: strict } =
        reading::configuration(request, options.validation)?;
    let force = request.query.flag("force");
    let options = Options { tracks: false, ..options.clone() };
    let name = &request.target.name;
    let applied = |live: Option<&Value>| {
        let object = managed::applied(request, &options, live, &config, force)?;
        strict.clone().map_or(Ok(object), Err)
    };
    loop {
        let exists = request.server.store.snapshot().get(&request.key(name)).is_some();
        if exists {
            let change =
                |current: &Value| Ok(Wanted { object: applied(Some(current))?, is_pinned: false });
            match write::modify(request, name, &options, change).await {
                // It went between the look and the change; then it is to be made.
                Err(status) if status.code == 404 && request.target.subresource.is_empty() => {}
                outcome => return Ok(outcome?.into_response(200)),
            }
        } else if request.target.subresource.is_empty() {
            let uid = metadata::text(&config, "uid");
            if !uid.is_empty() {
                let why = format!(
                    "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                );
                return Err(Status::conflict(&request.resource, name, &why));
            }
            let object = applied(None)?;
            match write::create(request, object, &options).await {
                // Somebody else made it meanwhile; then it is to be changed.
                Err(status) if status.reason == "AlreadyExists" && !is_leaving(request) => {}
                outcome => return Ok(outcome?.into_response(201)),
            }
        } else {
            return Err(Status::not_found(&request.resource, name));
        }
    }
}

fn is_leaving(request: &ResourceRequest) -> bool {
    let snapshot = request.server.store.snapshot();
    snapshot.get(&request.key(&request.target.name)).is_some_and(|entry| entry.meta.is_deleting())
}
