//! Objects changed in part.

use convoy_api::schema::{FieldError, Reason};
use serde_json::Value;

use crate::handler_response::HandlerResponse;
use crate::options::Options;
use crate::patch::{self, PatchError, PatchKind, refusal};
use crate::query::options_kind;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};
use crate::write::{self, Wanted};
use crate::{form, metadata, reading};

use super::apply;

/// What the body of a patch says, by its content type.
#[derive(Debug)]
enum Patch {
    Json(json_patch::Patch),
    Merge(Value),
    Strategic(Value),
}

pub async fn patch(request: &ResourceRequest) -> ApiResult<HandlerResponse> {
    let options = Options::of(request)?;
    let kind = PatchKind::taken(&request.content_type, request.resource.custom.is_some())?;
    if kind == PatchKind::Apply {
        return apply::apply(request, &options).await;
    }
    if request.query.get("force").is_some() {
        let detail = "may not be specified for non-apply patch";
        let error = FieldError::plain(Reason::Forbidden, "force", detail);
        return Err(Status::invalid_thing(options_kind("patch"), "", &[error]));
    }
    let patch = Patch::read(kind, &request.body)
        .map_err(|error| refusal(request.object_bytes_max(), &error))?;
    let name = &request.target.name;
    let is_pinned = patch.names_version();
    let change = |current: &Value| {
        let object = patch
            .carry_out(request, current)
            .map_err(|error| refusal(request.object_bytes_max(), &error))?;
        check_place(request, &object)?;
        let object = reading::patched(request, object, options.validation)?;
        Ok(Wanted { object, is_pinned })
    };
    Ok(write::modify(request, name, &options, change).await?.into_response(200))
}

impl Patch {
    fn read(kind: PatchKind, body: &[u8]) -> Result<Self, PatchError> {
        match kind {
            PatchKind::Json => patch::parse_json_patch(body).map(Self::Json),
            PatchKind::Strategic => match patch::parse_merge_patch(body) {
                // A strategic patch is read by another part of a kube-apiserver.
                Err(PatchError::BadBody(why)) if why.contains("json: ") => {
                    let why = why.trim_start_matches("error decoding patch: ").to_owned();
                    Err(PatchError::BadBody(why))
                }
                read => read.map(Self::Strategic),
            },
            PatchKind::Merge | PatchKind::Apply => patch::parse_merge_patch(body).map(Self::Merge),
        }
    }

    /// Whether it says which version of the object it is for.
    fn names_version(&self) -> bool {
        const VERSION: &str = "/metadata/resourceVersion";
        match self {
            Self::Merge(patch) | Self::Strategic(patch) => {
                patch.pointer(VERSION).is_some_and(|version| !version.is_null())
            }
            Self::Json(patch) => patch.iter().any(|operation| operation.path().as_str() == VERSION),
        }
    }

    fn carry_out(&self, request: &ResourceRequest, current: &Value) -> Result<Value, PatchError> {
        match self {
            Self::Json(patch) => patch::json_patch(current, patch),
            Self::Merge(patch) => Ok(patch::merge_patch(current, patch)),
            Self::Strategic(patch) => {
                patch::strategic_merge(form::shape_of(&request.resource), current, patch)
            }
        }
    }
}

/// A patch moves nothing.
fn check_place(request: &ResourceRequest, object: &Value) -> ApiResult<()> {
    let name = metadata::text(object, "name");
    if name != request.target.name {
        let url_name = &request.target.name;
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({url_name})"
        )));
    }
    if request.resource.namespaced && metadata::text(object, "namespace") != request.namespace() {
        let message = "the namespace of the provided object does not match the namespace sent on \
                       the request";
        return Err(Status::bad_request(message));
    }
    Ok(())
}
