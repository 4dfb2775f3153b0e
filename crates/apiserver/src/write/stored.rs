//! The bytes that a write stores.

use serde_json::Value;

use crate::convert::stored_form;
use crate::options::Options;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};
use crate::{conversion, metadata};

/// The bytes to store, if they are not too many. Who owns what is the first to go, unless it is
/// what the request is about.
pub(super) async fn fitting(
    request: &ResourceRequest,
    object: &Value,
    options: &Options,
) -> ApiResult<bytes::Bytes> {
    let converted = conversion::to_storage(request, object).await?;
    let object = converted.as_ref().unwrap_or(object);
    let most = request.server.limits.body_bytes_max;
    let value = stored_form(&request.resource, object);
    if value.len() <= most {
        return Ok(value);
    }
    if options.tracks {
        let mut without = object.clone();
        metadata::of(&mut without).shift_remove("managedFields");
        let value = stored_form(&request.resource, &without);
        if value.len() <= most {
            return Ok(value);
        }
    }
    Err(Status::too_large(most))
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use crate::testing::TestServer;

    const PATH: &str = "/apis/example.com/v1/widgets";

    fn server() -> TestServer {
        let test = TestServer::new();
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let definition = json!({"metadata": {"name": "widgets.example.com"}, "spec": {
            "group": "example.com", "scope": "Cluster",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}}]}});
        test.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition);
        test
    }

    /// A widget of so many fields, each with so many bytes.
    fn widget(name: &str, fields: usize, bytes: usize) -> Value {
        let spec = (0..fields).map(|number| (format!("f{number:05}"), json!("x".repeat(bytes))));
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name},
            "spec": spec.collect::<Map<_, _>>()})
    }

    #[test]
    fn who_owns_what_goes_before_an_object_is_too_large() {
        let test = server();
        let small = test.create(PATH, &widget("small", 10, 10));
        assert!(small["metadata"]["managedFields"].is_array());
        // 2.9 MiB to send, and more than 3 MiB with the owner of each field.
        let large = test.create(PATH, &widget("large", 10_000, 290));
        assert!(large["metadata"]["managedFields"].is_null());
        assert_eq!(large["spec"]["f09999"].as_str().unwrap().len(), 290);
    }

    #[test]
    fn objects_do_not_grow_beyond_their_limit() {
        let test = server();
        test.create(PATH, &widget("w", 1, 2 << 20));
        let change = json!({"spec": {"more": "x".repeat(2 << 20)}});
        let (code, answer) = test.call("PATCH", &format!("{PATH}/w"), &change);
        assert_eq!((code, answer["reason"].as_str()), (413, Some("RequestEntityTooLarge")));
        assert_eq!(answer["message"], "Request entity too large: limit is 3145728");
    }
}
