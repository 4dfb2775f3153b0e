//! The document of one group and version.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::names::schema_name;
use super::{custom, operations, schemas};
use crate::discovery::kind_of;
use crate::registry::{Registry, Resource, api_version};

/// All paths of a group and version with the schemas that they mention.
pub(super) fn of(registry: &Registry, group: &str, version: &str) -> Value {
    let resources =
        || registry.group_version(group, version).into_iter().flat_map(BTreeMap::values);
    let mut paths = Map::new();
    for resource in resources() {
        operations::add_paths(resource, &mut paths);
    }
    let mut components = schemas::Schemas::default();
    for resource in resources() {
        add_schemas(resource, &mut components);
    }
    let mut schemas = components.finish(group, version);
    for resource in resources() {
        if let Some(definition) = &resource.custom {
            custom::add_schemas(resource, &definition.form.open_api(), &mut schemas);
        }
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": format!("v1.{}.0", crate::version::MINOR)},
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

/// What the operations of a resource refer to, apart from a custom kind's own schema.
fn add_schemas(resource: &Resource, components: &mut schemas::Schemas) {
    components.add_common();
    if resource.custom.is_none() {
        components.add_kind(&resource.api_version(), &resource.kind);
        if resource.has_verb("list") {
            components.add_list(&schema_name(resource), resource);
        }
    }
    for part in &resource.subresources {
        let (group, version, kind) = kind_of(resource, part);
        if kind != resource.kind {
            components.add_kind(&api_version(&group, &version), &kind);
        }
    }
}
