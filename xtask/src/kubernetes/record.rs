//! Recordings: objects, what was changed in them, and the causes for which a real API server
//! refused the result. `crates/api/tests/kubernetes.rs` reads them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::server::Server;

/// Where objects of a kind are posted, and the schema they are held against.
struct Kind {
    path: String,
    schema: Value,
}

/// Asks about every case of a recording again; returns how many answers changed.
pub(super) fn ask_again(server: &Server, file: &Path, is_recording: bool) -> Result<usize> {
    let mut recording: Value = serde_json::from_slice(&fs::read(file)?)?;
    install(server, &recording["schemas"])?;
    let kinds = kinds(server)?;
    let bases = recording["bases"].as_array().cloned().unwrap_or_default();
    let mut differences = 0;
    for case in recording["cases"].as_array_mut().into_iter().flatten() {
        let index = case["base"].as_u64().and_then(|index| usize::try_from(index).ok());
        let base = index.and_then(|index| bases.get(index)).context("a case has its base")?;
        let mut object = changed(base, case).context("a case says where")?;
        let kind = kinds.get(&name_of(&object)).context("its kind is served")?;
        if kind.path.contains("/namespaces/") {
            object["metadata"]["namespace"] = json!("default");
        }
        let causes = causes(&server.post(&kind.path, &object)?);
        differences += usize::from(causes != sorted(&case["causes"]));
        case["causes"] = causes;
    }
    let count = recording["cases"].as_array().map_or(0, Vec::len);
    eprintln!("{}: {count} cases, {differences} answers changed", file.display());
    if is_recording {
        let used = recording["schemas"].as_object().into_iter().flatten();
        let schemas =
            used.filter_map(|(name, _)| Some((name.clone(), kinds.get(name)?.schema.clone())));
        recording["schemas"] = schemas.collect::<Map<_, _>>().into();
        fs::write(file, written(&recording))?;
    }
    Ok(differences)
}

/// Kinds of a recording that no CRD of ours defines get one made from the schema on record.
fn install(server: &Server, schemas: &Value) -> Result<()> {
    for (name, schema) in schemas.as_object().into_iter().flatten() {
        let Some(rest) = name.strip_prefix("conformance.example/") else { continue };
        let (version, kind) = rest.split_once('/').context("version and kind")?;
        let plural = kind.to_lowercase() + "s";
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.conformance.example")},
            "spec": {"group": "conformance.example", "scope": "Cluster",
                "names": {"kind": kind, "plural": plural},
                "versions": [{"name": version, "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": schema}}]},
        });
        server.kubectl(&["create", "-f", "-"], &crd.to_string())?;
        let wait = format!("crd/{plural}.conformance.example");
        server.kubectl(&["wait", "--for=condition=Established", &wait, "--timeout=60s"], "")?;
        // Served a moment after it is established.
        server.kubectl(&["wait", "--for=create", &wait, "--timeout=10s"], "")?;
        std::thread::sleep(std::time::Duration::from_secs(2));
    }
    Ok(())
}

fn kinds(server: &Server) -> Result<BTreeMap<String, Kind>> {
    let crds: Value = serde_json::from_str(&server.kubectl(&["get", "crd", "-o", "json"], "")?)?;
    let mut kinds = BTreeMap::new();
    for crd in crds["items"].as_array().into_iter().flatten() {
        let spec = &crd["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
        let namespace = if spec["scope"] == "Namespaced" { "/namespaces/default" } else { "" };
        for version in spec["versions"].as_array().into_iter().flatten() {
            let name = text(&version["name"]);
            let query = "dryRun=All&fieldValidation=Ignore";
            let path = format!("/apis/{group}/{name}{namespace}/{plural}?{query}");
            let schema = without_descriptions(&version["schema"]["openAPIV3Schema"]);
            let kind = text(&spec["names"]["kind"]);
            kinds.insert(format!("{group}/{name}/{kind}"), Kind { path, schema });
        }
    }
    Ok(kinds)
}

fn name_of(object: &Value) -> String {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    format!("{}/{}", text("apiVersion"), text("kind"))
}

/// The base with one field set or taken away.
fn changed(base: &Value, case: &Value) -> Option<Value> {
    let mut object = base.clone();
    let is_set = case.get("at").is_some();
    let Some(place) = case.get("at").or(case.get("remove")) else { return Some(object) };
    let (parent, field) = place.as_str()?.rsplit_once('/')?;
    let field = field.replace("~1", "/").replace("~0", "~");
    match object.pointer_mut(parent)? {
        Value::Object(fields) if is_set => drop(fields.insert(field, case["value"].clone())),
        Value::Object(fields) => drop(fields.remove(&field)),
        Value::Array(items) if is_set => {
            *items.get_mut(field.parse::<usize>().ok()?)? = case["value"].clone();
        }
        Value::Array(items) => drop(items.remove(field.parse().ok()?)),
        _ => return None,
    }
    Some(object)
}

fn causes(answer: &Value) -> Value {
    if answer["kind"] != "Status" {
        return json!([]);
    }
    let causes = answer["details"]["causes"].as_array().into_iter().flatten();
    let cause = |cause: &Value| {
        let field = cause["field"].as_str().unwrap_or("<nil>");
        json!([field, cause["message"], cause["reason"]])
    };
    sorted(&causes.map(cause).collect())
}

/// The server walks maps in random order, so the order of causes says nothing.
fn sorted(causes: &Value) -> Value {
    let mut causes = causes.as_array().cloned().unwrap_or_default();
    causes.sort_by_cached_key(ToString::to_string);
    causes.into()
}

fn without_descriptions(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let kept =
                fields.iter().filter(|(name, value)| *name != "description" || !value.is_string());
            kept.map(|(name, value)| (name.clone(), without_descriptions(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_descriptions).collect(),
        other => other.clone(),
    }
}

/// One line per schema, base and case, so that a change of one is a change of one line.
fn written(recording: &Value) -> String {
    let lines = |items: Vec<String>| items.join(",\n");
    let list = |name: &str| {
        let items = recording[name].as_array().into_iter().flatten();
        lines(items.map(ToString::to_string).collect())
    };
    let schemas = recording["schemas"].as_object().into_iter().flatten();
    let schemas = schemas.map(|(name, schema)| format!("{}: {schema}", Value::from(name.as_str())));
    let mut text = String::new();
    let schemas = lines(schemas.collect());
    write!(
        text,
        "{{\"schemas\": {{\n{schemas}\n}},\n\"bases\": [\n{}\n],\n\"cases\": [\n{}\n]}}\n",
        list("bases"),
        list("cases")
    )
    .expect("strings take what is written");
    text
}
