//! Server-side apply: who applies, what is sent, and which fields are left to others.

use convoy_api::Object;
use convoy_api::json_path::JsonPath;
use convoy_api::object::member::{field, list, text};
use serde_json::{Value, json};

use super::manifest::Item;
use crate::dialect::ocm_agent::names::{CONFIG_SPEC_HASH, WORK_AGENT};
use crate::hash::content::sorted;
use crate::hash::structure::fingerprint;

/// An apply of one manifest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServerSide {
    pub(crate) object: Value,
    pub(crate) manager: String,
    pub(crate) force: bool,
    /// Whether only a new hash in the annotation is a reason to apply it.
    pub(crate) is_hashed: bool,
}

/// What is applied to `live`, by the options of the strategy; an error says which path of
/// `ignoreFields` cannot be used.
pub(crate) fn server_side(
    manifest: Value,
    options: &Value,
    live: Option<&Object>,
) -> Result<ServerSide, String> {
    let mut object = manifest;
    drop_empty_times(&mut object);
    let manager = Some(text(options, "fieldManager")).filter(|name| !name.is_empty());
    let ignored = list(options, "ignoreFields");
    if !ignored.is_empty() {
        let required = without(&object, ignored)?;
        let hash = fingerprint(&sorted(&required).to_string());
        // A new object gets all fields.
        object = if live.is_some() { required } else { object };
        let metadata = &mut object["metadata"];
        if !field(metadata, "annotations").is_object() {
            metadata["annotations"] = json!({});
        }
        metadata["annotations"][CONFIG_SPEC_HASH] = json!(hash);
    }
    Ok(ServerSide {
        object,
        manager: manager.unwrap_or(WORK_AGENT).to_owned(),
        force: field(options, "force").as_bool() == Some(true),
        is_hashed: !ignored.is_empty(),
    })
}

impl ServerSide {
    /// Whether the annotation of an object names what would be applied.
    pub(crate) fn is_applied_to(&self, live: &Object) -> bool {
        let wanted = text(field(field(&self.object, "metadata"), "annotations"), CONFIG_SPEC_HASH);
        live.annotation(CONFIG_SPEC_HASH) == Some(wanted)
    }

    /// The manifest that the apply stands for.
    pub(crate) fn item<'s>(&'s self, item: &Item<'_>) -> Item<'s> {
        Item {
            identifier: item.identifier.clone(),
            raw: &self.object,
            resource: item.resource.clone(),
            problem: item.problem,
        }
    }
}

/// A null `creationTimestamp` makes servers count a new generation, at whatever depth it stands.
fn drop_empty_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let metadata = fields.get_mut("metadata").and_then(Value::as_object_mut);
            if let Some(metadata) = metadata
                && metadata.get("creationTimestamp").is_some_and(Value::is_null)
            {
                metadata.shift_remove("creationTimestamp");
            }
            fields.values_mut().for_each(drop_empty_times);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_empty_times),
        _ => {}
    }
}

/// The manifest without the fields that are left to the member once the object exists. Those of
/// `OnSpokeChange` stay: when anything else changes, they are applied too.
fn without(manifest: &Value, ignored: &[Value]) -> Result<Value, String> {
    let mut object = manifest.clone();
    for entry in ignored.iter().filter(|entry| text(entry, "condition") != "OnSpokeChange") {
        for path in list(entry, "jsonPaths").iter().filter_map(Value::as_str) {
            // What ends in an index removes nothing, and what is no path neither.
            let is_field = path.rsplit('.').next().is_some_and(|last| !last.ends_with(']'));
            if let (true, Ok(read)) = (is_field, JsonPath::parse(&format!("{{{path}}}"))) {
                object = pruned(&object, &read.find(&object).unwrap_or_default());
            }
        }
        for pointer in list(entry, "jsonPointers").iter().filter_map(Value::as_str) {
            if !pointer.starts_with('/') {
                return Err(format!(
                    "JSON Pointer error in '{pointer}': a pointer begins with a slash"
                ));
            }
            let target: Vec<&Value> = object.pointer(pointer).into_iter().collect();
            object = pruned(&object, &target);
        }
        for expression in list(entry, "jqPathExpressions").iter().filter_map(Value::as_str) {
            let failed = |why: String| format!("JQ expression error in '{expression}': {why}");
            let path = path_of_jq(expression).map_err(failed)?;
            let read = JsonPath::parse(&path).map_err(|error| failed(error.to_string()))?;
            object = pruned(&object, &read.find(&object).unwrap_or_default());
        }
    }
    Ok(object)
}

/// A copy that lacks the values `targets`, which are parts of it.
fn pruned(value: &Value, targets: &[&Value]) -> Value {
    let stays = |value: &Value| !targets.iter().any(|target| std::ptr::eq(*target, value));
    match value {
        Value::Object(fields) => {
            let rest = fields.iter().filter(|(_, value)| stays(value));
            rest.map(|(name, value)| (name.clone(), pruned(value, targets))).collect()
        }
        Value::Array(items) => {
            items.iter().filter(|it| stays(it)).map(|it| pruned(it, targets)).collect()
        }
        other => other.clone(),
    }
}

/// A path of jq as a JSON path. Fields, indices, `[]` and `select(.field == "text")` are known.
///
/// | jq                                                | JSON path                        |
/// |---------------------------------------------------|----------------------------------|
/// | `.spec.replicas`                                  | `.spec.replicas`                 |
/// | `.spec.containers[].image`                        | `.spec.containers[*].image`      |
/// | `.a[] \| select(.name == "x") \| .image`          | `.a[?(@.name=="x")].image`       |
fn path_of_jq(expression: &str) -> Result<String, String> {
    let unknown = || {
        "this is no path of fields, indices, [] and select(.field == \"text\"), which are what \
         Convoy knows of jq"
            .to_owned()
    };
    let mut path = String::new();
    for part in expression.split('|').map(str::trim) {
        let selected = part.strip_prefix("select(").and_then(|rest| rest.strip_suffix(')'));
        if let Some(test) = selected {
            let (left, right) = test.split_once("==").ok_or_else(unknown)?;
            let (left, right) = (left.trim(), right.trim());
            let is_text = right.len() >= 2 && right.starts_with('"') && right.ends_with('"');
            let list = path.strip_suffix("[*]").ok_or_else(unknown)?;
            if !left.starts_with('.') || !is_text {
                return Err(unknown());
            }
            path = format!("{list}[?(@{left}=={right})]");
        } else if part.starts_with('.') && !part.contains([' ', '(', ')', ',']) {
            path.push_str(&part.replace("[]", "[*]").replace(".[", "["));
        } else {
            return Err(unknown());
        }
    }
    JsonPath::parse(&path).map(|_| path).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "creationTimestamp": null},
            "spec": {"replicas": 3, "template": {"metadata": {"creationTimestamp": null},
                "spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]}}}})
    }

    fn left(ignored: Value) -> Result<Value, String> {
        Ok(without(&manifest(), &[ignored])?["spec"].clone())
    }

    #[test]
    fn fields_of_others_are_left_out() {
        let spec = |change: &dyn Fn(&mut Value)| {
            let mut spec = manifest()["spec"].clone();
            change(&mut spec);
            Ok(spec)
        };
        let no_replicas = spec(&|it| _ = it.as_object_mut().unwrap().shift_remove("replicas"));
        for ignored in [
            json!({"condition": "OnSpokePresent", "jsonPaths": [".spec.replicas"]}),
            json!({"condition": "OnSpokePresent", "jsonPointers": ["/spec/replicas", "/spec/no"]}),
            json!({"condition": "OnSpokePresent", "jqPathExpressions": [".spec.replicas"]}),
        ] {
            assert_eq!(left(ignored.clone()), no_replicas, "{ignored}");
        }
        let image = |at: usize| {
            spec(&|it| {
                let container = &mut it["template"]["spec"]["containers"][at];
                container.as_object_mut().unwrap().shift_remove("image");
            })
        };
        let jq = r#".spec.template.spec.containers[] | select(.name == "b") | .image"#;
        assert_eq!(left(json!({"condition": "", "jqPathExpressions": [jq]})), image(1));
        let path = r#".spec.template.spec.containers[?(@.name=="a")].image"#;
        assert_eq!(left(json!({"condition": "", "jsonPaths": [path]})), image(0));
        let all = left(json!({"condition": "OnSpokeChange", "jsonPaths": [".spec.replicas"]}));
        assert_eq!(all, Ok(manifest()["spec"].clone()));
    }

    #[test]
    fn what_is_no_path_is_told() {
        for (name, path) in [
            ("jsonPointers", "spec"),
            ("jqPathExpressions", ".spec["),
            ("jqPathExpressions", "del(.spec)"),
            ("jqPathExpressions", ".spec | select(.replicas > 2)"),
        ] {
            let why = left(json!({"condition": "OnSpokePresent", name: [path]})).unwrap_err();
            assert!(why.contains(path), "{why}");
        }
    }

    #[test]
    fn times_that_say_nothing_are_not_applied() {
        let made = server_side(manifest(), &Value::Null, None).unwrap();
        assert!(!made.object.to_string().contains("creationTimestamp"), "{}", made.object);
        assert_eq!(
            (made.manager.as_str(), made.force, made.is_hashed),
            ("work-agent", false, false)
        );
    }
}
