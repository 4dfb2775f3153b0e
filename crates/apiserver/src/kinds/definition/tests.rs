//! Definitions as clients meet them: served, checked, changed, gone.

mod shipped;

use serde_json::{Value, json};

use crate::testing::TestServer;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn version(name: &str, storage: bool, spec: &Value) -> Value {
    json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {
        "type": "object", "properties": {"spec": spec, "status": {"type": "object",
            "properties": {"replicas": {"type": "integer"}}}}}}})
}

fn widgets(versions: &Value) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "versions": versions,
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["w"]}}})
}

fn size(default: &Value) -> Value {
    let mut size = json!({"type": "integer", "minimum": 0});
    if !default.is_null() {
        size["default"] = default.clone();
    }
    json!({"type": "object", "properties": {"size": size, "name": {"type": "string"}}})
}

fn widget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name},
        "spec": spec})
}

fn conditions(definition: &Value) -> Vec<String> {
    let conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
    conditions
        .map(|one| {
            let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
            format!("{}={} {}", text("type"), text("status"), text("reason"))
        })
        .collect()
}

#[test]
fn a_definition_is_served_once_it_is_accepted() {
    let server = TestServer::new();
    let widgets = widgets(&json!([version("v1", true, &size(&json!(3)))]));
    assert_eq!(server.call("GET", "/apis/example.com/v1/widgets", &Value::Null).0, 404);
    let created = server.create(DEFINITIONS, &widgets);
    assert_eq!(
        created["status"],
        json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": ["v1"]})
    );
    assert_eq!(created["spec"]["names"]["listKind"], "WidgetList");
    assert_eq!(created["spec"]["names"]["singular"], "widget");
    assert_eq!(created["spec"]["conversion"], json!({"strategy": "None"}));
    let stored = server.get(&format!("{DEFINITIONS}/widgets.example.com"));
    assert_eq!(
        conditions(&stored),
        ["NamesAccepted=True NoConflicts", "Established=True InitialNamesAccepted"]
    );
    assert_eq!(stored["status"]["acceptedNames"]["shortNames"], json!(["w"]));
    assert_eq!(stored["metadata"]["generation"], 1);
    let made = server.create("/apis/example.com/v1/widgets", &widget("a", &json!({"foo": 1})));
    assert_eq!(made["spec"], json!({"size": 3}));
    assert_eq!(made["metadata"]["generation"], 1);
    // Without the sub-resource a status is a field like any other.
    let listed = server.get("/apis/example.com/v1/widgets");
    assert_eq!(listed["kind"], "WidgetList");
    assert_eq!(listed["items"][0]["kind"], "Widget");
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table of all rules")]
fn what_a_definition_must_be_like() {
    let server = TestServer::new();
    let good = widgets(&json!([version("v1", true, &size(&Value::Null))]));
    let with = |pointer: &str, value: Value| {
        let mut changed = good.clone();
        *changed.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
        changed
    };
    let v1 = &good["spec"]["versions"][0];
    let mut plain = v1.clone();
    plain["schema"] = Value::Null;
    let mut scaled = v1.clone();
    scaled["subresources"] = json!({"scale": {"specReplicasPath": ".size"}});
    let mut columns = v1.clone();
    columns["additionalPrinterColumns"] = json!([{"name": "A", "type": "text", "jsonPath": "a"}]);
    let mut selected = v1.clone();
    selected["selectableFields"] = json!([{"jsonPath": ".spec"}, {"jsonPath": ".spec.none"}]);
    let mut rule = v1.clone();
    rule["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] = json!([{"rule": "self.("}]);
    let cases: Vec<(Value, &[&str])> = vec![
        (with("/metadata/name", json!("other.example.com")), &["metadata.name"]),
        (with("/spec/group", json!("example")), &["metadata.name", "spec.group"]),
        (with("/spec/scope", json!("Global")), &["spec.scope"]),
        (
            with("/spec/names/kind", json!("Wid_get")),
            &["spec.names.singular", "spec.names.kind", "spec.names.listKind"],
        ),
        (with("/spec/versions", json!([])), &["spec.versions", "status.storedVersions"]),
        (with("/spec/versions", json!([v1, v1])), &["spec.versions", "spec.versions"]),
        (with("/spec/versions/0", plain), &["spec.versions[0].schema.openAPIV3Schema"]),
        (
            with("/spec/versions/0", scaled),
            &[
                "spec.versions[0].subresources.scale.specReplicasPath",
                "spec.versions[0].subresources.scale.statusReplicasPath",
            ],
        ),
        (
            with("/spec/versions/0", columns),
            &[
                "spec.versions[0].additionalPrinterColumns[0].type",
                "spec.versions[0].additionalPrinterColumns[0].JSONPath",
            ],
        ),
        (
            with("/spec/versions/0", selected),
            &[
                "spec.versions[0].selectableFields[0].jsonPath",
                "spec.versions[0].selectableFields[1].jsonPath",
            ],
        ),
        (
            with("/spec/versions/0", rule),
            &["spec.validation.openAPIV3Schema.x-kubernetes-validations[0].rule"],
        ),
        (
            with("/spec/versions/0/schema/openAPIV3Schema/properties/spec", json!({})),
            &["spec.validation.openAPIV3Schema.properties[spec].type"],
        ),
    ];
    for (definition, expected) in cases {
        let (code, status) = server.call("POST", DEFINITIONS, &definition);
        assert_eq!(code, 422, "{expected:?}: {status}");
        let causes = status["details"]["causes"].as_array().unwrap();
        let fields: Vec<&str> =
            causes.iter().map(|cause| cause["field"].as_str().unwrap()).collect();
        assert_eq!(fields, expected, "{status}");
    }
}

#[test]
fn groups_of_kubernetes_need_an_approval() {
    let server = TestServer::new();
    let mut definition = widgets(&json!([version("v1", true, &size(&Value::Null))]));
    definition["metadata"]["name"] = json!("widgets.my.k8s.io");
    definition["spec"]["group"] = json!("my.k8s.io");
    let (code, status) = server.call("POST", DEFINITIONS, &definition);
    assert_eq!(code, 422);
    assert!(status["message"].as_str().unwrap().contains("api-approved.kubernetes.io"));
    definition["metadata"]["annotations"] =
        json!({"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/1"});
    server.create(DEFINITIONS, &definition);
    let stored = server.get(&format!("{DEFINITIONS}/widgets.my.k8s.io"));
    assert_eq!(
        conditions(&stored)[2],
        "KubernetesAPIApprovalPolicyConformant=True ApprovedAnnotation"
    );
}

#[test]
fn two_definitions_cannot_share_a_name_until_one_goes() {
    let server = TestServer::new();
    server.create(DEFINITIONS, &widgets(&json!([version("v1", true, &size(&Value::Null))])));
    let mut second = widgets(&json!([version("v1", true, &size(&Value::Null))]));
    second["metadata"]["name"] = json!("gadgets.example.com");
    second["spec"]["names"] = json!({"plural": "gadgets", "kind": "Widget"});
    server.create(DEFINITIONS, &second);
    let stored = server.get(&format!("{DEFINITIONS}/gadgets.example.com"));
    assert_eq!(
        conditions(&stored),
        ["NamesAccepted=False ListKindConflict", "Established=False NotAccepted"]
    );
    assert_eq!(stored["status"]["acceptedNames"]["plural"], "gadgets");
    assert_eq!(server.call("GET", "/apis/example.com/v1/gadgets", &Value::Null).0, 404);
    server.call("DELETE", &format!("{DEFINITIONS}/widgets.example.com"), &Value::Null);
    server.run(crate::chores::settle(&server.server));
    let stored = server.get(&format!("{DEFINITIONS}/gadgets.example.com"));
    assert_eq!(
        conditions(&stored),
        ["NamesAccepted=True NoConflicts", "Established=True InitialNamesAccepted"]
    );
    server.get("/apis/example.com/v1/gadgets");
}

#[test]
fn what_holds_objects_together_cannot_change() {
    let server = TestServer::new();
    let both = json!([
        version("v1", true, &size(&Value::Null)),
        version("v2", false, &size(&Value::Null))
    ]);
    server.create(DEFINITIONS, &widgets(&both));
    let path = format!("{DEFINITIONS}/widgets.example.com");
    for (patch, field) in [
        (json!({"spec": {"scope": "Namespaced"}}), "spec.scope"),
        (json!({"spec": {"names": {"kind": "Other", "listKind": "OtherList"}}}), "spec.names.kind"),
    ] {
        let (code, status) = server.call("PATCH", &path, &patch);
        assert_eq!(code, 422, "{status}");
        assert_eq!(status["details"]["causes"][0]["field"], field);
        assert!(status["message"].as_str().unwrap().contains("field is immutable"));
    }
    let turned = json!([
        version("v1", false, &size(&Value::Null)),
        version("v2", true, &size(&Value::Null))
    ]);
    let (code, changed) = server.call("PATCH", &path, &json!({"spec": {"versions": turned}}));
    assert_eq!((code, &changed["status"]["storedVersions"]), (200, &json!(["v1", "v2"])));
    assert_eq!(changed["metadata"]["generation"], 2);
    let only = json!({"spec": {"versions": [version("v2", true, &size(&Value::Null))]}});
    let (code, status) = server.call("PATCH", &path, &only);
    assert_eq!(code, 422);
    assert_eq!(status["details"]["causes"][0]["field"], "status.storedVersions[0]");
    let migrated = json!({"status": {"storedVersions": ["v2"]}});
    assert_eq!(server.call("PATCH", &format!("{path}/status"), &migrated).0, 200);
    assert_eq!(server.call("PATCH", &path, &only).0, 200);
    assert_eq!(server.call("GET", "/apis/example.com/v1/widgets", &Value::Null).0, 404);
    server.get("/apis/example.com/v2/widgets");
}

#[test]
fn versions_differ_by_their_name_alone() {
    let server = TestServer::new();
    let mut old = version("v1", false, &size(&Value::Null));
    old["deprecated"] = json!(true);
    server.create(DEFINITIONS, &widgets(&json!([old, version("v2", true, &size(&Value::Null))])));
    server.create("/apis/example.com/v1/widgets", &widget("a", &json!({"size": 1})));
    let read = server.get("/apis/example.com/v2/widgets/a");
    assert_eq!(read["apiVersion"], "example.com/v2");
    let listed = server.get("/apis/example.com/v2/widgets");
    assert_eq!(listed["items"][0]["apiVersion"], "example.com/v2");
    let answered = server.send("GET", "/apis/example.com/v1/widgets/a", &[], "");
    assert_eq!(answered.header("warning"), "299 - \"example.com/v1 Widget is deprecated\"");
    assert_eq!(answered.json()["apiVersion"], "example.com/v1");
}

#[test]
fn defaults_that_come_later_show_on_what_is_stored() {
    let server = TestServer::new();
    server.create(DEFINITIONS, &widgets(&json!([version("v1", true, &size(&Value::Null))])));
    let path = "/apis/example.com/v1/widgets";
    let made = server.create(path, &widget("a", &json!({})));
    assert_eq!(made["spec"], json!({}));
    let changed = json!({"spec": {"versions": [version("v1", true, &size(&json!(5)))]}});
    server.call("PATCH", &format!("{DEFINITIONS}/widgets.example.com"), &changed);
    server.create(path, &widget("b", &json!({})));
    let shows = |server: &TestServer| {
        let listed = server.get(path);
        let sizes: Vec<Value> = listed["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["spec"]["size"].clone())
            .collect();
        assert_eq!(sizes, [json!(5), json!(5)]);
        assert_eq!(server.get(&format!("{path}/a"))["spec"]["size"], 5);
        let found = server.server.cluster("").unwrap().registry();
        let custom = found.get("example.com", "v1", "widgets").unwrap().custom.clone().unwrap();
        custom.has_defaults_at(server.server.store.revision())
    };
    assert!(!shows(&server), "requests of before may still write");
    server.advance_secs(61);
    crate::clusters::definitions::settle_defaults(&server.server);
    assert!(shows(&server));
    let again = TestServer::over(server.server.store.clone());
    assert!(shows(&again));
}

#[test]
fn a_new_object_has_the_status_that_its_schema_defaults() {
    let server = TestServer::new();
    let mut first = version("v1", true, &size(&Value::Null));
    first["subresources"] = json!({"status": {}});
    first["schema"]["openAPIV3Schema"]["properties"]["status"]["default"] = json!({"replicas": 7});
    server.create(DEFINITIONS, &widgets(&json!([first])));
    let path = "/apis/example.com/v1/widgets";
    let mut sent = widget("a", &json!({"size": 1}));
    sent["status"] = json!({"replicas": 1});
    assert_eq!(server.create(path, &sent)["status"], json!({"replicas": 7}));
    assert_eq!(server.get(&format!("{path}/a"))["status"], json!({"replicas": 7}));
    let (code, status) =
        server.call("PATCH", &format!("{path}/a/status"), &json!({"status": {"replicas": 2}}));
    assert_eq!((code, &status["status"]), (200, &json!({"replicas": 2})));
}

#[test]
fn a_schema_that_becomes_stricter_leaves_alone_what_does_not_change() {
    let server = TestServer::new();
    server.create(DEFINITIONS, &widgets(&json!([version("v1", true, &size(&Value::Null))])));
    let path = "/apis/example.com/v1/widgets/a";
    server.create("/apis/example.com/v1/widgets", &widget("a", &json!({"size": 500})));
    let mut stricter = size(&Value::Null);
    stricter["properties"]["size"]["maximum"] = json!(100);
    let changed = json!({"spec": {"versions": [version("v1", true, &stricter)]}});
    server.call("PATCH", &format!("{DEFINITIONS}/widgets.example.com"), &changed);
    let (code, status) = server.call("PATCH", path, &json!({"spec": {"name": "x"}}));
    assert_eq!(code, 200, "{status}");
    let (code, status) = server.call("PATCH", path, &json!({"spec": {"size": 501}}));
    assert_eq!((code, &status["details"]["causes"][0]["field"]), (422, &json!("spec.size")));
    assert_eq!(server.call("PATCH", path, &json!({"spec": {"size": 7}})).0, 200);
}

#[test]
fn a_definition_goes_with_its_objects_and_may_come_back_at_once() {
    let server = TestServer::new();
    let definition = widgets(&json!([version("v1", true, &size(&Value::Null))]));
    let path = format!("{DEFINITIONS}/widgets.example.com");
    server.create(DEFINITIONS, &definition);
    let mut held = widget("held", &json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    server.create("/apis/example.com/v1/widgets", &held);
    server.create("/apis/example.com/v1/widgets", &widget("free", &json!({})));
    let (code, deleted) = server.call("DELETE", &path, &Value::Null);
    assert_eq!(code, 200);
    assert_eq!(
        deleted["metadata"]["finalizers"],
        json!(["customresourcecleanup.apiextensions.k8s.io"])
    );
    assert_eq!(conditions(&deleted)[2], "Terminating=True InstanceDeletionPending");
    let (code, status) =
        server.call("POST", "/apis/example.com/v1/widgets", &widget("late", &json!({})));
    assert_eq!(code, 403);
    let why = "create not allowed while custom resource definition is terminating";
    assert!(status["message"].as_str().unwrap().ends_with(why), "{status}");
    server.run(crate::chores::settle(&server.server));
    assert_eq!(server.get("/apis/example.com/v1/widgets")["items"].as_array().unwrap().len(), 1);
    assert_eq!(conditions(&server.get(&path))[2], "Terminating=True InstanceDeletionInProgress");
    let free = json!({"metadata": {"finalizers": null}});
    server.call("PATCH", "/apis/example.com/v1/widgets/held", &free);
    server.run(crate::chores::settle(&server.server));
    assert_eq!(server.call("GET", &path, &Value::Null).0, 404);
    assert_eq!(server.call("GET", "/apis/example.com/v1/widgets", &Value::Null).0, 404);
    server.create(DEFINITIONS, &definition);
    server.create("/apis/example.com/v1/widgets", &widget("free", &json!({})));
}

#[test]
fn a_definition_whose_author_was_interrupted_is_served_too() {
    let server = TestServer::new();
    let mut definition = widgets(&json!([version("v1", true, &size(&Value::Null))]));
    definition["status"] = json!({"conditions": null, "storedVersions": ["v1"]});
    super::default(&mut definition);
    let key = server.server.cluster("").unwrap().shelf(super::resource());
    let bytes = crate::encoding::stored(&definition);
    let transaction = convoy_store::Transaction::create(key.key("", "widgets.example.com"), bytes);
    server.server.store.write(transaction).unwrap();
    assert_eq!(server.call("GET", "/apis/example.com/v1/widgets", &Value::Null).0, 404);
    server.run(crate::chores::settle(&server.server));
    server.get("/apis/example.com/v1/widgets");
}

#[test]
fn a_restart_serves_what_was_served() {
    let server = TestServer::new();
    server.create(DEFINITIONS, &widgets(&json!([version("v1", true, &size(&Value::Null))])));
    server.create("/apis/example.com/v1/widgets", &widget("a", &json!({"size": 1})));
    let revision = server.server.store.revision();
    let again = TestServer::over(server.server.store.clone());
    assert_eq!(again.get("/apis/example.com/v1/widgets/a")["spec"]["size"], 1);
    assert_eq!(again.server.store.revision(), revision, "starting writes nothing");
}

#[test]
fn a_rule_that_costs_too_much_is_stopped() {
    let server = TestServer::new();
    let integers = json!({"type": "array", "maxItems": 725, "items": {"type": "integer"}});
    let spec = json!({"type": "object", "properties": {"large": integers}, "x-kubernetes-validations": [
        {"rule": "self.large.all(x, self.large.all(y, y == x))"}]});
    server.create(DEFINITIONS, &widgets(&json!([version("v1", true, &spec)])));
    let path = "/apis/example.com/v1/widgets";
    let (code, refused) = server.call("POST", path, &widget("a", &json!({"large": vec![20; 725]})));
    assert_eq!(code, 422);
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.contains("no further validation rules will be run due to call cost exceeds limit")
    );
    server.create(path, &widget("b", &json!({"large": vec![20; 100]})));
}

#[test]
fn replacing_what_is_not_there_says_so_whatever_version_it_names() {
    let server = TestServer::new();
    server.create(DEFINITIONS, &widgets(&json!([version("v1", true, &size(&Value::Null))])));
    for version in [None, Some("1")] {
        let mut gone = widget("gone", &json!({}));
        if let Some(version) = version {
            gone["metadata"]["resourceVersion"] = json!(version);
        }
        let (code, status) = server.call("PUT", "/apis/example.com/v1/widgets/gone", &gone);
        assert_eq!((code, &status["reason"]), (404, &json!("NotFound")), "{version:?}");
    }
}

#[test]
fn strict_validation_of_an_apply_tells_what_the_schema_lacks_and_what_comes_twice() {
    let server = TestServer::new();
    server.create(DEFINITIONS, &widgets(&json!([version("v1", true, &size(&Value::Null))])));
    let path = "/apis/example.com/v1/widgets/w?fieldManager=m&fieldValidation=Strict";
    let apply = |rest: &str| {
        let head = "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: w\n";
        let media = ("content-type", "application/apply-patch+yaml");
        let answered = server.send("PATCH", path, &[media], format!("{head}{rest}"));
        (answered.code, answered.json()["message"].as_str().unwrap_or_default().to_owned())
    };
    let (_, unknown) = apply("unknownField: unknown\nspec:\n  size: 1\n");
    assert!(unknown.ends_with(": .unknownField: field not declared in schema"), "{unknown}");
    let twice = "error strict decoding patch: error converting YAML to JSON: yaml: unmarshal \
                 errors:\n  line 7: key \"size\" already set in map";
    assert_eq!(apply("spec:\n  size: 1\n  size: 2\n"), (400, twice.to_owned()));
    assert_eq!(apply("spec:\n  size: 1\n").0, 201);
}
