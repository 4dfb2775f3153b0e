//! Operations: what can be done at which path, as far as clients look for it.

use serde_json::{Map, Value, json};
use smol_str::SmolStr;

use super::names::{kind_schema_name, schema_name};
use super::schemas::{DELETE_OPTIONS, PATCH, STATUS, reference};
use crate::discovery::{kind_of, verbs_of};
use crate::registry::{Resource, Subresource};

/// Adds the paths of a resource and of its sub-resources.
pub(super) fn add_paths(resource: &Resource, paths: &mut Map<String, Value>) {
    let root = if resource.group.is_empty() {
        format!("/api/{}", resource.version)
    } else {
        format!("/apis/{}/{}", resource.group, resource.version)
    };
    let collection = if resource.namespaced {
        format!("{root}/namespaces/{{namespace}}/{}", resource.plural)
    } else {
        format!("{root}/{}", resource.plural)
    };
    let names = OperationNames::of(resource);
    if resource.namespaced && resource.has_verb("list") {
        let id = format!("list{}{}ForAllNamespaces", names.group, resource.kind);
        let mut item = Map::new();
        item.insert("get".into(), names.operation(&Operation { id, ..LIST }));
        item.insert("parameters".into(), json!(LIST_QUERY.map(query)));
        paths.insert(format!("{root}/{}", resource.plural), Value::Object(item));
    }
    put_path(paths, collection.clone(), names.collection());
    put_path(paths, format!("{collection}/{{name}}"), names.single());
    for part in &resource.subresources {
        put_path(paths, format!("{collection}/{{name}}/{}", part.name), names.part(part));
    }
}

fn put_path(paths: &mut Map<String, Value>, path: String, mut item: Map<String, Value>) {
    if item.is_empty() {
        return;
    }
    let names = ["name", "namespace"].into_iter();
    let in_path = names.filter(|name| path.contains(&format!("{{{name}}}"))).map(
        |name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}),
    );
    let parameters: Vec<Value> = in_path.chain([query(&("pretty", "string"))]).collect();
    item.insert("parameters".into(), Value::Array(parameters));
    paths.insert(path, Value::Object(item));
}

const LIST_QUERY: [&(&str, &str); 10] = [
    &("allowWatchBookmarks", "boolean"),
    &("continue", "string"),
    &("fieldSelector", "string"),
    &("labelSelector", "string"),
    &("limit", "integer"),
    &("resourceVersion", "string"),
    &("resourceVersionMatch", "string"),
    &("sendInitialEvents", "boolean"),
    &("timeoutSeconds", "integer"),
    &("watch", "boolean"),
];
const WRITE_QUERY: [&(&str, &str); 3] =
    [&("dryRun", "string"), &("fieldManager", "string"), &("fieldValidation", "string")];
const FORCE: &(&str, &str) = &("force", "boolean");
const DELETE_QUERY: [&(&str, &str); 4] = [
    &("dryRun", "string"),
    &("gracePeriodSeconds", "integer"),
    &("orphanDependents", "boolean"),
    &("propagationPolicy", "string"),
];

/// What distinguishes one operation from another.
struct Operation<'o> {
    action: &'o str,
    id: String,
    codes: &'o [u16],
    /// The schema of the response; the resource's own kind if empty.
    answers: &'o str,
}

const LIST: Operation<'static> =
    Operation { action: "list", id: String::new(), codes: &[200], answers: "list" };

/// A resource, and the parts that the ids of its operations share.
struct OperationNames<'r> {
    resource: &'r Resource,
    /// `AppsV1`.
    group: String,
    /// `NamespacedDeployment`.
    thing: String,
    schema: String,
}

impl<'r> OperationNames<'r> {
    fn of(resource: &'r Resource) -> Self {
        let group = group_word(&resource.group) + &capitalised(&resource.version);
        let scope = if resource.namespaced { "Namespaced" } else { "" };
        let thing = format!("{scope}{}", resource.kind);
        Self { resource, group, thing, schema: schema_name(resource) }
    }

    fn collection(&self) -> Map<String, Value> {
        let mut item = Map::new();
        let has = |verb| self.resource.has_verb(verb);
        if has("list") {
            let mut list = self.operation(&Operation { id: self.id("list", ""), ..LIST });
            list["parameters"] = json!(LIST_QUERY.map(query));
            item.insert("get".into(), list);
        }
        if has("create") {
            item.insert("post".into(), self.write("post", "create", "", &[200, 201, 202]));
        }
        if has("deletecollection") {
            let id = format!("delete{}Collection{}", self.group, self.thing);
            let operation =
                Operation { action: "deletecollection", id, codes: &[200], answers: STATUS };
            let mut delete = self.operation(&operation);
            delete["parameters"] = json!(
                LIST_QUERY.iter().chain(&DELETE_QUERY).map(|one| query(one)).collect::<Vec<_>>()
            );
            delete["requestBody"] = body(DELETE_OPTIONS, false);
            item.insert("delete".into(), delete);
        }
        item
    }

    fn single(&self) -> Map<String, Value> {
        let mut item = Map::new();
        let has = |verb| self.resource.has_verb(verb);
        if has("get") {
            item.insert("get".into(), self.read(""));
        }
        if has("update") {
            item.insert("put".into(), self.write("put", "replace", "", &[200, 201]));
        }
        if has("delete") {
            let operation = Operation {
                action: "delete",
                id: self.id("delete", ""),
                codes: &[200, 202],
                answers: if self.resource.delete_returns_object { "" } else { STATUS },
            };
            let mut delete = self.operation(&operation);
            delete["parameters"] = json!(DELETE_QUERY.map(query));
            delete["requestBody"] = body(DELETE_OPTIONS, false);
            item.insert("delete".into(), delete);
        }
        if has("patch") {
            item.insert("patch".into(), self.patch(""));
        }
        item
    }

    /// A sub-resource. Streams are left out: no client looks for them here.
    fn part(&self, part: &Subresource) -> Map<String, Value> {
        let (group, version, kind) = kind_of(self.resource, part);
        let suffix = capitalised(&part.name);
        let schema = kind_schema_name(self.resource, &group, &version, &kind);
        let other = OperationNames {
            schema,
            thing: self.thing.clone(),
            group: self.group.clone(),
            ..*self
        };
        let mut item = Map::new();
        for verb in verbs_of(part).iter().filter(|_| !is_stream(&part.name)) {
            let (method, mut operation) = match *verb {
                "get" => ("get", other.read(&suffix)),
                "create" => ("post", other.write("post", "create", &suffix, &[200, 201, 202])),
                "update" => ("put", other.write("put", "replace", &suffix, &[200, 201])),
                _ => ("patch", other.patch(&suffix)),
            };
            operation[KIND] = kind_value(&group, &version, &kind);
            item.insert(method.into(), operation);
        }
        item
    }

    fn read(&self, suffix: &str) -> Value {
        let id = self.id("read", suffix);
        self.operation(&Operation { action: "get", id, codes: &[200], answers: "" })
    }

    fn write(&self, action: &str, word: &str, suffix: &str, codes: &[u16]) -> Value {
        let id = self.id(word, suffix);
        let mut operation = self.operation(&Operation { action, id, codes, answers: "" });
        operation["parameters"] = json!(WRITE_QUERY.map(query));
        operation["requestBody"] = body(&self.schema, true);
        operation
    }

    fn patch(&self, suffix: &str) -> Value {
        let id = self.id("patch", suffix);
        let mut operation =
            self.operation(&Operation { action: "patch", id, codes: &[200, 201], answers: "" });
        operation["parameters"] =
            json!(WRITE_QUERY.iter().chain([&FORCE]).map(|one| query(one)).collect::<Vec<_>>());
        let mut media = vec![
            "application/apply-patch+yaml",
            "application/json-patch+json",
            "application/merge-patch+json",
        ];
        // Clients take its absence for the sign of a custom kind.
        if self.resource.custom.is_none() {
            media.push("application/strategic-merge-patch+json");
        }
        operation["requestBody"] = json!({"content": content(&media, PATCH), "required": true});
        operation
    }

    fn id(&self, word: &str, suffix: &str) -> String {
        format!("{word}{}{}{suffix}", self.group, self.thing)
    }

    fn operation(&self, operation: &Operation<'_>) -> Value {
        let schema = match operation.answers {
            "" => self.schema.clone(),
            "list" => format!("{}List", self.schema),
            other => other.to_owned(),
        };
        let media: &[&str] = match self.resource.custom {
            Some(_) => &["application/json", "application/yaml"],
            None => {
                &["application/json", "application/vnd.kubernetes.protobuf", "application/yaml"]
            }
        };
        let mut responses = Map::new();
        for code in operation.codes {
            let description = match code {
                201 => "Created",
                202 => "Accepted",
                _ => "OK",
            };
            let answer = json!({"description": description, "content": content(media, &schema)});
            responses.insert(code.to_string(), answer);
        }
        responses.insert("401".into(), json!({"description": "Unauthorized"}));
        let resource = self.resource;
        json!({
            "tags": [tag(resource)],
            "operationId": operation.id,
            "responses": responses,
            "x-kubernetes-action": operation.action,
            KIND: kind_value(&resource.group, &resource.version, &resource.kind),
        })
    }
}

const KIND: &str = "x-kubernetes-group-version-kind";

fn is_stream(part: &str) -> bool {
    matches!(part, "attach" | "exec" | "log" | "portforward" | "proxy")
}

fn kind_value(group: &SmolStr, version: &SmolStr, kind: &SmolStr) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}

fn query((name, of): &(&str, &str)) -> Value {
    json!({"name": name, "in": "query", "schema": {"type": of, "uniqueItems": true}})
}

fn body(schema: &str, required: bool) -> Value {
    let mut body = json!({"content": content(&["*/*"], schema)});
    if required {
        body["required"] = json!(true);
    }
    body
}

fn content(media: &[&str], schema: &str) -> Value {
    media.iter().map(|media| ((*media).to_owned(), json!({"schema": reference(schema)}))).collect()
}

/// `core_v1`, `apps_v1`.
fn tag(resource: &Resource) -> String {
    let group = group_word(&resource.group);
    let mut letters = group.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    format!("{}{}_{}", first.unwrap_or_default(), letters.as_str(), resource.version)
}

/// `Core`, `Apps`, `RbacAuthorization`, `StableExampleCom`.
fn group_word(group: &str) -> String {
    match group {
        "" => "Core".to_owned(),
        _ => group.trim_end_matches(".k8s.io").split('.').map(capitalised).collect(),
    }
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
