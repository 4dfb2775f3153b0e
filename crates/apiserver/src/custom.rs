//! What a `CustomResourceDefinition` says about one served version of its kind.

use convoy_api::schema::Schema;
use serde_json::Value;
use smol_str::SmolStr;

use crate::shape::{ShapeId, Shapes};

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
    pub defaults_since: u64,
    pub schema: Schema,
    /// The `openAPIV3Schema` as it was written, for OpenAPI.
    pub open_api: Value,
    pub shapes: Shapes,
    pub shape: ShapeId,
    pub has_status: bool,
    /// Paths of the scale sub-resource.
    pub scale: Option<Scale>,
    pub columns: Vec<Column>,
    /// JSON paths that field selectors may name, without the leading dot.
    pub selectable_fields: Vec<SmolStr>,
    /// Being deleted: nothing new may be created.
    pub terminating: bool,
    pub deprecation_warning: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Scale {
    pub spec_replicas: String,
    pub status_replicas: String,
    pub label_selector: Option<String>,
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
