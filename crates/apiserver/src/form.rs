//! The form of a resource's objects, wherever it is described.

use crate::registry::Resource;
use crate::shape::{Shape, untyped};
use crate::types;

pub fn shape_of(resource: &Resource) -> Shape<'_> {
    match &resource.custom {
        Some(custom) => custom.form.shape(),
        None => builtin(&resource.api_version(), &resource.kind),
    }
}

/// The form of one of Kubernetes' own kinds.
pub fn builtin(api_version: &str, kind: &str) -> Shape<'static> {
    types::shape_of(api_version, kind).unwrap_or_else(untyped)
}
