//! What a `CustomResourceDefinition` says about one served version of its kind.

mod form;
mod ratchet;
mod scale;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use convoy_api::schema::FieldError;
use convoy_store::Revision;
use jiff::Timestamp;
use serde_json::Value;
use smol_str::SmolStr;

use crate::encoding;
use crate::hook_client;
use crate::object_meta::Entry;

pub use form::CustomForm;
pub use scale::Scale;

/// One served version of a custom kind, compiled.
#[derive(Debug)]
pub struct Custom {
    /// The definition's name, `plural.group`.
    pub definition: SmolStr,
    /// `group/version` of this version.
    pub api_version: SmolStr,
    /// The version that objects are stored in.
    pub storage_version: SmolStr,
    /// Objects that were written before this revision may lack defaults of the schema.
    pub(crate) defaults_since: AtomicU64,
    /// When every request is over that may still write by an older schema; none if there is
    /// nothing to wait for, or no end to it.
    pub(crate) defaults_settle_at: Option<Timestamp>,
    /// What the schema says; shared by all clusters that have it.
    pub form: Arc<CustomForm>,
    /// Who converts from and to other versions.
    pub(crate) conversion: Option<Conversion>,
    pub has_status: bool,
    /// Paths of the scale sub-resource.
    pub scale: Option<Scale>,
    /// Empty if the definition names none: then the age is shown.
    pub columns: Vec<Column>,
    /// JSON paths that field selectors may name, without the leading dot.
    pub selectable_fields: Vec<SmolStr>,
    /// Being deleted: nothing new may be created.
    pub terminating: bool,
    /// The deprecation warning of this version.
    pub deprecation_warning: Option<String>,
}

/// Who converts between the versions of a kind.
#[derive(Debug)]
pub(crate) struct Conversion {
    pub(crate) client: hook_client::Client,
}

impl Conversion {
    /// What a definition says; none where versions differ by their name alone.
    pub(crate) fn of(definition: &Value) -> Option<Self> {
        let conversion = &definition["spec"]["conversion"];
        let is_asked = conversion["strategy"] == "Webhook";
        is_asked.then(|| Self {
            client: hook_client::Client::new(&conversion["webhook"]["clientConfig"]),
        })
    }
}

/// What is wrong with an object.
#[derive(Debug)]
pub(crate) struct Judged {
    pub errors: Vec<FieldError>,
    /// Rules that the object before it broke in the same places: worth a warning.
    pub tolerated: Vec<FieldError>,
}

/// A column of `kubectl get`.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub kind: String,
    pub format: String,
    pub description: String,
    pub priority: i64,
    pub json_path: String,
}

impl Custom {
    /// Whether an object that was written at `revision` surely has the schema's defaults.
    pub fn has_defaults_at(&self, revision: Revision) -> bool {
        revision.0 >= self.defaults_since.load(Ordering::Relaxed)
    }

    /// Whether an object is stored in the version that requests for this one see it in.
    pub(crate) fn is_in_version(&self, entry: &Entry) -> bool {
        self.conversion.is_none() || encoding::api_version(entry) == self.api_version.as_bytes()
    }

    /// Every rule that an object, pruned and defaulted, breaks. What was stored before a rule
    /// came may stay as it is: only what a write changes must keep to the rule.
    pub(crate) fn validate(&self, object: &Value, old: Option<&Value>) -> Judged {
        let mut errors = self.form.schema.validate_values(object, old);
        if let Some(scale) = &self.scale {
            errors.extend(scale.validate(object));
        }
        if let Some(old) = old.filter(|_| !errors.is_empty()) {
            errors = ratchet::keep_new(&self.form, errors, object, old).0;
        }
        // Asked about what is left: a value that was wrong before is in nobody's way.
        let rules = self.form.schema.validate_rules(object, old, &errors);
        let (new, tolerated) = match old {
            Some(old) if !rules.is_empty() => ratchet::keep_new(&self.form, rules, object, old),
            _ => (rules, Vec::new()),
        };
        errors.extend(new);
        Judged { errors, tolerated }
    }
}
