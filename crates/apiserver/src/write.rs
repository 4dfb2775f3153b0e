//! The way of a write: decoded, defaulted, admitted, validated, then compared and swapped.

pub(crate) mod charge;
mod stored;

use std::sync::Arc;

use convoy_store::{Expect, Key, Transaction, Write};
use serde_json::{Value, json};

use crate::access::Attributes;
use crate::admission::{self, Operation};
use crate::conversion;
use crate::custom::Judged;
use crate::handler_response::HandlerResponse;
use crate::object_meta::{Entry, ObjectMeta};
use crate::options::Options;
use crate::registry::Resource;
use crate::request_info::Verb;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};
use crate::surroundings::{name_suffix, new_uid, seconds};
use crate::{clusters, form, growth, kinds, managed, metadata, object_name};
use stored::fitting;

/// The object after a write.
#[derive(Debug)]
pub(crate) enum WrittenObject {
    Stored(Arc<Entry>),
    /// Not stored: the result of a dry run, or an object that was deleted.
    Shown(Value),
}

/// How often a generated name may collide before the request is refused.
const NAME_ATTEMPTS: usize = 8;

impl WrittenObject {
    pub(crate) fn into_response(self, code: u16) -> HandlerResponse {
        match self {
            Self::Stored(entry) => HandlerResponse::Entry(code, entry),
            Self::Shown(object) => HandlerResponse::Object(code, object),
        }
    }
}

/// Creates a decoded object.
pub(crate) async fn create(
    request: &ResourceRequest,
    mut object: Value,
    options: &Options,
) -> ApiResult<WrittenObject> {
    let resource = &request.resource;
    if matches!(request.verb, Verb::Update | Verb::Patch) {
        check_create(request)?;
    }
    object_name::settle(request, &mut object)?;
    wipe(&mut object)?;
    if metadata::drop_duplicate_owners(&mut object) {
        request.warn(".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed");
    }
    kinds::default_within(request.object_bytes_max(), resource, &mut object)?;
    pause().await;
    owned_form(resource, &mut object);
    managed::track_create(request, &mut object, options);
    let object = admission::mutate(request, Operation::Create, object, None, options).await?;
    let mut object = object;
    let named = !metadata::text(&object, "name").is_empty();
    let prefix = metadata::text(&object, "generateName").to_owned();
    // A given name is free or taken; what the server chooses is worth choosing again.
    let is_chosen = !named || kinds::of(resource).has_companions();
    let attempts = if is_chosen { NAME_ATTEMPTS } else { 1 };
    for left in (0..attempts).rev() {
        let mut object = if left == 0 { std::mem::take(&mut object) } else { object.clone() };
        fill_system_fields(request, &mut object);
        begin_status(request, &mut object)?;
        kinds::prepare_create(request, &mut object)?;
        canonical(resource, &mut object);
        pause().await;
        refuse_invalid(request, &object, None)?;
        kinds::warn(request, &object);
        admission::validate(request, Operation::Create, Some(&object), None, options).await?;
        let name = metadata::text(&object, "name").to_owned();
        let key = request.key(&name);
        if options.dry_run {
            charge::check(request, &object, None)?;
            if let Some(standing) = request.server.store.snapshot().get(&key) {
                return Err(exists(resource, &name, standing));
            }
            return Ok(WrittenObject::Shown(object));
        }
        let value = fitting(request, &object, options).await?;
        let put = Write::put(key.clone(), Expect::Absent, value);
        let companions = kinds::of(&request.resource).companions(request, Some(&object), None);
        if let Some(entries) = charge::commit(request, put, companions, &object, None).await? {
            let entry = first(entries);
            clusters::after_write(request, &entry).await?;
            return Ok(WrittenObject::Stored(entry));
        }
        // Without an object of the name it was something else that somebody else got first, or
        // one that has gone since.
        if named && let Some(standing) = request.server.store.snapshot().get(&key) {
            return Err(exists(resource, &name, standing));
        }
        if !is_chosen {
            return Err(Status::already_exists(resource, &name));
        }
    }
    Err(Status::already_exists(resource, &prefix).retry_after(1))
}

/// Rejects an update or patch that creates an object if the caller may not create it.
fn check_create(request: &ResourceRequest) -> ApiResult<()> {
    let (resource, target) = (&request.resource, &request.target);
    let namespace = request.namespace();
    let attributes =
        Attributes::on("create", &resource.group, &resource.plural, namespace, &target.name);
    request.guard().permit(&request.caller, &attributes)
}

/// An object with what has to be written in the same moment.
pub(crate) fn together(
    object: Write<ObjectMeta>,
    companions: Vec<Write<ObjectMeta>>,
) -> Transaction<ObjectMeta> {
    Transaction::new(std::iter::once(object).chain(companions).collect())
}

fn exists(resource: &Resource, name: &str, standing: &Entry) -> Box<Status> {
    if standing.meta.is_deleting() {
        Status::still_being_deleted(resource, name)
    } else {
        Status::already_exists(resource, name)
    }
}

/// What an object shall become.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub object: Value,
    /// The request names the version that it changes, so a lost race is the client's to solve.
    pub is_pinned: bool,
}

/// Changes an object that exists. `change` makes the wanted object from the current one, both
/// in the request's version, and is asked again when somebody else was faster.
pub(crate) async fn modify(
    request: &ResourceRequest,
    name: &str,
    options: &Options,
    change: impl Fn(&Value) -> ApiResult<Wanted>,
) -> ApiResult<WrittenObject> {
    let key = request.key(name);
    loop {
        let snapshot = request.server.store.snapshot();
        let Some(entry) = snapshot.get(&key) else {
            return Err(Status::not_found(&request.resource, name));
        };
        conversion::prepare(request, std::slice::from_ref(entry)).await?;
        let current = request.read(entry);
        let wanted = change(&current)?;
        growth::check(request.object_bytes_max(), &wanted.object)?;
        pause().await;
        check_preconditions(request, name, &wanted.object, &current)?;
        let object = settle_update(request, wanted.object, &current, options).await?;
        match store_update(request, &key, entry, object, options).await? {
            Some(written) => return Ok(written),
            None if wanted.is_pinned => {
                return Err(Status::modified_meanwhile(&request.resource, name));
            }
            None => {}
        }
    }
}

/// Refuses what was made from another object, or from another version of it.
fn check_preconditions(
    request: &ResourceRequest,
    name: &str,
    wanted: &Value,
    current: &Value,
) -> ApiResult<()> {
    let resource = &request.resource;
    let uid = metadata::text(wanted, "uid");
    if !uid.is_empty() && uid != metadata::text(current, "uid") {
        let why = format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            metadata::text(current, "uid")
        );
        return Err(Status::conflict(resource, name, &why));
    }
    let version = metadata::text(wanted, "resourceVersion");
    if !metadata::is_pinned(wanted) || version == metadata::text(current, "resourceVersion") {
        return Ok(());
    }
    if version.parse::<u64>().is_err() {
        let why = format!("strconv.ParseUint: parsing {version:?}: invalid syntax");
        return Err(Status::failed(why));
    }
    Err(Status::modified_meanwhile(resource, name))
}

async fn settle_update(
    request: &ResourceRequest,
    mut object: Value,
    current: &Value,
    options: &Options,
) -> ApiResult<Value> {
    let resource = &request.resource;
    keep_system_fields(&mut object, current);
    if metadata::drop_duplicate_owners(&mut object) {
        request.warn("metadata.ownerReferences: duplicate owner references were dropped");
    }
    kinds::default_within(request.object_bytes_max(), resource, &mut object)?;
    pause().await;
    separate_status(request, &mut object, current);
    owned_form(resource, &mut object);
    managed::track_update(request, current, &mut object, options);
    let mut object =
        admission::mutate(request, Operation::Update, object, Some(current), options).await?;
    keep_system_fields(&mut object, current);
    separate_status(request, &mut object, current);
    kinds::of(resource).prepare_update(request, &mut object, current)?;
    canonical(resource, &mut object);
    count_generation(request, &mut object, current);
    managed::revert_if_quiet(&mut object, current);
    pause().await;
    refuse_invalid(request, &object, Some(current))?;
    // Only updates that change the spec repeat the warnings.
    if object["metadata"]["generation"] != current["metadata"]["generation"]
        && kinds::of(resource).repeats_warnings()
    {
        kinds::warn(request, &object);
    }
    admission::validate(request, Operation::Update, Some(&object), Some(current), options).await?;
    Ok(object)
}

/// Commits a change; `None` if somebody else was faster.
async fn store_update(
    request: &ResourceRequest,
    key: &Key,
    entry: &Arc<Entry>,
    object: Value,
    options: &Options,
) -> ApiResult<Option<WrittenObject>> {
    let finished = !object["metadata"]["deletionTimestamp"].is_null()
        && object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty)
        && object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
        && kinds::of(&request.resource).may_vanish(&object);
    if options.dry_run {
        charge::check(request, &object, Some(&request.read(entry)))?;
        return Ok(Some(WrittenObject::Shown(object)));
    }
    if finished {
        let delete = Write::delete(key.clone(), entry.modified);
        let companions = kinds::of(&request.resource).companions(request, None, Some(entry));
        let gone = request.server.commit(together(delete, companions)).await?;
        if gone.is_some() {
            clusters::after_delete(request, entry).await?;
        }
        return Ok(gone.map(|_| WrittenObject::Shown(object)));
    }
    let value = fitting(request, &object, options).await?;
    let put = Write::put(key.clone(), Expect::At(entry.modified), value);
    let companions = kinds::of(&request.resource).companions(request, Some(&object), Some(entry));
    let written = charge::commit(request, put, companions, &object, Some(entry)).await?;
    let Some(entries) = written else { return Ok(None) };
    let entry = first(entries);
    clusters::after_write(request, &entry).await?;
    Ok(Some(WrittenObject::Stored(entry)))
}

fn first(entries: Vec<Arc<Entry>>) -> Arc<Entry> {
    entries.into_iter().next().expect("a transaction answers with an entry for each write")
}

/// Drops from a new object what only the server may set.
fn wipe(object: &mut Value) -> ApiResult<()> {
    let metadata = metadata::of(object);
    match metadata.get("resourceVersion").and_then(Value::as_str) {
        None | Some("" | "0") => {}
        Some(_) => {
            let why = "resourceVersion should not be set on objects to be created";
            return Err(Status::failed(why));
        }
    }
    for field in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "selfLink",
    ] {
        metadata.shift_remove(field);
    }
    Ok(())
}

fn fill_system_fields(request: &ResourceRequest, object: &mut Value) {
    let surroundings = &*request.server.surroundings;
    let has_generation = request.resource.has_generation || request.resource.custom.is_some();
    let metadata = metadata::of(object);
    let is_unnamed = metadata.get("name").and_then(Value::as_str).unwrap_or_default().is_empty();
    if is_unnamed
        && let Some(prefix) = metadata.get("generateName").and_then(Value::as_str)
        && !prefix.is_empty()
    {
        // The name must fit into a label with its suffix.
        let end = (0..=prefix.len().min(58)).rev().find(|end| prefix.is_char_boundary(*end));
        let name = format!("{}{}", &prefix[..end.unwrap_or(0)], name_suffix(surroundings));
        metadata.insert("name".into(), json!(name));
    }
    metadata.insert("uid".into(), json!(new_uid(surroundings)));
    metadata.insert("creationTimestamp".into(), json!(seconds(request.server.now())));
    if has_generation {
        metadata.insert("generation".into(), json!(1));
    }
}

/// What no update changes.
fn keep_system_fields(object: &mut Value, current: &Value) {
    let metadata = metadata::of(object);
    for field in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "resourceVersion",
    ] {
        match current["metadata"].get(field) {
            Some(value) => {
                metadata.insert(field.into(), value.clone());
            }
            None => {
                metadata.shift_remove(field);
            }
        }
    }
    metadata.shift_remove("selfLink");
}

/// New objects begin with the status that their schema gives them; nodes bring theirs.
fn begin_status(request: &ResourceRequest, object: &mut Value) -> ApiResult<()> {
    let resource = &request.resource;
    if !resource.has_status() || kinds::of(resource).brings_status() {
        return Ok(());
    }
    put(object, "status", None);
    resource
        .custom
        .as_ref()
        .map_or(Ok(()), |custom| growth::default(request.object_bytes_max(), custom, object))
}

/// The main resource does not change the status; the status sub-resource changes nothing else.
fn separate_status(request: &ResourceRequest, object: &mut Value, current: &Value) {
    if !request.resource.has_status() {
        return;
    }
    match request.target.subresource.as_str() {
        "status" => {
            let status = object.get("status").cloned();
            let offered = object.get("metadata").cloned().unwrap_or_default();
            *object = current.clone();
            put(object, "status", status);
            kinds::take_status_metadata(&request.resource, object, &offered);
        }
        "" | "scale" => put(object, "status", current.get("status").cloned()),
        _ => {}
    }
}

fn put(object: &mut Value, field: &str, value: Option<Value>) {
    let Value::Object(fields) = object else { return };
    match value {
        Some(value) => {
            fields.insert(field.into(), value);
        }
        None => {
            fields.shift_remove(field);
        }
    }
}

/// The generation counts changes of what is wanted.
fn count_generation(request: &ResourceRequest, object: &mut Value, current: &Value) {
    let resource = &request.resource;
    if !(resource.has_generation || resource.custom.is_some())
        || request.target.subresource == "status"
    {
        return;
    }
    if kinds::wants_differ(resource, object, current) {
        let generation = current["metadata"]["generation"].as_i64().unwrap_or(0);
        metadata::of(object).insert("generation".into(), json!(generation + 1));
    }
}

/// Lets a request end here whose time is over or whose client has gone: work between two of these
/// is not interrupted.
async fn pause() {
    tokio::task::yield_now().await;
}

/// Brings fields into the order and form in which they are stored.
fn canonical(resource: &Resource, object: &mut Value) {
    crate::canonical::canonicalise(form::shape_of(resource), object);
}

/// Brings an object into the form whose fields are owned: what the encoder adds is owned too.
/// An empty list of owners stays, since it says that nobody is to own anything.
fn owned_form(resource: &Resource, object: &mut Value) {
    let owners = object.pointer_mut("/metadata/managedFields").map(Value::take);
    canonical(resource, object);
    if let Some(owners) = owners {
        metadata::of(object).insert("managedFields".into(), owners);
    }
}

pub(crate) fn refuse_invalid(
    request: &ResourceRequest,
    object: &Value,
    old: Option<&Value>,
) -> ApiResult<()> {
    let resource = &request.resource;
    let mut errors =
        metadata::validate(resource, object, |name| kinds::of(resource).name_errors(object, name));
    if let Some(old) = old {
        errors.extend(metadata::validate_update(object, old));
    }
    match &resource.custom {
        Some(custom) => {
            let Judged { errors: new, tolerated } = custom.validate(object, old);
            errors.extend(new);
            for error in tolerated {
                request.warn(error.to_string());
            }
        }
        None => errors.extend(kinds::validate(&kinds::Change {
            resource,
            subresource: &request.target.subresource,
            object,
            old,
        })),
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(resource, metadata::text(object, "name"), &errors))
}
