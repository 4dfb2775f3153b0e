//! Objects replaced as a whole.

use convoy_api::schema::FieldError;
use serde_json::{Value, json};

use crate::handler_response::HandlerResponse;
use crate::options::Options;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Named, Status};
use crate::write::{self, Wanted};
use crate::{metadata, reading};

pub async fn update(request: &ResourceRequest) -> ApiResult<HandlerResponse> {
    let options = Options::of(request)?;
    let mut object = reading::object(request, options.validation)?;
    crate::object_name::settle(request, &mut object)?;
    let name = &request.target.name;
    let is_pinned = metadata::is_pinned(&object);
    let resource = &request.resource;
    if request.server.store.snapshot().get(&request.key(name)).is_none() {
        if request.target.subresource.is_empty() && resource.put_creates {
            return create_by_put(request, object, &options).await;
        }
        return Err(Status::not_found(resource, name));
    }
    if !is_pinned && (resource.put_needs_version || resource.custom.is_some()) {
        let detail = "must be specified for an update";
        let error = FieldError::invalid("metadata.resourceVersion", &json!(0), detail);
        let mut status = Status::invalid(resource, name, &[error]);
        status.message =
            status.message.replacen(&resource.qualified_kind(), &resource.qualified(), 1);
        status.details.kind = resource.plural.to_string();
        return Err(status);
    }
    let change = |_: &Value| Ok(Wanted { object: object.clone(), is_pinned });
    Ok(write::modify(request, name, &options, change).await?.into_response(200))
}

async fn create_by_put(
    request: &ResourceRequest,
    mut object: Value,
    options: &Options,
) -> ApiResult<HandlerResponse> {
    if !metadata::text(&object, "uid").is_empty() {
        let why = "Precondition failed: UID in precondition, but the object does not exist";
        return Err(Status::conflict(&request.resource, &request.target.name, why));
    }
    metadata::of(&mut object).shift_remove("resourceVersion");
    Ok(write::create(request, object, options).await?.into_response(201))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::TestServer;

    #[test]
    fn version_zero_replaces_whatever_is_there() {
        let test = TestServer::with_namespace();
        let maps = "/api/v1/namespaces/default/configmaps";
        let map = |version: &str, word: &str| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"word": word},
                "metadata": {"name": "a", "resourceVersion": version}})
        };
        test.create(maps, &map("0", "one"));
        let put = |version: &str, word: &str| {
            test.call("PUT", &format!("{maps}/a"), &map(version, word)).0
        };
        assert_eq!([put("0", "two"), put("", "three"), put("1", "four")], [200, 200, 409]);
        assert_eq!(test.get(&format!("{maps}/a"))["data"]["word"], "three");
    }
}
