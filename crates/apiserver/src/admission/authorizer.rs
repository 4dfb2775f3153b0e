//! `authorizer` in expressions: what the caller of a request, or a service account, may do.
//!
//! Each step of a question is a value of its own, as expressions build it up: a group, a resource
//! in it, a place; `check` asks, and what it gives tells the answer.

use std::sync::Arc;

use convoy_api::cel::Scope;
use serde_json::{Value, json};

use super::audience::Subject;
use super::review::name;
use crate::access::{AccessTarget, Attributes, Decision};
use crate::caller::{AUTHENTICATED, Caller};
use crate::server::{Cluster, Server};

/// The variable that expressions know it by.
pub(super) const NAME: &str = "authorizer";

/// A scope in which expressions may ask.
pub(super) fn with_authorizer(scope: Scope, subject: &Subject<'_>) -> Scope {
    let request = subject.request;
    let own = json!({
        "path": null, "group": request.resource.group, "resource": request.resource.plural,
        "subresource": request.target.subresource, "namespace": request.namespace(),
        "name": name(request, subject.object),
    });
    let scope = scope.variable(NAME, &json!({"requestResource": own}));
    let parts = ["group", "resource", "subresource", "namespace", "name", "path"];
    let scope = parts.into_iter().fold(scope, |scope, part| {
        scope.function(part, move |arguments| with_part(arguments, part))
    });
    let server = Arc::clone(&request.server);
    let (cluster, caller) = (Arc::clone(&request.cluster), request.caller.clone());
    scope
        .function("serviceAccount", account)
        .function("fieldSelector", |arguments| Ok(arguments[0].clone()))
        .function("labelSelector", |arguments| Ok(arguments[0].clone()))
        .function("check", move |arguments| check(&server, &cluster, &caller, arguments))
        .function("allowed", |arguments| told(arguments, "allowed"))
        .function("reason", |arguments| told(arguments, "reason"))
        .function("errored", |arguments| told(arguments, "allowed").map(|_| json!(false)))
        .function("error", |arguments| told(arguments, "allowed").map(|_| json!("")))
}

const NO_OVERLOAD: &str = "no such overload";

fn with_part(arguments: &[Value], part: &str) -> Result<Value, String> {
    let [Value::Object(question), Value::String(value)] = arguments else {
        return Err(NO_OVERLOAD.to_owned());
    };
    let mut question = question.clone();
    question.remove("requestResource");
    question.insert(part.to_owned(), json!(value));
    Ok(Value::Object(question))
}

fn account(arguments: &[Value]) -> Result<Value, String> {
    let [Value::Object(_), Value::String(namespace), Value::String(name)] = arguments else {
        return Err(NO_OVERLOAD.to_owned());
    };
    Ok(json!({"account": [namespace, name]}))
}

fn check(
    server: &Server,
    cluster: &Cluster,
    caller: &Caller,
    arguments: &[Value],
) -> Result<Value, String> {
    let [question @ Value::Object(_), Value::String(verb)] = arguments else {
        return Err(NO_OVERLOAD.to_owned());
    };
    let part = |field: &str| question[field].as_str().unwrap_or_default();
    let target = match question["path"].as_str() {
        Some(path) => AccessTarget::Path(path),
        None => AccessTarget::Resource {
            group: part("group"),
            resource: part("resource"),
            subresource: part("subresource"),
            name: part("name"),
        },
    };
    let attributes = Attributes { verb, namespace: part("namespace"), target };
    let account = match question["account"].as_array().map(Vec::as_slice) {
        Some([Value::String(namespace), Value::String(name)]) => Some(robot(namespace, name)),
        _ => None,
    };
    let decision = server.guard(cluster).decide(account.as_ref().unwrap_or(caller), &attributes);
    let is_allowed = matches!(decision, Decision::Allowed(_));
    Ok(json!({"allowed": is_allowed, "reason": decision.reason()}))
}

fn robot(namespace: &str, name: &str) -> Caller {
    let all = "system:serviceaccounts";
    Caller {
        name: format!("system:serviceaccount:{namespace}:{name}"),
        groups: vec![all.to_owned(), format!("{all}:{namespace}"), AUTHENTICATED.to_owned()],
        ..Caller::default()
    }
}

fn told(arguments: &[Value], field: &str) -> Result<Value, String> {
    let told = arguments.first().and_then(|answer| answer.get(field));
    told.cloned().ok_or_else(|| NO_OVERLOAD.to_owned())
}
