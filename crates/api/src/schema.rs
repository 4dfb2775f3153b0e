//! Structural schemas: what a CRD promises about its objects, as code that checks, defaults
//! and prunes JSON the way a Kubernetes API server does, in its words.
//!
//! A [`Schema`] is compiled once per version of a kind. [`of`] finds those of the kinds that
//! Convoy defines; an API server compiles the ones that users bring.

mod checked;
mod declared;
mod defaulting;
mod embedded;
mod error;
mod format;
pub mod go;
mod lists;
mod node;
mod numbers;
mod pruning;
mod registry;
mod rule;
mod rules;
mod structural;
mod typed;
mod values;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use serde_json::Value;

pub use error::{FieldError, Reason};
pub use registry::{crds, kinds, of, served_versions};
pub use structural::structural_errors;
pub use typed::escaped;

use crate::size::{SizeBudget, TooLarge};
pub use crate::text::similar::UnknownField;
use node::Node;

/// The compiled schema of one version of one kind.
#[derive(Debug)]
pub struct Schema {
    root: Node,
}

/// What a schema has to say about an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Review {
    pub errors: Vec<FieldError>,
    /// The fields that an API server drops.
    pub unknown_fields: Vec<UnknownField>,
}

impl Schema {
    pub fn new(schema: &JSONSchemaProps) -> Self {
        Self::from_json(&serde_json::to_value(schema).unwrap_or_default())
    }

    /// Compiles the JSON of an `openAPIV3Schema`. What cannot be understood says nothing about
    /// values; an API server refuses such schemas before it gets here.
    pub fn from_json(schema: &Value) -> Self {
        Self { root: Node::compile(schema) }
    }

    /// Every rule that `value` breaks: types, bounds, enums, patterns, required fields, list
    /// types and CEL rules. `old` is the stored object on update, for transition rules.
    ///
    /// As in an API server the answer is about the object as it would be stored: unknown
    /// fields dropped, defaults filled in.
    pub fn validate(&self, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut stored = value.clone();
        self.prune(&mut stored);
        self.default(&mut stored);
        let old = old.map(|old| {
            let mut old = old.clone();
            self.prune(&mut old);
            self.default(&mut old);
            old
        });
        self.validate_stored(&stored, old.as_ref())
    }

    /// Everything that people should know about a new object: fields that would not be stored, with
    /// those that were probably meant, and every rule that it breaks. An API server leaves its CEL
    /// rules aside while values have other errors; here such errors hide only the rules that cannot
    /// be evaluated because of them.
    pub fn review(&self, value: &Value) -> Review {
        let mut stored = value.clone();
        let unknown_fields = pruning::prune_and_suggest(&self.root, &mut stored);
        self.default(&mut stored);
        let mut errors = self.validate_values(&stored, None);
        if errors.iter().any(|error| error.reason.blocks_rules()) {
            errors.extend(rules::broken_rules(&self.root, &stored));
        } else {
            errors.extend(rules::validate(&self.root, &stored, None));
        }
        Review { errors, unknown_fields }
    }

    /// [`Schema::validate`] for an object that is pruned and defaulted already.
    pub fn validate_stored(&self, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = self.validate_values(value, old);
        errors.extend(self.validate_rules(value, old, &errors));
        errors
    }

    /// What an object, pruned and defaulted, breaks of the schema itself, without its rules.
    pub fn validate_values(&self, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = values::validate(&self.root, value);
        errors.extend(embedded::validate(&self.root, value));
        if old.is_none_or(|old| lists::validate(&self.root, old).is_empty()) {
            errors.extend(lists::validate(&self.root, value));
        }
        errors
    }

    /// The rules that such an object breaks; that they were not asked, if one of the errors about
    /// its values is in their way.
    pub fn validate_rules(
        &self,
        value: &Value,
        old: Option<&Value>,
        errors: &[FieldError],
    ) -> Vec<FieldError> {
        if !self.root.has_rules {
            return Vec::new();
        }
        if errors.iter().any(|error| error.reason.blocks_rules()) {
            return vec![FieldError::rules_skipped()];
        }
        rules::validate(&self.root, value, old)
    }

    /// Fills in the schema's defaults, and drops nulls where null is no value. For schemas of
    /// Convoy's own kinds, whose defaults are known to be small.
    pub fn default(&self, value: &mut Value) {
        let filled = self.default_within(value, &mut SizeBudget::new(usize::MAX));
        filled.expect("no object has as many bytes as memory");
    }

    /// [`Schema::default`] for a schema and an object of anybody. What is added is charged to
    /// `budget`; if that does not suffice, defaults are missing.
    pub fn default_within(
        &self,
        value: &mut Value,
        budget: &mut SizeBudget,
    ) -> Result<(), TooLarge> {
        defaulting::drop_nulls(&self.root, value);
        defaulting::fill(&self.root, value, budget)
    }

    /// Drops fields that the schema does not know and does not preserve; returns their paths,
    /// in order.
    pub fn prune(&self, value: &mut Value) -> Vec<String> {
        pruning::prune(&self.root, value)
    }
}

#[cfg(test)]
mod tests;
