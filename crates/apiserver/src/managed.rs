//! Field managers: server-side apply, and the effect of other writes on managed fields.

use std::sync::LazyLock;

use convoy_api::schema::{FieldError, Reason};
use serde_json::Value;
use smol_str::SmolStr;

use crate::apply::{self, Context, Managers, Reset, Step};
use crate::query::options_kind;
use crate::resource_request::ResourceRequest;
use crate::response::HandlerResponse;
use crate::status::{ApiResult, Cause, Status};
use crate::write::{self, Options, Wanted};
use crate::{form, reading, registry};

/// Records who owns the fields of a new object.
pub(crate) fn track_create(request: &ResourceRequest, object: &mut Value, options: &Options) {
    if options.tracks {
        with_context(request, options, |context| apply::track_update(context, None, object));
    }
}

/// Records what a change means for who owns what.
pub(crate) fn track_update(
    request: &ResourceRequest,
    current: &Value,
    object: &mut Value,
    options: &Options,
) {
    if options.tracks {
        with_context(request, options, |context| {
            apply::track_update(context, Some(current), object);
        });
    }
}

/// Restores old times of ownership where nothing else changed.
pub(crate) fn revert_if_quiet(object: &mut Value, current: &Value) {
    apply::revert_times(current, object);
}

/// Server-side apply: the object becomes what its owners want of it.
pub(crate) async fn apply(
    request: &ResourceRequest,
    options: &Options,
) -> ApiResult<HandlerResponse> {
    check_manager(request)?;
    let reading::Configuration { value: config, refusal: strict } =
        reading::configuration(request, options.validation)?;
    let force = request.query.flag("force");
    let options = Options { tracks: false, ..options.clone() };
    let name = &request.target.name;
    let applied = |live: Option<&Value>| {
        let applied =
            with_context(request, &options, |context| apply::apply(context, live, &config, force));
        let object = applied.map_err(|error| refusal(&error))?;
        strict.clone().map_or(Ok(object), Err)
    };
    loop {
        let exists = request.server.store.snapshot().get(&request.key(name)).is_some();
        if exists {
            let change =
                |current: &Value| Ok(Wanted { object: applied(Some(current))?, is_pinned: false });
            match write::modify(request, name, &options, change).await {
                // It went between the look and the change; then it is to be made.
                Err(status) if status.code == 404 && request.target.subresource.is_empty() => {}
                outcome => return Ok(outcome?.into_response(200)),
            }
        } else if request.target.subresource.is_empty() {
            let uid = crate::metadata::text(&config, "uid");
            if !uid.is_empty() {
                let why = format!(
                    "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                );
                return Err(Status::conflict(&request.resource, name, &why));
            }
            let object = applied(None)?;
            match write::create(request, object, &options).await {
                // Somebody else made it meanwhile; then it is to be changed.
                Err(status) if status.reason == "AlreadyExists" && !is_leaving(request) => {}
                outcome => return Ok(outcome?.into_response(201)),
            }
        } else {
            return Err(Status::not_found(&request.resource, name));
        }
    }
}

/// Whoever applies has a name.
pub(crate) fn check_manager(request: &ResourceRequest) -> ApiResult<()> {
    if request.query.get("fieldManager").is_some_and(|manager| !manager.is_empty()) {
        return Ok(());
    }
    let detail = "is required for apply patch";
    let error = FieldError::plain(Reason::Required, "fieldManager", detail);
    Err(Status::invalid_thing(options_kind("patch"), "", &[error]))
}

/// Applies the configuration of a Scale to that of `live`, the object that has the number at
/// `replicas`; the Scale that comes of it, and who owns what of the object then.
pub(crate) fn apply_scale(
    request: &ResourceRequest,
    options: &Options,
    (live, mut scale): (&Value, Value),
    config: &Value,
    replicas: &[&str],
) -> ApiResult<(Value, Option<Value>)> {
    const VERSION: &str = "autoscaling/v1";
    let broken = |error: apply::BadManagers| refusal(&apply::Error::from(error));
    let owners = |object: &Value| Managers::parse(object["metadata"].get("managedFields"));
    let parent = owners(live).map_err(broken)?;
    if let Some(shown) = apply::managers_of_scale(&parent, replicas).into_value() {
        scale["metadata"]["managedFields"] = shown;
    }
    let served = [SmolStr::new_static(VERSION)];
    let context = Context {
        shape: form::builtin(VERSION, "Scale"),
        api_version: VERSION,
        served: &served,
        manager: &options.manager,
        subresource: &request.target.subresource,
        now: request.server.now(),
        reset: &NOTHING,
    };
    let force = request.query.flag("force");
    let applied = apply::apply(&context, Some(&scale), config, force);
    let applied = applied.map_err(|error| refusal(&error))?;
    let api_version = request.resource.api_version();
    let scale_owners = owners(&applied).map_err(broken)?;
    let all = apply::managers_of_parent(&parent, &scale_owners, replicas, &api_version);
    Ok((applied, all.into_value()))
}

fn is_leaving(request: &ResourceRequest) -> bool {
    let snapshot = request.server.store.snapshot();
    snapshot.get(&request.key(&request.target.name)).is_some_and(|entry| entry.meta.is_deleting())
}

fn refusal(error: &apply::Error) -> Box<Status> {
    match error {
        apply::Error::Conflicts(conflicts) => {
            let causes = conflicts.causes().map(|cause| Cause {
                reason: cause.reason.to_string(),
                message: cause.message,
                field: cause.field,
            });
            Status::apply_conflict(conflicts.message(), causes.collect())
        }
        apply::Error::ManagedFieldsInConfig => Status::bad_request(error.to_string()),
        apply::Error::Config { .. } | apply::Error::Live { .. } | apply::Error::Managers(_) => {
            Status::failed(error.to_string())
        }
    }
}

fn with_context<T>(
    request: &ResourceRequest,
    options: &Options,
    act: impl FnOnce(&Context<'_>) -> T,
) -> T {
    let resource = &request.resource;
    let api_version = resource.api_version();
    let versions = request.registry.versions(&resource.group).into_iter();
    let served: Vec<SmolStr> =
        versions.map(|version| registry::api_version(&resource.group, version)).collect();
    act(&Context {
        shape: form::shape_of(resource),
        api_version: &api_version,
        served: &served,
        manager: &options.manager,
        subresource: &request.target.subresource,
        now: request.server.now(),
        reset: reset(request),
    })
}

static NOTHING: LazyLock<Reset> = LazyLock::new(Reset::nothing);

/// What a request on this part of the resource cannot set, and so nobody comes to own by it.
fn reset(request: &ResourceRequest) -> &'static Reset {
    static STATUS: LazyLock<Reset> = LazyLock::new(|| Reset::names(&[&["status"]]));
    static SPEC: LazyLock<Reset> = LazyLock::new(|| Reset::names(&[&["spec"]]));
    static ALL_BUT_STATUS: LazyLock<Reset> =
        LazyLock::new(|| Reset::AllBut(vec![vec![Step::Field("status".into())]]));
    let resource = &request.resource;
    match request.target.subresource.as_str() {
        "status" if resource.custom.is_some() => &ALL_BUT_STATUS,
        "status" => &SPEC,
        "" if write::has_status(resource) && !resource.is("", "nodes") => &STATUS,
        _ => &NOTHING,
    }
}
