//! The API server in this process: requests in, responses out, nothing on the network or on disk.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use convoy_apiserver::object_meta::Store;
use convoy_apiserver::server::{Limits, Server};
use convoy_apiserver::surroundings::System;
use convoy_apiserver::transport::Transport;
use convoy_store::{MemoryBackend, Settings};
use http::{Method, Request, Uri};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tower_service::Service;

const PODS: &str = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
const COLLECTIONS: [&str; 4] = [PODS, DEPLOYMENTS, WIDGETS, DEFINITIONS];

struct Harness {
    runtime: Runtime,
    transport: Transport,
}

static HARNESS: LazyLock<Harness> = LazyLock::new(Harness::start);

impl Harness {
    /// A server with an object of each kind under test, named `a`.
    fn start() -> Self {
        let settings = Settings { inline: true, ..Settings::default() };
        let store = Store::open(MemoryBackend, settings).expect("memory opens");
        let server = Server::new(store, Arc::new(System), Limits::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let transport = Transport::trusted(&Arc::new(server), "");
        let harness = Self { runtime: runtime.expect("a runtime"), transport };
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}});
        for (path, object) in [
            ("/api/v1/namespaces", namespace),
            (DEFINITIONS, definition()),
            (PODS, pod()),
            (DEPLOYMENTS, deployment()),
            (
                WIDGETS,
                json!({"apiVersion": "example.com/v1", "kind": "Widget",
                "metadata": {"name": "a"}, "spec": {"size": 1, "parts": [{"name": "x"}]}}),
            ),
        ] {
            harness.send(Method::POST, path, "application/json", object.to_string().as_bytes());
        }
        harness
    }

    /// Sends one request and reads the response to its end; its code, unless the path is none.
    fn send(&self, method: Method, path: &str, kind: &str, body: &[u8]) -> Option<u16> {
        let uri = Uri::try_from(path).ok()?;
        let request = Request::builder().method(method).uri(uri).header("content-type", kind);
        let request = request.body(Full::new(Bytes::copy_from_slice(body))).ok()?;
        let mut transport = self.transport.clone();
        self.runtime.block_on(async {
            let response = transport.call(request).await.ok()?;
            let code = response.status().as_u16();
            response.into_body().collect().await.ok()?;
            Some(code)
        })
    }
}

/// A body in one of the encodings, to one of the collections; the first byte chooses.
pub fn body(bytes: &[u8]) {
    let Some((choice, body)) = bytes.split_first() else { return };
    let kinds = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
    let kind = kinds[usize::from(*choice) % kinds.len()];
    let path = COLLECTIONS[usize::from(*choice / 3) % COLLECTIONS.len()];
    HARNESS.send(Method::POST, &format!("{path}?dryRun=All"), kind, body);
}

/// A patch of one of the four types, to one of the objects; the first byte chooses.
pub fn patch(bytes: &[u8]) {
    let Some((choice, body)) = bytes.split_first() else { return };
    let kinds =
        ["json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml"];
    let kind = kinds[usize::from(*choice) % kinds.len()];
    let path = COLLECTIONS[usize::from(*choice / 4) % 3];
    let query = "dryRun=All&fieldManager=fuzz&force=true";
    let query = if kind.starts_with("apply") { query } else { "dryRun=All" };
    HARNESS.send(Method::PATCH, &format!("{path}/a?{query}"), &format!("application/{kind}"), body);
}

/// Any path and query; and as the value of both selectors of a list.
pub fn query(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    HARNESS.send(Method::GET, &format!("/{text}"), "application/json", b"");
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    let pairs =
        pairs.append_pair("labelSelector", &text).append_pair("fieldSelector", &text).finish();
    HARNESS.send(Method::GET, &format!("{PODS}?{pairs}"), "application/json", b"");
}

/// A definition whose schema is any JSON, and a defaulted object of it.
pub fn definition_schema(bytes: &[u8]) {
    let Ok(schema) = serde_json::from_slice::<Value>(bytes) else { return };
    let mut definition = definition();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema;
    let path = format!("{DEFINITIONS}?dryRun=All");
    HARNESS.send(Method::POST, &path, "application/json", definition.to_string().as_bytes());
}

fn definition() -> Value {
    let part = json!({"type": "object", "properties": {"name": {"type": "string"},
        "weight": {"type": "integer", "default": 1}}});
    let spec = json!({"type": "object", "properties": {
        "size": {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= 0"}]},
        "parts": {"type": "array", "items": part, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"]}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]}})
}

fn pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template":
            {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
}
