//! Structural schemas: what a CRD promises about its objects, as code that checks, defaults
//! and prunes JSON the way a Kubernetes API server does.

use serde_json::Value;

use crate::object::GroupKind;

/// One field that breaks its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Dotted path with indices, e.g. `spec.compartments[0].budget.percent`.
    pub field: String,
    /// In the API server's words, with the value at fault.
    pub message: String,
}

/// The compiled schema of one version of one kind.
#[derive(Debug)]
pub struct Schema {}

impl Schema {
    /// Every rule that `value` breaks: types, bounds, enums, patterns, required fields, list
    /// types and CEL rules. `old` is the stored object on update, for transition rules.
    pub fn validate(&self, _value: &Value, _old: Option<&Value>) -> Vec<FieldError> {
        Vec::new()
    }

    /// Fills in the schema's defaults.
    pub fn default(&self, _value: &mut Value) {}

    /// Drops fields that the schema does not know and does not preserve.
    pub fn prune(&self, _value: &mut Value) {}
}

/// The schema of a kind that Convoy defines, in one of its served versions.
pub fn of(_kind: &GroupKind, _version: &str) -> Option<&'static Schema> {
    None
}
