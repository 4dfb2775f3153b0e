//! Reads the objects in request bodies, in any encoding, with the field validation of the query.

use serde_json::{Value, json};

use crate::decode::{self, DecodeError, Decoded};
use crate::form;
use crate::protobuf::{self, Received};
use crate::query::{FieldValidation, options_kind};
use crate::resource_request::ResourceRequest;
use crate::shape::Shape;
use crate::status::{ApiResult, Status};

/// How a body is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Json,
    Yaml,
    Protobuf,
}

/// Where a kube-apiserver looked for a kind, as its messages have it.
const SCHEME: &str = "scheme \"pkg/runtime/scheme.go:111\"";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The object in the body of a request on the resource itself, or on a sub-resource of its kind.
pub(crate) fn object(request: &ResourceRequest, validation: FieldValidation) -> ApiResult<Value> {
    let (api_version, kind) = (request.resource.api_version(), request.resource.kind.clone());
    of_kind(request, form::shape_of(&request.resource), &api_version, &kind, validation)
}

/// The object in the body, which is of another kind than the resource: a scale, an eviction.
pub(crate) fn other(request: &ResourceRequest, api_version: &str, kind: &str) -> ApiResult<Value> {
    let validation = request.query.field_validation(options_kind(request.verb.as_str()))?;
    of_kind(request, form::builtin(api_version, kind), api_version, kind, validation)
}

/// The options in the body of a deletion.
pub(crate) fn options(request: &ResourceRequest) -> ApiResult<Value> {
    let shape = form::builtin("meta.k8s.io/v1", "DeleteOptions");
    let options = read(request, shape, "DeleteOptions")?.value;
    let kind = options["kind"].as_str().unwrap_or_default();
    if !matches!(kind, "" | "DeleteOptions") {
        let version = options["apiVersion"].as_str().unwrap_or_default();
        let message = format!("no kind {kind:?} is registered for version {version:?} in {SCHEME}");
        return Err(Status::bad_request(message));
    }
    Ok(options)
}

/// What is to be applied.
#[derive(Debug)]
pub(crate) struct Configuration {
    pub(crate) value: Value,
    /// Why strict validation refuses it, once it could be applied.
    pub(crate) refusal: Option<Box<Status>>,
}

/// What is to be applied: YAML, and of exactly the kind and version that the path names.
pub(crate) fn configuration(
    request: &ResourceRequest,
    validation: FieldValidation,
) -> ApiResult<Configuration> {
    let shape = form::shape_of(&request.resource);
    let refuse = |error: DecodeError| Status::bad_request(format!("error decoding YAML: {error}"));
    let Decoded { value: mut config, mut unknown, duplicates } =
        decode::decode_yaml(shape, &request.body).map_err(refuse)?;
    let text = |field: &str| config[field].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (group, version) = crate::registry::split_api_version(api_version);
    let is_served = |version| {
        let mut known = request.registry.group_version(group, version).into_iter();
        known.any(|all| all.values().any(|one| one.kind == kind))
    };
    if kind != request.resource.kind || group != request.resource.group || !is_served(version) {
        let message = format!("invalid object type: {group}/{version}, Kind={kind}");
        return Err(Status::bad_request(message));
    }
    let expected = request.resource.api_version();
    if api_version != expected {
        return Err(Status::bad_request(format!(
            "Incorrect version specified in apply patch. Specified patch version: {api_version}, expected: {expected}"
        )));
    }
    unknown.extend(prune(request, &mut config));
    let findings = findings(request, &unknown, &duplicates);
    let refusal = (validation == FieldValidation::Strict && !findings.is_empty()).then(|| {
        let twice = decode::refused_duplicate(&request.body).filter(|_| unknown.is_empty());
        let why = twice.unwrap_or_else(|| findings.join(", "));
        Status::bad_request(format!("error strict decoding patch: {why}"))
    });
    if !unknown.is_empty() {
        // Unknown fields stay in, so that apply can report each of them.
        let Decoded { value, .. } = decode::as_sent(shape, &request.body).map_err(refuse)?;
        return Ok(Configuration { value, refusal });
    }
    tell(request, validation, findings);
    write_place(request, &mut config)?;
    Ok(Configuration { value: config, refusal })
}

/// A configuration may leave out the place that the path names.
fn write_place(request: &ResourceRequest, config: &mut Value) -> ApiResult<()> {
    crate::object_name::settle(request, config)?;
    let metadata = crate::metadata::of(config);
    metadata.insert("name".into(), json!(request.target.name));
    Ok(())
}

/// What a patch made, checked as if it had been sent.
pub(crate) fn patched(
    request: &ResourceRequest,
    mut object: Value,
    validation: FieldValidation,
) -> ApiResult<Value> {
    let shape = form::shape_of(&request.resource);
    let refuse = |object: &Value, detail: &str| {
        let shown = Value::String(object.to_string());
        let error = convoy_api::schema::FieldError::invalid("patch", &shown, detail);
        Status::invalid_thing("", "", &[error])
    };
    let unknown = match decode::fit(shape, &mut object) {
        Ok(unknown) => unknown,
        Err(error) => return Err(refuse(&object, &error.to_string())),
    };
    let pruned = prune(request, &mut object);
    let findings = findings(request, &[unknown, pruned].concat(), &[]);
    if validation == FieldValidation::Strict && !findings.is_empty() {
        let detail = format!("strict decoding error: {}", findings.join(", "));
        return Err(refuse(&object, &detail));
    }
    tell(request, validation, findings);
    Ok(object)
}

fn of_kind(
    request: &ResourceRequest,
    shape: Shape<'_>,
    api_version: &str,
    kind: &str,
    validation: FieldValidation,
) -> ApiResult<Value> {
    let Decoded { value: mut object, mut unknown, duplicates } = read(request, shape, kind)?;
    check_type(request, &mut object, api_version, kind)?;
    unknown.extend(prune(request, &mut object));
    let findings = findings(request, &unknown, &duplicates);
    if validation == FieldValidation::Strict && !findings.is_empty() {
        let list = findings.join(", ");
        return Err(Status::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {kind}: strict decoding error: {list}",
            request.resource.version
        )));
    }
    tell(request, validation, findings);
    Ok(object)
}

/// Drops what the schema of a custom kind does not know; their paths.
fn prune(request: &ResourceRequest, object: &mut Value) -> Vec<String> {
    match &request.resource.custom {
        Some(custom) if !is_other_kind(request) => custom.form.schema.prune(object),
        _ => Vec::new(),
    }
}

fn is_other_kind(request: &ResourceRequest) -> bool {
    let name = &request.target.subresource;
    request.resource.subresources.iter().any(|one| one.name == *name && one.kind.is_some())
}

fn findings(request: &ResourceRequest, unknown: &[String], duplicates: &[String]) -> Vec<String> {
    let unknown = unknown.iter().map(|path| format!("unknown field {path:?}"));
    let mut list: Vec<String> = unknown.collect();
    // Two looks find them in custom kinds: at the metadata, and at the rest.
    if request.resource.custom.is_some() {
        list.sort();
    }
    list.extend(duplicates.iter().map(|path| format!("duplicate field {path:?}")));
    list.dedup();
    list
}

fn tell(request: &ResourceRequest, validation: FieldValidation, findings: Vec<String>) {
    if validation == FieldValidation::Warn {
        for finding in findings {
            request.warn(finding);
        }
    }
}

fn read(request: &ResourceRequest, shape: Shape<'_>, kind: &str) -> ApiResult<Decoded> {
    let decoded = match encoding(request)? {
        Encoding::Json => decode::decode_json(shape, &request.body),
        Encoding::Yaml => decode::decode_yaml(shape, &request.body),
        Encoding::Protobuf => {
            let Received { api_version, kind, mut value } = protobuf::decode(&request.body)
                .map_err(|error| Status::bad_request(error.to_string()))?;
            if let Value::Object(fields) = &mut value {
                fields.insert("apiVersion".into(), json!(api_version));
                fields.insert("kind".into(), json!(kind));
            }
            Ok(Decoded { value, ..Decoded::default() })
        }
    };
    let mut decoded = decoded.map_err(|error| wrong(request, kind, &error))?;
    if decoded.value.is_null() && request.resource.custom.is_none() {
        decoded.value = json!({});
    }
    if !decoded.value.is_object() {
        let message = "the body of the request is not an object of Kubernetes";
        return Err(Status::bad_request(message));
    }
    Ok(decoded)
}

const NO_KIND: &str = "couldn't get version/kind";
/// What Go reads first of every body.
const TYPE_META: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
                         Kind string \"json:\\\"kind,omitempty\\\"\" }";
/// How much of a body that cannot be read is shown.
const SHOWN_MAX: usize = 30;

fn wrong(request: &ResourceRequest, kind: &str, error: &DecodeError) -> Box<Status> {
    match error {
        DecodeError::Syntax(why) => {
            let why = if why.starts_with("yaml: ") {
                why.clone()
            } else {
                format!("{NO_KIND}; json parse error: {why}")
            };
            if kind == "DeleteOptions" {
                Status::bad_request(why)
            } else {
                unrecognized(request, kind, &why)
            }
        }
        // Before anything else, a body has to be of a kind.
        DecodeError::WrongType { found, place, .. } if place == "value" => {
            let why = format!("json: cannot unmarshal {found} into Go value of type {TYPE_META}");
            unrecognized(request, kind, &format!("{NO_KIND}; json parse error: {why}"))
        }
        error => Status::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {kind}: {error}",
            request.resource.version
        )),
    }
}

fn unrecognized(request: &ResourceRequest, kind: &str, why: &str) -> Box<Status> {
    let body = &request.body;
    let cut = &body[..body.len().min(SHOWN_MAX)];
    let shown = match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(cut).into_owned(),
        Some(_) => cut.iter().fold(String::new(), |shown, byte| format!("{shown}{byte:02x}")),
    };
    let more = if body.len() > SHOWN_MAX { " ..." } else { "" };
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({shown}{more})"
    ))
}

fn encoding(request: &ResourceRequest) -> ApiResult<Encoding> {
    let media = request.content_type.split(';').next().unwrap_or_default().trim();
    match media {
        "" | "application/json" => Ok(Encoding::Json),
        "application/yaml" => Ok(Encoding::Yaml),
        PROTOBUF if request.resource.custom.is_none() => Ok(Encoding::Protobuf),
        _ if request.resource.custom.is_some() => {
            Err(Status::unsupported_media(&["application/json", "application/yaml"]))
        }
        _ => Err(Status::unsupported_media(&["application/json", "application/yaml", PROTOBUF])),
    }
}

/// The body must be of the kind that the path names; built-in kinds may leave it out.
fn check_type(
    request: &ResourceRequest,
    object: &mut Value,
    api_version: &str,
    kind: &str,
) -> ApiResult<()> {
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let (given_version, given_kind) = (text("apiVersion"), text("kind"));
    if request.resource.custom.is_some() {
        for (field, given) in [("Kind", &given_kind), ("apiVersion", &given_version)] {
            if given.is_empty() {
                let shown = String::from_utf8_lossy(&request.body);
                let why = format!("Object '{field}' is missing in '{shown}'");
                return Err(unrecognized(request, kind, &why));
            }
        }
    }
    let kind_differs = !given_kind.is_empty() && given_kind != kind;
    let version_differs = !given_version.is_empty() && given_version != api_version;
    if kind_differs || version_differs {
        let version = if given_version.is_empty() { api_version } else { &given_version };
        let shown = if given_kind.is_empty() { kind } else { &given_kind };
        let short = crate::registry::split_api_version(version).1;
        let why = if request.registry.of_kind(version, shown).is_some() {
            let package = |group: &str| match group.split('.').next() {
                None | Some("") => "core".to_owned(),
                Some(first) => first.to_owned(),
            };
            let wanted = package(&request.resource.group);
            format!("converting ({short}.{shown}) to ({wanted}.{kind}): unknown conversion")
        } else {
            format!("no kind {shown:?} is registered for version {version:?} in {SCHEME}")
        };
        return Err(Status::bad_request(format!(
            "{shown} in version {short:?} cannot be handled as a {kind}: {why}"
        )));
    }
    let fields = object.as_object_mut().expect("checked when it was read");
    fields.insert("apiVersion".into(), json!(api_version));
    fields.insert("kind".into(), json!(kind));
    Ok(())
}
