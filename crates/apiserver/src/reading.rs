//! The objects that requests bring, in any encoding, checked as strictly as they ask for.

use serde_json::{Value, json};

use crate::ask::Ask;
use crate::decode::{self, DecodeError, Decoded};
use crate::form;
use crate::protobuf::{self, Received};
use crate::query::{FieldValidation, options_kind};
use crate::shape::Shape;
use crate::status::{Answer, Status};

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
pub(crate) fn object(ask: &Ask, validation: FieldValidation) -> Answer<Value> {
    let (api_version, kind) = (ask.resource.api_version(), ask.resource.kind.clone());
    of_kind(ask, form::shape_of(&ask.resource), &api_version, &kind, validation)
}

/// The object in the body, which is of another kind than the resource: a scale, an eviction.
pub(crate) fn other(ask: &Ask, api_version: &str, kind: &str) -> Answer<Value> {
    let validation = ask.query.field_validation(options_kind(&ask.verb))?;
    of_kind(ask, form::builtin(api_version, kind), api_version, kind, validation)
}

/// The options in the body of a deletion.
pub(crate) fn options(ask: &Ask) -> Answer<Value> {
    let shape = form::builtin("meta.k8s.io/v1", "DeleteOptions");
    let options = read(ask, shape, "DeleteOptions")?.value;
    let kind = options["kind"].as_str().unwrap_or_default();
    if !matches!(kind, "" | "DeleteOptions") {
        let version = options["apiVersion"].as_str().unwrap_or_default();
        let message = format!("no kind {kind:?} is registered for version {version:?} in {SCHEME}");
        return Err(Status::bad_request(message));
    }
    Ok(options)
}

/// What is to be applied: YAML, and of exactly the kind and version that the path names.
pub(crate) fn configuration(ask: &Ask, validation: FieldValidation) -> Answer<Value> {
    let shape = form::shape_of(&ask.resource);
    let refuse = |error: DecodeError| Status::bad_request(format!("error decoding YAML: {error}"));
    let Decoded { value: mut config, mut unknown, duplicates } =
        decode::decode_yaml(shape, &ask.body).map_err(refuse)?;
    let text = |field: &str| config[field].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (group, version) = crate::registry::split_api_version(api_version);
    let is_served = |version| {
        let mut known = ask.registry.group_version(group, version).into_iter();
        known.any(|all| all.values().any(|one| one.kind == kind))
    };
    if kind != ask.resource.kind || group != ask.resource.group || !is_served(version) {
        let message = format!("invalid object type: {group}/{version}, Kind={kind}");
        return Err(Status::bad_request(message));
    }
    let expected = ask.resource.api_version();
    if api_version != expected {
        return Err(Status::bad_request(format!(
            "Incorrect version specified in apply patch. Specified patch version: {api_version}, expected: {expected}"
        )));
    }
    unknown.extend(prune(ask, &mut config));
    let findings = findings(ask, &unknown, &duplicates);
    if validation == FieldValidation::Strict && !findings.is_empty() {
        let message = format!("error strict decoding patch: {}", findings.join(", "));
        return Err(Status::bad_request(message));
    }
    if !unknown.is_empty() {
        // Whoever applies is told of every field that nobody can own.
        let Decoded { value, .. } = decode::as_sent(shape, &ask.body).map_err(refuse)?;
        return Ok(value);
    }
    tell(ask, validation, findings);
    write_place(ask, &mut config)?;
    Ok(config)
}

/// A configuration may leave out the place that the path names.
fn write_place(ask: &Ask, config: &mut Value) -> Answer<()> {
    crate::write::settle_place(ask, config)?;
    let metadata = crate::metadata::of(config);
    metadata.insert("name".into(), json!(ask.target.name));
    Ok(())
}

/// What a patch made, checked as if it had been sent.
pub(crate) fn patched(ask: &Ask, mut object: Value, validation: FieldValidation) -> Answer<Value> {
    let shape = form::shape_of(&ask.resource);
    let refuse = |object: &Value, detail: &str| {
        let shown = Value::String(object.to_string());
        let error = convoy_api::schema::FieldError::invalid("patch", &shown, detail);
        Status::invalid_thing("", "", &[error])
    };
    let unknown = match decode::fit(shape, &mut object) {
        Ok(unknown) => unknown,
        Err(error) => return Err(refuse(&object, &error.to_string())),
    };
    let pruned = prune(ask, &mut object);
    let findings = findings(ask, &[unknown, pruned].concat(), &[]);
    if validation == FieldValidation::Strict && !findings.is_empty() {
        let detail = format!("strict decoding error: {}", findings.join(", "));
        return Err(refuse(&object, &detail));
    }
    tell(ask, validation, findings);
    Ok(object)
}

fn of_kind(
    ask: &Ask,
    shape: Shape<'_>,
    api_version: &str,
    kind: &str,
    validation: FieldValidation,
) -> Answer<Value> {
    let Decoded { value: mut object, mut unknown, duplicates } = read(ask, shape, kind)?;
    check_type(ask, &mut object, api_version, kind)?;
    unknown.extend(prune(ask, &mut object));
    let findings = findings(ask, &unknown, &duplicates);
    if validation == FieldValidation::Strict && !findings.is_empty() {
        let list = findings.join(", ");
        return Err(Status::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {kind}: strict decoding error: {list}",
            ask.resource.version
        )));
    }
    tell(ask, validation, findings);
    Ok(object)
}

/// Drops what the schema of a custom kind does not know; their paths.
fn prune(ask: &Ask, object: &mut Value) -> Vec<String> {
    match &ask.resource.custom {
        Some(custom) if !is_other_kind(ask) => custom.form.schema.prune(object),
        _ => Vec::new(),
    }
}

fn is_other_kind(ask: &Ask) -> bool {
    let name = &ask.target.subresource;
    ask.resource.subresources.iter().any(|one| one.name == *name && one.kind.is_some())
}

fn findings(ask: &Ask, unknown: &[String], duplicates: &[String]) -> Vec<String> {
    let unknown = unknown.iter().map(|path| format!("unknown field {path:?}"));
    let mut list: Vec<String> = unknown.collect();
    // Two looks find them in custom kinds: at the metadata, and at the rest.
    if ask.resource.custom.is_some() {
        list.sort();
    }
    list.extend(duplicates.iter().map(|path| format!("duplicate field {path:?}")));
    list.dedup();
    list
}

fn tell(ask: &Ask, validation: FieldValidation, findings: Vec<String>) {
    if validation == FieldValidation::Warn {
        for finding in findings {
            ask.warn(finding);
        }
    }
}

fn read(ask: &Ask, shape: Shape<'_>, kind: &str) -> Answer<Decoded> {
    let decoded = match encoding(ask)? {
        Encoding::Json => decode::decode_json(shape, &ask.body),
        Encoding::Yaml => decode::decode_yaml(shape, &ask.body),
        Encoding::Protobuf => {
            let Received { api_version, kind, mut value } = protobuf::decode(&ask.body)
                .map_err(|error| Status::bad_request(error.to_string()))?;
            if let Value::Object(fields) = &mut value {
                fields.insert("apiVersion".into(), json!(api_version));
                fields.insert("kind".into(), json!(kind));
            }
            Ok(Decoded { value, ..Decoded::default() })
        }
    };
    let mut decoded = decoded.map_err(|error| wrong(ask, kind, &error))?;
    if decoded.value.is_null() && ask.resource.custom.is_none() {
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

fn wrong(ask: &Ask, kind: &str, error: &DecodeError) -> Box<Status> {
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
                unrecognized(ask, kind, &why)
            }
        }
        // Before anything else, a body has to be of a kind.
        DecodeError::WrongType { found, place, .. } if place == "value" => {
            let why = format!("json: cannot unmarshal {found} into Go value of type {TYPE_META}");
            unrecognized(ask, kind, &format!("{NO_KIND}; json parse error: {why}"))
        }
        error => Status::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {kind}: {error}",
            ask.resource.version
        )),
    }
}

fn unrecognized(ask: &Ask, kind: &str, why: &str) -> Box<Status> {
    let body = &ask.body;
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

fn encoding(ask: &Ask) -> Answer<Encoding> {
    let media = ask.content_type.split(';').next().unwrap_or_default().trim();
    match media {
        "" | "application/json" => Ok(Encoding::Json),
        "application/yaml" => Ok(Encoding::Yaml),
        PROTOBUF if ask.resource.custom.is_none() => Ok(Encoding::Protobuf),
        _ if ask.resource.custom.is_some() => {
            Err(Status::unsupported_media(&["application/json", "application/yaml"]))
        }
        _ => Err(Status::unsupported_media(&["application/json", "application/yaml", PROTOBUF])),
    }
}

/// The body must be of the kind that the path names; built-in kinds may leave it out.
fn check_type(ask: &Ask, object: &mut Value, api_version: &str, kind: &str) -> Answer<()> {
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let (given_version, given_kind) = (text("apiVersion"), text("kind"));
    if ask.resource.custom.is_some() {
        for (field, given) in [("Kind", &given_kind), ("apiVersion", &given_version)] {
            if given.is_empty() {
                let shown = String::from_utf8_lossy(&ask.body);
                let why = format!("Object '{field}' is missing in '{shown}'");
                return Err(unrecognized(ask, kind, &why));
            }
        }
    }
    let kind_differs = !given_kind.is_empty() && given_kind != kind;
    let version_differs = !given_version.is_empty() && given_version != api_version;
    if kind_differs || version_differs {
        let version = if given_version.is_empty() { api_version } else { &given_version };
        let shown = if given_kind.is_empty() { kind } else { &given_kind };
        let short = crate::registry::split_api_version(version).1;
        let why = if ask.registry.of_kind(version, shown).is_some() {
            let package = |group: &str| match group.split('.').next() {
                None | Some("") => "core".to_owned(),
                Some(first) => first.to_owned(),
            };
            let wanted = package(&ask.resource.group);
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
