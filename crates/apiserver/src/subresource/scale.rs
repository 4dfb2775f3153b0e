//! `scale`: the number of replicas of anything that has one, in one shape for all.

use convoy_api::schema::FieldError;
use serde_json::{Map, Value, json};

use crate::conversion;
use crate::handler_response::HandlerResponse;
use crate::options::Options;
use crate::patch::{self, PatchError, PatchKind, refusal};
use crate::registry::Resource;
use crate::request_info::Verb;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};
use crate::write::{self, Wanted, WrittenObject};
use crate::{decode, form, managed, metadata, reading};

const API_VERSION: &str = "autoscaling/v1";

/// Where an object keeps its replicas, as JSON pointers.
#[derive(Debug)]
struct ScalePaths {
    wanted: String,
    present: String,
    /// None where a selector is an object that has to be spelled as text.
    selector: Option<String>,
    /// As the definition spells the first of them.
    shown: String,
}

pub(super) async fn carry_out(request: &ResourceRequest) -> ApiResult<HandlerResponse> {
    match request.verb {
        Verb::Get => get(request).await,
        Verb::Update => update(request).await,
        Verb::Patch => patch_scale(request).await,
        _ => Err(Status::method_not_allowed()),
    }
}

async fn get(request: &ResourceRequest) -> ApiResult<HandlerResponse> {
    let name = &request.target.name;
    let snapshot = request.server.store.snapshot();
    let Some(entry) = snapshot.get(&request.key(name)) else {
        return Err(Status::not_found(&request.resource, name));
    };
    conversion::prepare(request, std::slice::from_ref(entry)).await?;
    Ok(HandlerResponse::Plain(200, scale_of(&request.resource, &request.read(entry))?))
}

async fn update(request: &ResourceRequest) -> ApiResult<HandlerResponse> {
    let options = Options::of(request)?;
    let mut scale = reading::other(request, API_VERSION, "Scale")?;
    crate::object_name::settle(request, &mut scale)?;
    let paths = ScalePaths::of(&request.resource);
    let change = |current: &Value| set(&paths, current, &scale);
    respond(request, write::modify(request, &request.target.name, &options, change).await?).await
}

/// Server-side apply: the owner of the number is recorded with the object that has it.
async fn apply(request: &ResourceRequest, options: &Options) -> ApiResult<HandlerResponse> {
    managed::check_manager(request)?;
    let shape = form::builtin(API_VERSION, "Scale");
    let config = decode::decode_yaml(shape, &request.body)
        .map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))?;
    let mut config = config.value;
    crate::object_name::settle(request, &mut config)?;
    let paths = ScalePaths::of(&request.resource);
    let replicas: Vec<&str> = paths.wanted.split('/').skip(1).collect();
    let options = Options { tracks: false, ..options.clone() };
    let change = |current: &Value| {
        let before = scale_of(&request.resource, current)?;
        let (mut scale, owners) =
            managed::apply_scale(request, &options, (current, before), &config, &replicas)?;
        metadata::of(&mut scale).shift_remove("resourceVersion");
        let mut wanted = set(&paths, current, &scale)?;
        let metadata = metadata::of(&mut wanted.object);
        match owners {
            Some(owners) => drop(metadata.insert("managedFields".to_owned(), owners)),
            None => drop(metadata.shift_remove("managedFields")),
        }
        Ok(wanted)
    };
    respond(request, write::modify(request, &request.target.name, &options, change).await?).await
}

async fn patch_scale(request: &ResourceRequest) -> ApiResult<HandlerResponse> {
    let options = Options::of(request)?;
    if PatchKind::taken(&request.content_type, request.resource.custom.is_some())?
        == PatchKind::Apply
    {
        return apply(request, &options).await;
    }
    let paths = ScalePaths::of(&request.resource);
    let change = |current: &Value| {
        let before = scale_of(&request.resource, current)?;
        let mut scale = patched(request, &before)?;
        // A version that the patch did not name pins nothing.
        if scale["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"] {
            metadata::of(&mut scale).shift_remove("resourceVersion");
        }
        set(&paths, current, &scale)
    };
    respond(request, write::modify(request, &request.target.name, &options, change).await?).await
}

fn patched(request: &ResourceRequest, scale: &Value) -> ApiResult<Value> {
    let refuse = |error: PatchError| refusal(request.object_bytes_max(), &error);
    match PatchKind::taken(&request.content_type, request.resource.custom.is_some())? {
        PatchKind::Json => {
            let patch = patch::parse_json_patch(&request.body).map_err(refuse)?;
            patch::json_patch(scale, &patch).map_err(refuse)
        }
        // A scale has no lists, so the strategic merge is the plain one.
        PatchKind::Merge | PatchKind::Strategic | PatchKind::Apply => {
            let patch = patch::parse_merge_patch(&request.body).map_err(refuse)?;
            Ok(patch::merge_patch(scale, &patch))
        }
    }
}

/// The object with the replicas of a scale.
fn set(paths: &ScalePaths, current: &Value, scale: &Value) -> ApiResult<Wanted> {
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
    if replicas < 0 {
        let detail = "must be greater than or equal to 0";
        let error = FieldError::invalid("spec.replicas", &json!(replicas), detail);
        let name = metadata::text(current, "name");
        return Err(Status::invalid_thing("Scale.autoscaling", name, &[error]));
    }
    let mut object = current.clone();
    put(&mut object, &paths.wanted, json!(replicas));
    let metadata = metadata::of(&mut object);
    metadata.shift_remove("resourceVersion");
    for field in ["resourceVersion", "uid"] {
        let given = metadata::text(scale, field);
        if !given.is_empty() {
            metadata.insert(field.to_owned(), json!(given));
        }
    }
    let is_pinned = !metadata::text(scale, "resourceVersion").is_empty();
    Ok(Wanted { object, is_pinned })
}

async fn respond(request: &ResourceRequest, written: WrittenObject) -> ApiResult<HandlerResponse> {
    let object = match written {
        WrittenObject::Stored(entry) => {
            conversion::prepare(request, std::slice::from_ref(&entry)).await?;
            request.read(&entry)
        }
        WrittenObject::Shown(object) => object,
    };
    Ok(HandlerResponse::Plain(200, scale_of(&request.resource, &object)?))
}

/// What of an object its scale shows.
pub(super) fn scale_of(resource: &Resource, object: &Value) -> ApiResult<Value> {
    let paths = ScalePaths::of(resource);
    let mut shown = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(field) {
            shown.insert(field.to_owned(), value.clone());
        }
    }
    let Some(wanted) = object.pointer(&paths.wanted).and_then(Value::as_i64) else {
        if resource.custom.is_some() {
            let why = format!("the spec replicas field {:?} does not exist", paths.shown);
            return Err(Status::internal(why));
        }
        return Ok(scale_object(shown, 0, object, &paths));
    };
    Ok(scale_object(shown, wanted, object, &paths))
}

fn scale_object(
    metadata: Map<String, Value>,
    wanted: i64,
    object: &Value,
    paths: &ScalePaths,
) -> Value {
    let mut spec = Map::new();
    if wanted != 0 {
        spec.insert("replicas".to_owned(), json!(wanted));
    }
    let present = object.pointer(&paths.present).and_then(Value::as_i64).unwrap_or(0);
    let mut status = json!({"replicas": present});
    let selector = match &paths.selector {
        Some(place) => object.pointer(place).and_then(Value::as_str).unwrap_or_default().to_owned(),
        None => selector_text(&object["spec"]["selector"]),
    };
    if !selector.is_empty() {
        status["selector"] = json!(selector);
    }
    json!({"kind": "Scale", "apiVersion": API_VERSION, "metadata": metadata, "spec": spec,
        "status": status})
}

impl ScalePaths {
    fn of(resource: &Resource) -> Self {
        let scale = resource.custom.as_ref().and_then(|custom| custom.scale.as_ref());
        match scale {
            None => Self {
                wanted: "/spec/replicas".to_owned(),
                present: "/status/replicas".to_owned(),
                selector: None,
                shown: ".spec.replicas".to_owned(),
            },
            Some(scale) => Self {
                wanted: pointer(&scale.spec_replicas),
                present: pointer(&scale.status_replicas),
                selector: Some(scale.label_selector.as_deref().map(pointer).unwrap_or_default()),
                shown: scale.spec_replicas.clone(),
            },
        }
    }
}

/// `.spec.replicas` as a JSON pointer.
fn pointer(path: &str) -> String {
    let parts = path.split('.').filter(|part| !part.is_empty());
    let escaped =
        parts.flat_map(|part| ["/".to_owned(), part.replace('~', "~0").replace('/', "~1")]);
    escaped.collect()
}

/// Puts a value at a pointer, making the objects on the way.
fn put(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    for part in pointer.split('/').filter(|part| !part.is_empty()) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if !place.is_object() {
            *place = json!({});
        }
        let fields = place.as_object_mut().expect("made an object above");
        place = fields.entry(part).or_insert(Value::Null);
    }
    *place = value;
}

/// A selector as it is written in a query. The oldest kind has a plain map for one.
fn selector_text(selector: &Value) -> String {
    let is_plain =
        selector.get("matchLabels").is_none() && selector.get("matchExpressions").is_none();
    let labels = if is_plain { selector } else { &selector["matchLabels"] };
    // Conditions stand in the order of their keys.
    let mut terms: Vec<(String, String)> = Vec::new();
    for (key, value) in labels.as_object().into_iter().flatten() {
        terms.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for requirement in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = requirement["key"].as_str().unwrap_or_default();
        let mut values: Vec<&str> = requirement["values"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        values.sort_unstable();
        let values = values.join(",");
        let text = match requirement["operator"].as_str().unwrap_or_default() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        };
        terms.push((key.to_owned(), text));
    }
    terms.sort_by(|(a, _), (b, _)| a.cmp(b));
    terms.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_spelled_as_in_a_query() {
        for (selector, expected) in [
            (json!({"matchLabels": {"b": "2", "a": "1"}}), "a=1,b=2"),
            (json!({"app": "web"}), "app=web"),
            (
                json!({"matchLabels": {"z": "1"}, "matchExpressions": [
                    {"key": "a", "operator": "In", "values": ["y", "x"]},
                    {"key": "b", "operator": "Exists"},
                    {"key": "c", "operator": "DoesNotExist"},
                    {"key": "d", "operator": "NotIn", "values": ["q"]}]}),
                "a in (x,y),b,!c,d notin (q),z=1",
            ),
            (json!({"matchLabels": {}}), ""),
        ] {
            assert_eq!(selector_text(&selector), expected);
        }
    }

    #[test]
    fn places_are_made_on_the_way() {
        let mut object = json!({"a": 1});
        put(&mut object, &pointer(".spec.pool.replicas"), json!(3));
        assert_eq!(object, json!({"a": 1, "spec": {"pool": {"replicas": 3}}}));
    }
}
