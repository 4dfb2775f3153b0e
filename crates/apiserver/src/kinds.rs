//! What single kinds do differently: defaults, initial states, rules. Everything else about a
//! kind is its row in the registry and its form.

mod namespace;

use serde_json::Value;

use convoy_api::schema::FieldError;

use crate::access::{aggregate, escalation};
use crate::ask::Ask;
use crate::head::Entry;
use crate::registry::Resource;
use crate::status::{Answer, Status};

/// Fills in what the kind leaves to the server.
pub(crate) fn default(_resource: &Resource, _object: &mut Value) {}

/// Gives a new object its initial state.
pub(crate) fn prepare_create(ask: &Ask, object: &mut Value) -> Answer<()> {
    match names(&ask.resource) {
        ("", "namespaces") => namespace::prepare_create(object),
        ("rbac.authorization.k8s.io", _) => escalation::check(ask, object, None)?,
        _ => {}
    }
    Ok(())
}

/// Keeps what an update of the kind may not change, and carries out what it implies.
pub(crate) fn prepare_update(ask: &Ask, object: &mut Value, current: &Value) -> Answer<()> {
    match names(&ask.resource) {
        ("", "namespaces") => namespace::prepare_update(&ask.target.subresource, object, current),
        ("rbac.authorization.k8s.io", _) => escalation::check(ask, object, Some(current))?,
        _ => {}
    }
    Ok(())
}

/// Everything about the object that breaks a rule of its kind.
pub(crate) fn validate(
    _resource: &Resource,
    _object: &Value,
    _old: Option<&Value>,
) -> Vec<FieldError> {
    Vec::new()
}

/// What of the metadata a status update may change besides.
pub(crate) fn take_status_metadata(_resource: &Resource, object: &mut Value, offered: &Value) {
    if let (Value::Object(_), Some(managed)) = (&*object, offered.get("managedFields")) {
        crate::metadata::of(object).insert("managedFields".into(), managed.clone());
    }
}

/// Whether two versions of an object want different things of the world.
pub(crate) fn wants_differ(resource: &Resource, object: &Value, current: &Value) -> bool {
    let counts = |key: &str| match key {
        "metadata" | "apiVersion" | "kind" => false,
        "status" => resource.custom.is_some() && !crate::write::has_status(resource),
        _ => true,
    };
    let part = |object: &Value| -> Vec<(String, Value)> {
        let fields = object.as_object().into_iter().flatten();
        let mut part: Vec<_> = fields
            .filter(|(key, _)| counts(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        part.sort_by(|(a, _), (b, _)| a.cmp(b));
        part
    };
    part(object) != part(current)
}

/// How long a deletion waits for the object's processes to end.
pub(crate) fn grace_seconds(resource: &Resource, object: &Value, asked: Option<i64>) -> i64 {
    if !resource.is("", "pods") {
        return 0;
    }
    let is_bound = object["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let has_ended = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if !is_bound || has_ended {
        return 0;
    }
    let own = object["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    match asked.unwrap_or(own) {
        negative if negative < 0 => 1,
        seconds => seconds,
    }
}

/// Whether nothing else than finalizers keeps the object.
pub(crate) fn may_vanish(resource: &Resource, object: &Value) -> bool {
    let is_namespace = resource.is("", "namespaces");
    !is_namespace || object["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty)
}

/// What a deletion changes besides the metadata.
pub(crate) fn mark_deleting(resource: &Resource, object: &mut Value) {
    if resource.is("", "namespaces") {
        object["status"]["phase"] = Value::String("Terminating".to_owned());
    }
}

/// Refuses deletions that nobody may ask for.
pub(crate) fn check_delete(ask: &Ask, object: &Value) -> Answer<()> {
    let name = crate::metadata::text(object, "name");
    if ask.resource.is("", "namespaces")
        && ["default", "kube-system", "kube-public"].contains(&name)
    {
        return Err(Status::forbidden(&ask.resource, name, "this namespace may not be deleted"));
    }
    Ok(())
}

/// Carries out what follows from a write at once.
pub(crate) async fn after_write(ask: &Ask, _entry: &Entry) -> Answer<()> {
    match names(&ask.resource) {
        ("rbac.authorization.k8s.io", "clusterroles") => {
            aggregate::settle(&ask.server, &ask.cluster).await
        }
        _ => Ok(()),
    }
}

/// Carries out what follows from a removal at once.
pub(crate) async fn after_delete(ask: &Ask, _entry: &Entry) -> Answer<()> {
    match names(&ask.resource) {
        ("rbac.authorization.k8s.io", "clusterroles") => {
            aggregate::settle(&ask.server, &ask.cluster).await
        }
        _ => Ok(()),
    }
}

fn names(resource: &Resource) -> (&str, &str) {
    (&resource.group, &resource.plural)
}
