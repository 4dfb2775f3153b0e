//! The names that schemas are published under.

use smol_str::SmolStr;

use super::{custom, schemas};
use crate::registry::{Resource, api_version};

/// The name under which a resource's kind is published.
pub(super) fn schema_name(resource: &Resource) -> String {
    kind_schema_name(resource, &resource.group, &resource.version, &resource.kind)
}

/// The name under which another kind that a resource deals with is published.
pub(super) fn kind_schema_name(
    resource: &Resource,
    group: &SmolStr,
    version: &SmolStr,
    kind: &SmolStr,
) -> String {
    if resource.custom.is_some() && *group == resource.group {
        return custom::schema_name(group, version, kind);
    }
    schemas::schema_name(&api_version(group, version), kind).unwrap_or_default()
}
