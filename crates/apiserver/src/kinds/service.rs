//! Services: addresses and ports that the server hands out, and what an update may change.

mod allocate;
mod change;
pub(super) mod columns;
mod defaults;
mod range;
mod rules;

pub(super) use allocate::{companions, prepare_create, prepare_update};
pub(super) use rules::validate;

use super::at::Errors;
use super::kind::{Change, Kind};
use crate::column::Column;
use crate::object_meta::{Entry, ObjectMeta};
use crate::registry::Resource;
use crate::resource_request::ResourceRequest;
use crate::status::ApiResult;
use convoy_api::text::Name;
use convoy_store::Write;
use serde_json::Value;

pub(super) struct Service;

impl Kind for Service {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::service(object);
    }

    fn prepare_create(&self, request: &ResourceRequest, object: &mut Value) -> ApiResult<()> {
        prepare_create(request, object)
    }

    fn prepare_update(
        &self,
        request: &ResourceRequest,
        object: &mut Value,
        current: &Value,
    ) -> ApiResult<()> {
        prepare_update(request, object, current)
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        validate(change.object, change.old)
    }

    fn has_companions(&self) -> bool {
        true
    }

    fn companions(
        &self,
        request: &ResourceRequest,
        object: Option<&Value>,
        current: Option<&Entry>,
    ) -> Vec<Write<ObjectMeta>> {
        companions(request, object, current)
    }

    fn name_errors(&self, _object: &Value, name: &str) -> Vec<String> {
        Name::Dns1123Label.errors(name)
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &["spec.clusterIP", "spec.type"]
    }

    fn columns(&self) -> &'static [Column] {
        columns::COLUMNS
    }
}

#[cfg(test)]
mod tests;

fn kind(service: &Value) -> &str {
    service["spec"]["type"].as_str().unwrap_or("ClusterIP")
}

fn needs_address(service: &Value) -> bool {
    matches!(kind(service), "ClusterIP" | "NodePort" | "LoadBalancer")
}

fn is_headless(service: &Value) -> bool {
    service["spec"]["clusterIP"] == "None"
}

fn needs_node_ports(service: &Value) -> bool {
    match kind(service) {
        "NodePort" => true,
        "LoadBalancer" => service["spec"]["allocateLoadBalancerNodePorts"] != Value::Bool(false),
        _ => false,
    }
}

fn needs_health_check(service: &Value) -> bool {
    kind(service) == "LoadBalancer" && service["spec"]["externalTrafficPolicy"] == "Local"
}

fn is_public(service: &Value) -> bool {
    let has_external =
        service["spec"]["externalIPs"].as_array().is_some_and(|list| !list.is_empty());
    match kind(service) {
        "NodePort" | "LoadBalancer" => true,
        "ClusterIP" => has_external,
        _ => false,
    }
}

fn port_number(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|number| u16::try_from(number).ok()).filter(|number| *number != 0)
}

fn is_blank(value: &Value) -> bool {
    value.as_str().is_none_or(str::is_empty)
}
