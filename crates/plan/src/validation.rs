//! What every dialect's validation begins with: the object against its own schema; and rules that
//! hold for objects of any kind.

pub(crate) mod findings;
pub(crate) mod mending;
pub(crate) mod metadata;
pub mod references;

use convoy_api::object::field_path::{self, is_within};
use convoy_api::schema::{FieldError, Reason};
use convoy_api::text::similar;
use convoy_api::{Object, schema};
use serde_json::Value;

use crate::diagnostic::Diagnostic;

/// What the schema of its kind and version says about `object`. A version that is not served
/// is an error of its own, a field that an API server would drop is a warning. Kinds without a
/// schema (built-in ones) pass.
pub fn schema(object: &Object) -> Vec<Diagnostic> {
    reviewed(object).found
}

/// What the schema says about `object`, and then what `rules` say about it, which read it as far as
/// it can be read: one value of the wrong type hides nothing else.
pub(crate) fn schema_and(
    object: &Object,
    rules: impl FnOnce(&Object) -> Vec<Diagnostic>,
) -> Vec<Diagnostic> {
    let mut reviewed = reviewed(object);
    reviewed.mistyped.retain(|mistyped| mistyped.meant.is_none());
    with_rules(object, reviewed, rules)
}

/// The same for rules that read types which cannot hold a word that the API does not have: they read
/// the word that was meant.
pub(crate) fn schema_and_as_meant(
    object: &Object,
    rules: impl FnOnce(&Object) -> Vec<Diagnostic>,
) -> Vec<Diagnostic> {
    with_rules(object, reviewed(object), rules)
}

fn with_rules(
    object: &Object,
    reviewed: Reviewed,
    rules: impl FnOnce(&Object) -> Vec<Diagnostic>,
) -> Vec<Diagnostic> {
    let Reviewed { mut found, mistyped, unreadable } = reviewed;
    let readable = mending::mended(object, &mistyped);
    let mut more = beside(&unreadable, rules(&readable));
    // The word that is read instead is nobody's.
    let words: Vec<&str> = mistyped
        .iter()
        .filter(|mistyped| mistyped.meant.is_some())
        .map(|mistyped| mistyped.field.as_str())
        .collect();
    more.retain(|more| !words.iter().any(|word| is_within(&more.field, word)));
    found.extend(more);
    found
}

/// Those of `more` findings that do not follow from a value that could not be read.
pub(crate) fn beside(unreadable: &[String], more: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let follows = |more: &Diagnostic| {
        let mut unreadable = unreadable.iter();
        unreadable.any(|it| is_within(&more.field, it) || is_within(it, &more.field))
    };
    more.into_iter().filter(|more| !follows(more)).collect()
}

/// What a schema says.
struct Reviewed {
    found: Vec<Diagnostic>,
    mistyped: Vec<mending::Mistyped>,
    /// Fields of the wrong type, and required ones that are absent.
    unreadable: Vec<String>,
}

fn reviewed(object: &Object) -> Reviewed {
    let Some(schema) = schema::of(object.kind(), object.version()) else {
        let found = schema::served_versions(object.kind()).map_or_else(Vec::new, |served| {
            vec![Diagnostic::error(object, "apiVersion", not_served(object, &served))]
        });
        return Reviewed { found, mistyped: Vec::new(), unreadable: Vec::new() };
    };
    by_schema(object, schema)
}

/// What a schema says about `object`, wherever the schema is from.
pub fn against(object: &Object, schema: &schema::Schema) -> Vec<Diagnostic> {
    by_schema(object, schema).found
}

fn by_schema(object: &Object, schema: &schema::Schema) -> Reviewed {
    let review = schema.review(object.raw());
    let mistyped = review.errors.iter().filter_map(|error| {
        let meant = supported_word(object.raw(), error);
        let wants_text = error.wanted.as_deref() == Some("string");
        let is_readable = error.wanted.is_none() && meant.is_none();
        let field = error.field.clone();
        (!is_readable).then_some(mending::Mistyped { field, wants_text, meant })
    });
    let mistyped = mistyped.collect();
    let is_unreadable =
        |error: &&FieldError| matches!(error.reason, Reason::TypeInvalid | Reason::Required);
    let unreadable = review.errors.iter().filter(is_unreadable);
    let unreadable = unreadable.map(|error| error.field.clone()).collect();
    // That a value fits none of several schemas goes without saying where its faults are named.
    let is_named = |error: &FieldError| {
        let inner = review.errors.iter().filter(|other| !other.detached);
        error.detached && inner.clone().any(|other| is_within(&other.field, &error.field))
    };
    let errors = review.errors.iter().filter(|error| !is_named(error));
    let errors = errors.map(|error| {
        let message = mistyped_message(object.raw(), error);
        let message = message.unwrap_or_else(|| error.message.clone());
        Diagnostic::error(object, error.field.as_str(), message)
    });
    let warnings = review
        .unknown_fields
        .iter()
        .map(|unknown| Diagnostic::warning(object, unknown.field.as_str(), unknown.message()));
    Reviewed { found: errors.chain(warnings).collect(), mistyped, unreadable }
}

/// For a word that is none of those that a schema lists: the nearest of these, or the first.
fn supported_word(raw: &Value, error: &FieldError) -> Option<String> {
    let word = field_path::get(raw, &error.field)?.as_str()?;
    let listed = || error.supported.iter().map(AsRef::as_ref);
    similar::nearest(word, listed()).or_else(|| listed().next()).map(str::to_owned)
}

/// What is wrong with the type of a value, with the value itself: an API server tells only its type.
fn mistyped_message(raw: &Value, error: &FieldError) -> Option<String> {
    let wanted = error.wanted.as_deref()?;
    let value = field_path::get(raw, &error.field)?;
    let got = convoy_api::object::shape_in_words(value);
    let phrase = match wanted {
        "string" => "a string",
        "boolean" => "true or false",
        "integer" => "an integer",
        "int32" => "an integer of 32 bits",
        "int64" => "an integer of 64 bits",
        "number" => "a number",
        "object" => "an object",
        "array" => "a list",
        "integer,string" => "an integer or a string",
        format => return Some(format!("Invalid value: {value}: want the format {format}")),
    };
    Some(match value {
        Value::Array(_) | Value::Object(_) => {
            format!("Invalid value: want {phrase}, got {got}")
        }
        _ if wanted == "string" => {
            format!("Invalid value: {value}: want {phrase}, got {got}; write it in quotes")
        }
        _ => format!("Invalid value: {value}: want {phrase}, got {got}"),
    })
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
