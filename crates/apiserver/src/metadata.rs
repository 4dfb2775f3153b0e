//! The rules of `metadata`, the same for every kind.

use convoy_api::schema::{FieldError, Reason};
use convoy_api::text::Name;
use serde_json::{Map, Value, json};

use crate::registry::Resource;

const ANNOTATIONS_BYTES_MAX: usize = 256 << 10;

/// Finalizers that are no qualified names but have always been there.
const STANDARD_FINALIZERS: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];

pub fn text<'o>(object: &'o Value, field: &str) -> &'o str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// The metadata of an object, made if need be.
pub fn of(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = json!({});
    }
    let fields = object.as_object_mut().expect("made an object above");
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    if !metadata.is_object() {
        *metadata = json!({});
    }
    metadata.as_object_mut().expect("made an object above")
}

/// Everything that is wrong with the metadata of a new object; `wrong` tells what is wrong with a
/// name of its kind.
pub fn validate(
    resource: &Resource,
    object: &Value,
    wrong: impl Fn(&str) -> Vec<String>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = text(object, "name");
    let prefix = text(object, "generateName");
    if name.is_empty() && prefix.is_empty() {
        let detail = "name or generateName is required";
        errors.push(FieldError::plain(Reason::Required, "metadata.name", detail));
    }
    if !prefix.is_empty() {
        let trimmed = prefix.strip_suffix('-').filter(|rest| !rest.is_empty()).unwrap_or(prefix);
        errors.extend(name_errors(&wrong(trimmed), ("metadata.generateName", prefix)));
    }
    if !name.is_empty() {
        errors.extend(name_errors(&wrong(name), ("metadata.name", name)));
    }
    if resource.namespaced {
        let namespace = text(object, "namespace");
        if namespace.is_empty() {
            errors.push(FieldError::plain(Reason::Required, "metadata.namespace", ""));
        } else {
            for detail in Name::Dns1123Label.errors(namespace) {
                errors.push(FieldError::invalid("metadata.namespace", &json!(namespace), &detail));
            }
        }
    }
    let metadata = &object["metadata"];
    labels(metadata, &mut errors);
    annotations(metadata, &mut errors);
    owners(metadata, &mut errors);
    finalizers(metadata, &mut errors);
    if resource.custom.is_none() {
        builtin_finalizers(metadata, &mut errors);
    }
    errors
}

/// What may not change from one version of an object to the next.
pub fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !old["metadata"]["deletionTimestamp"].is_null() {
        let before = texts(&old["metadata"]["finalizers"]);
        let added: Vec<&str> = texts(&new["metadata"]["finalizers"])
            .into_iter()
            .filter(|finalizer| !before.contains(finalizer))
            .collect();
        if !added.is_empty() {
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
            );
            errors.push(FieldError::plain(Reason::Forbidden, "metadata.finalizers", &detail));
        }
    }
    errors
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// What is wrong with a name, which stands in a field as it is shown.
fn name_errors(
    details: &[String],
    (field, shown): (&str, &str),
) -> impl Iterator<Item = FieldError> {
    details.iter().map(move |detail| FieldError::invalid(field, &json!(shown), detail))
}

/// A name that is safe as a part of a path is all that access rules ask for.
pub(crate) fn path_segment(name: &str) -> Vec<String> {
    if matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    let bad = ['/', '%'].into_iter().filter(|c| name.contains(*c));
    bad.map(|c| format!("may not contain '{c}'")).collect()
}

fn labels(metadata: &Value, errors: &mut Vec<FieldError>) {
    for (key, value) in metadata["labels"].as_object().into_iter().flatten() {
        for detail in Name::QualifiedName.errors(key) {
            errors.push(FieldError::invalid("metadata.labels", &json!(key), &detail));
        }
        for detail in Name::LabelValue.errors(value.as_str().unwrap_or_default()) {
            errors.push(FieldError::invalid("metadata.labels", value, &detail));
        }
    }
}

fn annotations(metadata: &Value, errors: &mut Vec<FieldError>) {
    let mut bytes = 0;
    for (key, value) in metadata["annotations"].as_object().into_iter().flatten() {
        // Keys are compared without regard to case, since some clients write them so.
        for detail in Name::QualifiedName.errors(&key.to_lowercase()) {
            errors.push(FieldError::invalid("metadata.annotations", &json!(key), &detail));
        }
        bytes += key.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > ANNOTATIONS_BYTES_MAX {
        let detail = format!("may not be more than {ANNOTATIONS_BYTES_MAX} bytes");
        errors.push(FieldError::plain(Reason::TooLong, "metadata.annotations", &detail));
    }
}

fn owners(metadata: &Value, errors: &mut Vec<FieldError>) {
    let mut controllers = Vec::new();
    for owner in metadata["ownerReferences"].as_array().into_iter().flatten() {
        let at = "metadata.ownerReferences";
        let part = |name: &str| owner[name].as_str().unwrap_or_default();
        if part("apiVersion").is_empty() {
            let detail = "version must not be empty";
            errors.push(FieldError::invalid(&format!("{at}.apiVersion"), &json!(""), detail));
        }
        for (name, detail) in [
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if part(name).is_empty() {
                errors.push(FieldError::invalid(&format!("{at}.{name}"), &json!(""), detail));
            }
        }
        if part("kind") == "Event" && matches!(part("apiVersion"), "v1" | "events.k8s.io/v1") {
            let (group, version) = crate::registry::split_api_version(part("apiVersion"));
            let detail = format!("{group}/{version}, Kind=Event is disallowed from being an owner");
            errors.push(FieldError::invalid(at, owner, &detail));
        }
        if owner["controller"] == json!(true) {
            controllers.push(format!("{}/{}", part("kind"), part("name")));
        }
    }
    if let [first, second, ..] = &controllers[..] {
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {second}"
        );
        let fields = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
        let shown = |owner: &Value| -> Value {
            let given = fields.iter().filter_map(|field| Some((*field, owner.get(field)?.clone())));
            given.map(|(field, value)| (field.to_owned(), value)).collect::<Map<_, _>>().into()
        };
        let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        let shown: Value = owners.map(shown).collect();
        let detail = format!("{shown}: {detail}");
        errors.push(FieldError::plain(Reason::Invalid, "metadata.ownerReferences", &detail));
    }
}

/// Short names belong to Kubernetes, which has few of them.
fn builtin_finalizers(metadata: &Value, errors: &mut Vec<FieldError>) {
    for (index, finalizer) in texts(&metadata["finalizers"]).into_iter().enumerate() {
        if !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer) {
            let at = format!("metadata.finalizers[{index}]");
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(&at, &json!(finalizer), detail));
        }
    }
}

fn finalizers(metadata: &Value, errors: &mut Vec<FieldError>) {
    for finalizer in texts(&metadata["finalizers"]) {
        if STANDARD_FINALIZERS.contains(&finalizer) {
            continue;
        }
        for detail in Name::QualifiedName.errors(finalizer) {
            errors.push(FieldError::invalid("metadata.finalizers", &json!(finalizer), &detail));
        }
    }
    let has = |name| texts(&metadata["finalizers"]).contains(&name);
    if has("orphan") && has("foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        let shown = metadata["finalizers"].clone();
        errors.push(FieldError::invalid("metadata.finalizers", &shown, detail));
    }
}

/// Drops owner references that say the same as an earlier one; whether there were any.
pub fn drop_duplicate_owners(object: &mut Value) -> bool {
    let Some(Value::Array(owners)) = object.pointer_mut("/metadata/ownerReferences") else {
        return false;
    };
    let before = owners.len();
    let mut seen: Vec<Value> = Vec::new();
    owners.retain(|owner| {
        let is_new = !seen.contains(owner);
        if is_new {
            seen.push(owner.clone());
        }
        is_new
    });
    owners.len() < before
}

/// Whether an object names the version that it is to replace. `0` means any, as in a list.
pub(crate) fn is_pinned(object: &Value) -> bool {
    !matches!(text(object, "resourceVersion"), "" | "0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::builtin;

    /// As names of the kind are checked.
    fn validate(resource: &Resource, object: &Value) -> Vec<FieldError> {
        let wrong = |name: &str| crate::kinds::of(resource).name_errors(object, name);
        super::validate(resource, object, wrong)
    }

    fn errors(plural: &str, metadata: Value) -> Vec<String> {
        let resource = builtin().get("", "v1", plural).unwrap();
        let object = json!({"metadata": metadata});
        validate(resource, &object).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn names_are_checked_by_the_rules_of_their_kind() {
        assert_eq!(errors("nodes", json!({"name": "a.b"})), Vec::<String>::new());
        assert_eq!(errors("namespaces", json!({"name": "a.b"})).len(), 1);
        assert_eq!(
            errors("nodes", json!({})),
            ["metadata.name: Required value: name or generateName is required"]
        );
        assert!(errors("nodes", json!({"generateName": "a-"})).is_empty());
        assert!(errors("nodes", json!({"name": "A"}))[0].contains("lowercase RFC 1123 subdomain"));
        let roles = builtin().get("rbac.authorization.k8s.io", "v1", "clusterroles").unwrap();
        assert!(validate(roles, &json!({"metadata": {"name": "system:A"}})).is_empty());
        assert_eq!(validate(roles, &json!({"metadata": {"name": "a/b"}})).len(), 1);
    }

    #[test]
    fn trust_bundles_are_named_after_their_signer() {
        let resource = builtin().get("certificates.k8s.io", "v1", "clustertrustbundles").unwrap();
        for (signer, name, error) in [
            ("", "plain", ""),
            ("", "a:b", "ClusterTrustBundle without signer name must not have \":\" in its name"),
            ("example.com/s", "example.com:s:mine", ""),
            (
                "example.com/s",
                "mine",
                "ClusterTrustBundle for signerName example.com/s must be named with prefix \
                 example.com:s:",
            ),
        ] {
            let object = json!({"metadata": {"name": name}, "spec": {"signerName": signer}});
            let errors = validate(resource, &object);
            assert_eq!(errors.is_empty(), error.is_empty(), "{name}: {errors:?}");
            assert!(errors.iter().all(|one| one.to_string().ends_with(error)), "{errors:?}");
        }
    }

    #[test]
    fn addresses_have_one_name_each() {
        let resource = builtin().get("networking.k8s.io", "v1", "ipaddresses").unwrap();
        for (name, error) in [
            ("192.168.1.5", ""),
            ("2001:db8::ffff", ""),
            ("2001:DB8::ffff", "must be in canonical form (\"2001:db8::ffff\")"),
            ("::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address"),
            ("192.168.01.5", "must not have leading 0s"),
            ("a.b", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
        ] {
            let errors = validate(resource, &json!({"metadata": {"name": name}}));
            assert_eq!(errors.is_empty(), error.is_empty(), "{name}: {errors:?}");
            assert!(errors.iter().all(|one| one.to_string().ends_with(error)), "{errors:?}");
        }
    }

    #[test]
    fn labels_owners_and_finalizers_are_checked() {
        let metadata = json!({"name": "n", "labels": {"bad key": "v", "k": "-"},
            "finalizers": ["x", "orphan", "a.b/c"],
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "1", "controller": true},
                {"apiVersion": "v1", "kind": "Node", "name": "b", "uid": "", "controller": true}]});
        let errors = errors("nodes", metadata);
        assert_eq!(errors.len(), 5, "{errors:#?}");
        assert!(errors[2].starts_with("metadata.ownerReferences.uid: Invalid value: \"\""));
    }

    #[test]
    fn no_finalizer_is_added_while_deleting() {
        let old = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.b/c"]}});
        let new = json!({"metadata": {"finalizers": ["d.e/f"]}});
        assert_eq!(
            validate_update(&new, &old)[0].to_string(),
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being \
             deleted, found new finalizers []string{\"d.e/f\"}"
        );
    }
}
