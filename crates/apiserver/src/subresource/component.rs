//! The parts of a control plane. They are all in this process, so they are well if it answers.

use serde_json::{Value, json};

use crate::handler_response::HandlerResponse;
use crate::registry::Resource;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};

const PARTS: [(&str, &str); 3] =
    [("scheduler", "ok"), ("controller-manager", "ok"), ("etcd-0", "ok")];

const WARNING: &str = "v1 ComponentStatus is deprecated in v1.19+";

pub(crate) fn get(request: &ResourceRequest) -> ApiResult<HandlerResponse> {
    request.warn(WARNING);
    let name = &request.target.name;
    let part = PARTS.iter().find(|(part, _)| part == name);
    let (name, message) = part.ok_or_else(|| {
        // A kube-apiserver names them by their kind.
        let row =
            Resource { plural: "componentstatus".into(), ..Resource::clone(&request.resource) };
        Status::not_found(&row, name)
    })?;
    let mut object = component(name, message);
    object["kind"] = json!("ComponentStatus");
    object["apiVersion"] = json!("v1");
    Ok(HandlerResponse::Object(200, object))
}

pub(crate) fn list(request: &ResourceRequest) -> HandlerResponse {
    request.warn(WARNING);
    let items: Vec<Value> = PARTS.iter().map(|(name, message)| component(name, message)).collect();
    let list =
        json!({"kind": "ComponentStatusList", "apiVersion": "v1", "metadata": {}, "items": items});
    HandlerResponse::Plain(200, list)
}

fn component(name: &str, message: &str) -> Value {
    let condition = json!({"type": "Healthy", "status": "True", "message": message});
    json!({"metadata": {"name": name}, "conditions": [condition]})
}
