//! Tables against those that a real API server (v1.36.3) printed of the same objects.

use serde_json::{Value, json};

use super::*;
use crate::custom::Column as GivenColumn;
use crate::registry::builtin;
use crate::testing::TestServer;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

fn recorded() -> Vec<Value> {
    let text = include_str!("testdata/recorded.json");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The columns of the definition among the recorded objects.
fn given_columns(recorded: &[Value]) -> Vec<GivenColumn> {
    let definition =
        recorded.iter().find(|table| table["plural"] == "customresourcedefinitions").unwrap();
    let version = &definition["rows"][0]["object"]["spec"]["versions"][0];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let columns = version["additionalPrinterColumns"].as_array().unwrap().iter();
    columns
        .map(|column| GivenColumn {
            name: text(&column["name"]),
            kind: text(&column["type"]),
            format: text(&column["format"]),
            description: text(&column["description"]),
            priority: column["priority"].as_i64().unwrap_or(0),
            json_path: text(&column["jsonPath"]),
        })
        .collect()
}

#[test]
fn tables_are_those_of_a_real_server() {
    let recorded = recorded();
    let given = given_columns(&recorded);
    let mut rows = 0;
    for table in &recorded {
        let [group, version, plural, now] =
            ["group", "version", "plural", "now"].map(|key| table[key].as_str().unwrap());
        let columns = match builtin().get(group, version, plural) {
            Some(resource) => resource_columns(resource).unwrap(),
            None => Columns::Custom(custom::columns(&given)),
        };
        let definitions = columns.definitions();
        let shown = definitions.as_array().unwrap().iter();
        let shown: Value = shown
            .map(|one| json!([one["name"], one["type"], one["format"], one["priority"]]))
            .collect();
        assert_eq!(shown, table["columns"], "{plural}");
        let recorded_rows = table["rows"].as_array().unwrap();
        let objects: Vec<Value> = recorded_rows.iter().map(|row| row["object"].clone()).collect();
        let siblings = match builtin().get(group, version, plural) {
            Some(resource) => printed(resource, &objects),
            None => Cow::Borrowed(&*objects),
        };
        for (expected, object) in recorded_rows.iter().zip(&*siblings) {
            let row = Row { object, siblings: &siblings, now: now.parse().unwrap() };
            let made = super::row(&columns, &row, expected["object"].clone());
            assert_eq!(&made, expected, "{plural} {}", object["metadata"]["name"]);
            rows += 1;
        }
    }
    assert!(rows > 130, "{rows}");
}

fn table(server: &TestServer, path: &str) -> Value {
    let answered = server.send("GET", path, &[("accept", TABLE)], "");
    assert_eq!(answered.code, 200, "{path}: {:?}", answered.bytes);
    answered.json()
}

#[test]
fn a_list_and_an_object_are_tables_of_the_same_columns() {
    let server = TestServer::new();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}});
    server.create("/api/v1/namespaces", &namespace);
    let list = table(&server, "/api/v1/namespaces");
    let one = table(&server, "/api/v1/namespaces/a");
    assert_eq!(list["columnDefinitions"], one["columnDefinitions"]);
    assert_eq!(one["rows"][0]["cells"], json!(["a", "Active", "0s"]));
    assert_eq!(one["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert!(one["metadata"]["resourceVersion"].is_string());
    let bare = table(&server, "/api/v1/namespaces/a?includeObject=None");
    assert_eq!(bare["rows"][0]["object"], Value::Null);
    let whole = table(&server, "/api/v1/namespaces/a?includeObject=Object");
    assert_eq!(whole["rows"][0]["object"]["kind"], "Namespace");
    let refused =
        server.send("GET", "/api/v1/namespaces/a?includeObject=Some", &[("accept", TABLE)], "");
    assert_eq!(refused.code, 400);
}

#[test]
fn what_is_never_listed_is_not_printed() {
    let resource = builtin().get("authorization.k8s.io", "v1", "subjectaccessreviews").unwrap();
    assert!(resource_columns(resource).is_none());
    let pods = builtin().get("", "v1", "pods").unwrap();
    assert!(columns_of(pods, &json!({"kind": "Binding"})).is_none());
    let deployments = builtin().get("apps", "v1", "deployments").unwrap();
    let scale = columns_of(deployments, &json!({"kind": "Scale"})).unwrap();
    assert_eq!(scale.definitions().as_array().unwrap().len(), 4);
}

#[test]
fn nothing_that_an_object_holds_upsets_a_table() {
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let odd = [json!(null), json!(7), json!("x"), json!([[]]), json!({"a": [null]}), json!([{}])];
    for resource in builtin().iter() {
        let Some(columns) = resource_columns(resource) else { continue };
        for value in &odd {
            let object = json!({
                "kind": resource.kind, "metadata": value, "spec": value, "status": value,
                "subsets": value, "endpoints": value, "ports": value, "roleRef": value,
                "subjects": value, "conditions": value, "series": value, "webhooks": value,
            });
            let row = Row { object: &object, siblings: std::slice::from_ref(&object), now };
            let made = super::row(&columns, &row, Value::Null);
            let count = columns.definitions().as_array().unwrap().len();
            assert_eq!(made["cells"].as_array().unwrap().len(), count);
        }
    }
}
