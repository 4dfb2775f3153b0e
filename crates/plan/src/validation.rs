//! What every dialect's validation begins with: the object against its own schema; and rules that
//! hold for objects of any kind.

pub(crate) mod findings;
pub(crate) mod metadata;

use convoy_api::{Object, schema};

use crate::diagnostic::Diagnostic;

/// What the schema of its kind and version says about `object`. A version that is not served
/// is an error of its own, a field that an API server would drop is a warning. Kinds without a
/// schema (built-in ones) pass.
pub fn schema(object: &Object) -> Vec<Diagnostic> {
    let Some(schema) = schema::of(object.kind(), object.version()) else {
        return schema::served_versions(object.kind()).map_or_else(Vec::new, |served| {
            vec![Diagnostic::error(object, "apiVersion", not_served(object, &served))]
        });
    };
    let review = schema.review(object.raw(), None);
    let errors = review.errors.into_iter();
    let errors = errors.map(|error| Diagnostic::error(object, error.field, error.message));
    let warnings = review.unknown_fields.into_iter().map(|field| {
        let message = format!("unknown field \"{field}\"");
        Diagnostic::warning(object, field, message)
    });
    errors.chain(warnings).collect()
}

fn not_served(object: &Object, served: &[&str]) -> String {
    let (version, kind) = (object.version(), object.kind());
    let served = served.join(", ");
    format!("version \"{version}\" of {kind} is not served; versions that are: {served}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn findings(version: &str, spec: &Value) -> Vec<(String, String)> {
        let object =
            Object::from_value(json!({"apiVersion": format!("skyhook.nvidia.com/{version}"),
            "kind": "DeploymentPolicy", "metadata": {"name": "slow"}, "spec": spec}));
        let found = schema(&object.unwrap());
        found.into_iter().map(|finding| (finding.field, finding.message)).collect()
    }

    #[test]
    fn every_finding_names_its_field() {
        let found =
            findings("v1alpha1", &json!({"default": {"budget": {"percent": 0}}, "pace": 1}));
        let fields: Vec<_> = found.iter().map(|(field, _)| field.as_str()).collect();
        assert!(fields.contains(&"spec.default.budget.percent"), "{found:?}");
        assert!(
            found.contains(&("spec.pace".to_owned(), "unknown field \"spec.pace\"".to_owned()))
        );
    }

    #[test]
    fn an_unserved_version_says_which_are_served() {
        let found = findings("v1", &json!({}));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "apiVersion");
        assert!(found[0].1.ends_with("versions that are: v1alpha1"), "{found:?}");
    }
}
