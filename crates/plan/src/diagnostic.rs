//! What is wrong with an object: which object, which field, which value, what would be right.

use convoy_api::{Object, ObjectKey};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// A finding about one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Diagnostic {
    pub severity: Severity,
    /// `apiVersion/Kind/namespace/name`, the namespace empty for cluster scope.
    pub object: String,
    /// Which object that is.
    #[serde(skip)]
    pub key: ObjectKey,
    /// Dotted path with indices, e.g. `spec.disruption.budgets[0].nodes`; empty for the whole object.
    pub field: String,
    /// What is wrong and what would be right, with the value at fault.
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The object is refused: it takes no part in planning.
    Error,
    /// The object is accepted, and probably not what its author means.
    Warning,
    /// Something that a reader should know, and that is right as it is.
    Note,
}

impl Diagnostic {
    pub fn error(object: &Object, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, object, field, message)
    }

    pub fn warning(object: &Object, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, object, field, message)
    }

    /// Kubernetes' phrase for a value that is not allowed: `Invalid value: "x": <what is right>`.
    pub fn invalid(object: &Object, field: impl Into<String>, value: &Value, right: &str) -> Self {
        Self::error(object, field, format!("Invalid value: {value}: {right}"))
    }

    /// Kubernetes' phrase for a value outside an enumeration.
    pub fn unsupported(
        object: &Object,
        field: impl Into<String>,
        value: &str,
        supported: &[&str],
    ) -> Self {
        let known: Vec<String> = supported.iter().map(|word| format!("{word:?}")).collect();
        let known = known.join(", ");
        Self::error(
            object,
            field,
            format!("Unsupported value: {value:?}: supported values: {known}"),
        )
    }

    /// Kubernetes' phrase for a field that must be there.
    pub fn required(object: &Object, field: impl Into<String>, why: &str) -> Self {
        let separator = if why.is_empty() { "" } else { ": " };
        Self::error(object, field, format!("Required value{separator}{why}"))
    }

    fn new(
        severity: Severity,
        object: &Object,
        field: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        let key = object.key().clone();
        let name =
            format!("{}/{}/{}/{}", object.api_version(), key.kind.kind, key.namespace, key.name);
        Self { severity, object: name, key, field: field.into(), message: message.into() }
    }
}

impl Serialize for Severity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        })
    }
}
