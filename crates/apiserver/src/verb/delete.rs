//! Deletions: preconditions, grace, finalizers, and what happens to dependents.

use std::sync::Arc;

use convoy_api::schema::{FieldError, Reason};
use convoy_store::{Transaction, Write};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::admission::{self, Operation};
use crate::clusters;
use crate::conversion;
use crate::convert::stored_form;
use crate::handler_response::HandlerResponse;
use crate::kinds::Dependents;
use crate::object_meta::Entry;
use crate::options::Options;
use crate::query::{FieldValidation, check_dry_run};
use crate::registry::Resource;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status, success};
use crate::surroundings::seconds;
use crate::write::together;
use crate::{kinds, metadata, reading};

use super::list;

pub(crate) const ORPHAN: &str = "orphan";
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// The options of a deletion.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub grace_seconds: Option<i64>,
    pub propagation: Option<Propagation>,
    pub uid: Option<String>,
    pub resource_version: Option<String>,
    pub dry_run: bool,
    /// The old way of asking for dependents to go first.
    was_told_not_to_orphan: bool,
}

/// What becomes of the objects that the deleted one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Orphan,
    Background,
    Foreground,
}

/// What a deletion left behind.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// It was there until now.
    Gone(Arc<Entry>),
    /// It waits for somebody: this is how it stands, or would stand.
    Waiting(Value),
}

pub async fn delete(request: &ResourceRequest) -> ApiResult<HandlerResponse> {
    let options = DeleteOptions::of(request)?;
    let name = &request.target.name;
    match delete_named(request, name, &options).await? {
        Deleted::Waiting(object) => {
            let code = if options.was_told_not_to_orphan { 202 } else { 200 };
            Ok(HandlerResponse::Object(code, object))
        }
        Deleted::Gone(entry) if request.resource.delete_returns_object => {
            Ok(HandlerResponse::Entry(200, entry))
        }
        Deleted::Gone(entry) => {
            Ok(HandlerResponse::Plain(200, success(&request.resource, name, &entry.meta.uid)))
        }
    }
}

pub async fn delete_collection(request: &ResourceRequest) -> ApiResult<HandlerResponse> {
    let options = DeleteOptions::of(request)?;
    let page = list::page(request).await?;
    conversion::prepare(request, &page.entries).await?;
    let revision = page.revision;
    let mut objects = Vec::new();
    for entry in &page.entries {
        let one = one_of(request, entry);
        match delete_named(&one, &entry.key.name, &options).await {
            Ok(_) => {}
            Err(status) if status.code == 404 => {}
            Err(status) => return Err(status),
        }
        let mut object = request.read(entry);
        if request.resource.custom.is_none()
            && let Value::Object(fields) = &mut object
        {
            fields.shift_remove("kind");
            fields.shift_remove("apiVersion");
        }
        objects.push(object);
    }
    let list = json!({
        "kind": request.resource.list_kind, "apiVersion": request.resource.api_version(),
        "metadata": {"resourceVersion": revision.0.to_string()}, "items": objects,
    });
    Ok(HandlerResponse::Plain(200, list))
}

/// The same request, for one object of the collection.
fn one_of(request: &ResourceRequest, entry: &Entry) -> ResourceRequest {
    let key = &entry.key;
    let mut one = ResourceRequest::internal(
        &request.server,
        &request.cluster,
        &request.resource,
        &key.namespace,
        &key.name,
    );
    one.caller = request.caller.clone();
    one.user_agent.clone_from(&request.user_agent);
    one
}

/// Deletes an object, or begins to.
pub(crate) async fn delete_named(
    request: &ResourceRequest,
    name: &str,
    options: &DeleteOptions,
) -> ApiResult<Deleted> {
    let key = request.key(name);
    loop {
        let snapshot = request.server.store.snapshot();
        let Some(entry) = snapshot.get(&key) else {
            return Err(Status::not_found(&request.resource, name));
        };
        check_preconditions(&request.resource, name, entry, options)?;
        conversion::prepare(request, std::slice::from_ref(entry)).await?;
        let current = request.read(entry);
        let write_options = Options {
            dry_run: options.dry_run,
            validation: FieldValidation::Ignore,
            manager: "".into(),
            tracks: false,
        };
        admission::validate(request, Operation::Delete, None, Some(&current), &write_options)
            .await?;
        kinds::of(&request.resource).check_delete(request, &current)?;
        let next = step(request, &current, options);
        let done = match next {
            Next::Remove if options.dry_run => return Ok(Deleted::Gone(Arc::clone(entry))),
            Next::Unchanged => return Ok(Deleted::Waiting(current)),
            Next::Mark(object) if options.dry_run => return Ok(Deleted::Waiting(object)),
            Next::Remove => {
                let delete = Write::delete(key.clone(), entry.modified);
                let companions =
                    kinds::of(&request.resource).companions(request, None, Some(entry));
                let gone = request.server.commit(together(delete, companions)).await?;
                if gone.is_some() {
                    clusters::after_delete(request, entry).await?;
                }
                gone.map(|_| Deleted::Gone(Arc::clone(entry)))
            }
            Next::Mark(object) => {
                let stored = conversion::to_storage(request, &object).await?;
                let value = stored_form(&request.resource, stored.as_ref().unwrap_or(&object));
                let transaction = Transaction::update(key.clone(), entry.modified, value);
                let written = request.server.commit(transaction).await?;
                match written.and_then(|entries| entries.into_iter().next()) {
                    Some(entry) => {
                        clusters::after_write(request, &entry).await?;
                        conversion::prepare(request, std::slice::from_ref(&entry)).await?;
                        Some(Deleted::Waiting(request.read(&entry)))
                    }
                    None => None,
                }
            }
        };
        if let Some(deleted) = done {
            return Ok(deleted);
        }
    }
}

fn check_preconditions(
    resource: &Resource,
    name: &str,
    entry: &Entry,
    options: &DeleteOptions,
) -> ApiResult<()> {
    if let Some(uid) = &options.uid
        && *uid != *entry.meta.uid
    {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            entry.meta.uid
        );
        return Err(Status::conflict(resource, name, &why));
    }
    if let Some(version) = &options.resource_version
        && *version != entry.modified.0.to_string()
    {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). The object might have been modified",
            entry.modified
        );
        return Err(Status::conflict(resource, name, &why));
    }
    Ok(())
}

/// What a deletion does to an object next.
enum Next {
    Remove,
    Mark(Value),
    /// It is being deleted already, with a grace period that is not longer.
    Unchanged,
}

fn step(request: &ResourceRequest, current: &Value, options: &DeleteOptions) -> Next {
    let resource = &request.resource;
    let finalizers = wanted_finalizers(resource, current, options);
    let grace = kinds::of(resource).grace_seconds(current, options.grace_seconds);
    let was_deleting = !current["metadata"]["deletionTimestamp"].is_null();
    let old_grace = current["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    if finalizers.is_empty() && grace == 0 && kinds::of(resource).may_vanish(current) {
        return Next::Remove;
    }
    let mut object = current.clone();
    let metadata = metadata::of(&mut object);
    if finalizers.is_empty() {
        metadata.shift_remove("finalizers");
    } else {
        metadata.insert("finalizers".into(), json!(finalizers));
    }
    if was_deleting && grace >= old_grace {
        return if object == *current { Next::Unchanged } else { Next::Mark(object) };
    }
    let when = request.server.now().saturating_add(SignedDuration::from_secs(grace));
    let when = when.unwrap_or(request.server.now());
    metadata.insert("deletionTimestamp".into(), json!(seconds(when)));
    if kinds::of(resource).tells_grace() {
        metadata.insert("deletionGracePeriodSeconds".into(), json!(grace));
    }
    let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or(0);
    if generation > 0 && !was_deleting {
        metadata.insert("generation".into(), json!(generation + 1));
    }
    kinds::of(resource).mark_deleting(&mut object);
    crate::canonical::canonicalise(crate::form::shape_of(resource), &mut object);
    Next::Mark(object)
}

/// The object's finalizers, with those that carry out the propagation.
fn wanted_finalizers(resource: &Resource, object: &Value, options: &DeleteOptions) -> Vec<String> {
    let given = object["metadata"]["finalizers"].as_array().into_iter().flatten();
    let mut finalizers: Vec<String> = given.filter_map(Value::as_str).map(str::to_owned).collect();
    let dependents = kinds::of(resource).dependents();
    if dependents == Dependents::None {
        return finalizers;
    }
    let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
    let propagation = options.propagation.unwrap_or_else(|| {
        if has(ORPHAN) {
            Propagation::Orphan
        } else if has(FOREGROUND) {
            Propagation::Foreground
        } else if dependents == Dependents::Orphaned {
            Propagation::Orphan
        } else {
            Propagation::Background
        }
    });
    finalizers.retain(|finalizer| finalizer != ORPHAN && finalizer != FOREGROUND);
    match propagation {
        Propagation::Orphan => finalizers.push(ORPHAN.to_owned()),
        Propagation::Foreground => finalizers.push(FOREGROUND.to_owned()),
        Propagation::Background => {}
    }
    let is_first = object["metadata"]["deletionTimestamp"].is_null();
    if let Some(own) = kinds::of(resource).deletion_finalizer().filter(|_| is_first)
        && !finalizers.iter().any(|finalizer| finalizer == own)
    {
        finalizers.push(own.to_owned());
    }
    finalizers
}

impl DeleteOptions {
    /// Of the very version that was looked at.
    pub(crate) fn fenced(propagation: Propagation, uid: &str, revision: u64) -> Self {
        Self {
            propagation: Some(propagation),
            uid: Some(uid.to_owned()),
            resource_version: Some(revision.to_string()),
            ..Self::default()
        }
    }

    /// From the body, or from the query if there is none.
    pub(crate) fn of(request: &ResourceRequest) -> ApiResult<Self> {
        if !request.body.is_empty() {
            return Self::from_value(&reading::options(request)?);
        }
        let query = &request.query;
        let mut value = json!({});
        if let Some(seconds) = query.integer("gracePeriodSeconds")? {
            value["gracePeriodSeconds"] = json!(seconds);
        }
        if let Some(policy) = query.get("propagationPolicy") {
            value["propagationPolicy"] = json!(policy);
        }
        if let Some(orphan) = query.optional_flag("orphanDependents") {
            value["orphanDependents"] = json!(orphan);
        }
        let dry_run: Vec<&str> = query.all("dryRun").collect();
        if !dry_run.is_empty() {
            value["dryRun"] = json!(dry_run);
        }
        Self::from_value(&value)
    }

    pub(crate) fn from_value(value: &Value) -> ApiResult<Self> {
        let invalid = |error| Err(Status::invalid_thing("DeleteOptions.meta.k8s.io", "", &[error]));
        let orphan = value["orphanDependents"].as_bool();
        let policy = value["propagationPolicy"].as_str().filter(|policy| !policy.is_empty());
        if orphan.is_some() && policy.is_some() {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            let shown = json!(policy);
            return invalid(FieldError::invalid("propagationPolicy", &shown, detail));
        }
        let propagation = match (policy, orphan) {
            (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
            (None, None) => None,
            (Some(other), _) => {
                let supported =
                    "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"";
                let error = FieldError::about(
                    Reason::NotSupported,
                    "propagationPolicy",
                    &json!(other),
                    supported,
                );
                return invalid(error);
            }
        };
        let dry_run: Vec<&str> =
            value["dryRun"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let precondition = |name: &str| {
            value["preconditions"][name].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
        };
        Ok(Self {
            grace_seconds: value["gracePeriodSeconds"].as_i64(),
            propagation,
            uid: precondition("uid"),
            resource_version: precondition("resourceVersion"),
            dry_run: check_dry_run(&dry_run, "DeleteOptions.meta.k8s.io")?,
            was_told_not_to_orphan: orphan == Some(false),
        })
    }
}
