//! A kind as somebody would add it: this file, its row in [`super::KINDS`], and its row in the
//! registry.

use serde_json::{Value, json};

use super::at::{At, Errors};
use super::kind::{Change, Kind};
use crate::column::{AGE, Column, NAME, number};
use crate::registry::{Registry, Resource, builtin};
use crate::resource_request::ResourceRequest;
use crate::status::ApiResult;
use crate::testing::TestServer;

pub(super) struct Sample;

impl Kind for Sample {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        if object["spec"]["size"].is_null() {
            object["spec"]["size"] = json!(1);
        }
    }

    fn prepare_create(&self, _request: &ResourceRequest, object: &mut Value) -> ApiResult<()> {
        object["status"] = json!({"phase": "New"});
        Ok(())
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        let mut errors = Errors::new();
        At::root(change.object).get("spec.size").not_negative(&mut errors);
        errors
    }

    fn columns(&self) -> &'static [Column] {
        const { &[NAME, number("Size", "/spec/size"), AGE] }
    }
}

/// Its row, as a line of the registry would give it.
pub(super) fn resource() -> Resource {
    let like = builtin().get("apps", "v1", "deployments").expect("a built-in resource");
    Resource {
        group: "example.com".into(),
        plural: "samples".into(),
        singular: "sample".into(),
        kind: "Sample".into(),
        list_kind: "SampleList".into(),
        short_names: Vec::new(),
        shelf: "example.com/samples".into(),
        ..Resource::clone(like)
    }
}

#[test]
fn a_kind_that_somebody_adds_is_served() {
    let test = TestServer::new();
    let cluster = test.server.cluster("").unwrap();
    let mut registry = Registry::clone(&cluster.registry());
    registry.insert(resource());
    cluster.set_registry(registry);
    let path = "/apis/example.com/v1/namespaces/a/samples";
    test.create("/api/v1/namespaces", &json!({"metadata": {"name": "a"}}));
    let sample = json!({"apiVersion": "example.com/v1", "kind": "Sample", "metadata": {"name": "a"},
        "spec": {"colour": "red"}});
    let created = test.create(path, &sample);
    assert_eq!(created["spec"], json!({"colour": "red", "size": 1}));
    assert_eq!(created["status"]["phase"], "New");
    let (code, read) = test.call("GET", &format!("{path}/a"), &Value::Null);
    assert_eq!((code, &read["spec"]["size"]), (200, &json!(1)));
    let change = json!({"spec": {"size": -1}});
    let (code, refused) = test.call("PATCH", &format!("{path}/a"), &change);
    assert_eq!((code, &refused["details"]["kind"]), (422, &json!("Sample")), "{refused}");
    let (code, list) = test.call("GET", path, &Value::Null);
    assert_eq!((code, list["items"].as_array().map(Vec::len)), (200, Some(1)));
    let accept = ("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let table = test.send("GET", path, &[accept], "").json();
    assert_eq!(table["rows"][0]["cells"], json!(["a", 1, "0s"]));
    assert_eq!(test.call("DELETE", &format!("{path}/a"), &Value::Null).0, 200);
    assert_eq!(test.call("GET", &format!("{path}/a"), &Value::Null).0, 404);
}
