//! Namespace and name of an object: those of its metadata must be those of the path.

use serde_json::{Value, json};

use crate::metadata;
use crate::request_info::Verb;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};

/// Namespace and name must be those of the path.
pub(crate) fn settle(request: &ResourceRequest, object: &mut Value) -> ApiResult<()> {
    let resource = &request.resource;
    let namespace = request.namespace().to_owned();
    let url_name = request.target.name.clone();
    let metadata = metadata::of(object);
    if resource.namespaced {
        match metadata.get("namespace").and_then(Value::as_str).unwrap_or_default() {
            "" => {
                metadata.insert("namespace".into(), json!(namespace));
            }
            given if given != namespace => {
                let message = "the namespace of the provided object does not match the namespace \
                               sent on the request";
                return Err(Status::bad_request(message));
            }
            _ => {}
        }
    } else {
        metadata.shift_remove("namespace");
    }
    if !url_name.is_empty() {
        match metadata.get("name").and_then(Value::as_str).unwrap_or_default() {
            "" if matches!(request.verb, Verb::Create | Verb::Patch) => {
                metadata.insert("name".into(), json!(url_name));
            }
            "" => {
                return Err(Status::bad_request(format!(
                    "the name of the object ({url_name} based on URL) was undeterminable: name must be provided"
                )));
            }
            given if given != url_name => {
                return Err(Status::bad_request(format!(
                    "the name of the object ({given}) does not match the name on the URL ({url_name})"
                )));
            }
            _ => {}
        }
    }
    Ok(())
}
