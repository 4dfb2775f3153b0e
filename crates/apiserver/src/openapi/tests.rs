//! OpenAPI as kubectl and Helm read it.

use serde_json::{Value, json};

use crate::testing::TestServer;

fn url(server: &TestServer, path: &str) -> String {
    let index = server.get("/openapi/v3");
    index["paths"][path]["serverRelativeURL"].as_str().unwrap().to_owned()
}

#[test]
fn documents_stand_under_addresses_that_never_change() {
    let server = TestServer::new();
    let url = url(&server, "apis/apps/v1");
    let answered = server.send("GET", &url, &[], "");
    assert_eq!(answered.header("cache-control"), "public, immutable");
    assert_eq!(answered.header("expires"), "Fri, 01 Jan 2027 00:00:00 GMT");
    let stale = server.send("GET", "/openapi/v3/apis/apps/v1?hash=OLD", &[], "");
    assert_eq!((stale.code, stale.header("location")), (301, &*url));
    let packed = server.send("GET", &url, &[("accept-encoding", "gzip")], "");
    assert_eq!(packed.header("content-encoding"), "gzip");
    assert!(packed.bytes.len() * 4 < answered.bytes.len());
    let protobuf = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
    assert_eq!(server.send("GET", &url, &[("accept", protobuf)], "").code, 406);
}

#[test]
fn kubectl_finds_what_it_decides_by() {
    let server = TestServer::new();
    let document = server.get(&url(&server, "apis/apps/v1"));
    let patch =
        &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "apps", "version": "v1", "kind": "Deployment"})
    );
    assert_eq!(patch["operationId"], "patchAppsV1NamespacedDeployment");
    let names: Vec<&Value> =
        patch["parameters"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation", "force"]);
    assert!(patch["requestBody"]["content"]["application/strategic-merge-patch+json"].is_object());
    let schemas = &document["components"]["schemas"];
    let deployment = &schemas["io.k8s.api.apps.v1.Deployment"];
    assert_eq!(
        deployment["x-kubernetes-group-version-kind"],
        json!([{"group": "apps", "kind": "Deployment", "version": "v1"}])
    );
    let containers = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
    assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
    let strategy = &schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["strategy"];
    assert_eq!(strategy["x-kubernetes-patch-strategy"], "retainKeys");
    assert!(strategy["allOf"][0]["$ref"].is_string());
    assert_eq!(deployment["required"], Value::Null);
    let claim = &schemas["io.k8s.api.core.v1.PersistentVolumeClaim"];
    assert_eq!(claim["x-kubernetes-group-version-kind"][0]["kind"], "PersistentVolumeClaim");
}

#[test]
fn every_reference_leads_somewhere() {
    let server = TestServer::new();
    let index = server.get("/openapi/v3");
    for (path, place) in index["paths"].as_object().unwrap() {
        let text = server.send("GET", place["serverRelativeURL"].as_str().unwrap(), &[], "");
        let document = text.json();
        let schemas = &document["components"]["schemas"];
        for (prefix, target) in references(&document) {
            assert_eq!(prefix, "#/components/schemas/");
            assert!(schemas[&target].is_object(), "{path}: {target}");
        }
    }
    let swagger = server.get("/openapi/v2");
    for (prefix, target) in references(&swagger) {
        assert_eq!(prefix, "#/definitions/");
        assert!(swagger["definitions"][&target].is_object(), "{target}");
    }
}

fn references(value: &Value) -> Vec<(String, String)> {
    match value {
        Value::Array(items) => items.iter().flat_map(references).collect(),
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(key, value)| match (key.as_str(), value) {
                ("$ref", Value::String(target)) => {
                    let split = target.rfind('/').map_or(0, |slash| slash + 1);
                    vec![(target[..split].to_owned(), target[split..].to_owned())]
                }
                (_, value) => references(value),
            })
            .collect(),
        _ => Vec::new(),
    }
}

#[test]
fn a_new_definition_shows_at_once_and_changes_no_other_document() {
    let server = TestServer::new();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget",
                "listKind": "WidgetList", "shortNames": ["wd"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                "schema": {"openAPIV3Schema": {"type": "object", "description": "A widget.",
                    "properties": {"spec": {"type": "object", "properties": {
                        "size": {"type": "integer", "description": "How large."}}}}}},
            }],
        },
    });
    let before = url(&server, "api/v1");
    server.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition);
    assert_eq!(url(&server, "api/v1"), before);
    assert_eq!(server.get("/apis/example.com/v1")["resources"][0]["shortNames"], json!(["wd"]));
    let service = server.get("/apis/apiregistration.k8s.io/v1/apiservices/v1.example.com");
    assert_eq!(service["metadata"]["labels"]["kube-aggregator.kubernetes.io/automanaged"], "true");
    let document = server.get(&url(&server, "apis/example.com/v1"));
    let widget = &document["components"]["schemas"]["com.example.v1.Widget"];
    assert_eq!(widget["properties"]["spec"]["properties"]["size"]["description"], "How large.");
    let item = &document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"];
    let bodies = item["patch"]["requestBody"]["content"].as_object().unwrap();
    assert!(!bodies.contains_key("application/strategic-merge-patch+json"));
    assert_eq!(item["patch"]["operationId"], "patchExampleComV1NamespacedWidget");
    let swagger = server.get("/openapi/v2");
    assert!(swagger["definitions"]["com.example.v1.WidgetList"].is_object());
    let table = server.send(
        "GET",
        "/apis/example.com/v1/widgets",
        &[("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")],
        "",
    );
    assert_eq!(table.json()["columnDefinitions"][1]["name"], "Size");
}

#[test]
fn fields_with_few_values_list_them() {
    let server = TestServer::new();
    let schemas = server.get("/openapi/v3/api/v1")["components"]["schemas"].clone();
    let of = |name: &str, field: &str| {
        schemas[format!("io.k8s.api.core.v1.{name}")]["properties"][field].clone()
    };
    let kinds = json!(["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]);
    assert_eq!(of("ServiceSpec", "type")["enum"], kinds);
    assert_eq!(of("PersistentVolumeSpec", "accessModes")["items"]["enum"][0], "ReadOnlyMany");
}
