//! Field managers: what an apply makes of them, and the effect of other writes on managed fields.

use std::sync::LazyLock;

use convoy_api::schema::{FieldError, Reason};
use serde_json::Value;
use smol_str::SmolStr;

use crate::apply::{self, Context, Managers, Reset, Step};
use crate::options::Options;
use crate::query::options_kind;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Cause, Status};
use crate::{form, kinds, registry};

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

/// What a configuration makes of the live object, if there is one, and of who owns what in it.
pub(crate) fn applied(
    request: &ResourceRequest,
    options: &Options,
    live: Option<&Value>,
    config: &Value,
    force: bool,
) -> ApiResult<Value> {
    with_context(request, options, |context| apply::apply(context, live, config, force))
        .map_err(|error| refusal(&error))
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
        "" if resource.has_status() && !kinds::of(resource).brings_status() => &STATUS,
        _ => &NOTHING,
    }
}
