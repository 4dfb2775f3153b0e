//! Claims for devices, and their templates: one device of a class, unless the request says.

use serde_json::{Value, json};

use super::fill::{self, Fields};
use super::kind::Kind;
use crate::column::Cell::{Made, Text};
use crate::column::{AGE, Column, NAME, NAME_AND_AGE, Row, string};
use crate::registry::Resource;

pub(super) struct DeviceClaim;

impl Kind for DeviceClaim {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        if let Some(spec) = fill::spec(object) {
            claim(spec);
        }
    }

    fn columns(&self) -> &'static [Column] {
        const { &[NAME, string("State", Made(state)), AGE] }
    }
}

pub(super) struct DeviceClaimTemplate;

impl Kind for DeviceClaimTemplate {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        let template = fill::spec(object);
        if let Some(spec) = template.and_then(|template| fill::fields(template.get_mut("spec"))) {
            claim(spec);
        }
    }

    fn columns(&self) -> &'static [Column] {
        NAME_AND_AGE
    }
}

pub(super) struct DeviceClass;

impl Kind for DeviceClass {
    fn columns(&self) -> &'static [Column] {
        NAME_AND_AGE
    }
}

/// Devices that a driver offers.
pub(super) struct DeviceSlice;

impl Kind for DeviceSlice {
    fn columns(&self) -> &'static [Column] {
        const {
            &[
                NAME,
                string("Node", Text("/spec/nodeName", "")),
                string("Driver", Text("/spec/driver", "")),
                string("Pool", Text("/spec/pool/name", "")),
                AGE,
            ]
        }
    }
}

fn state(row: &Row<'_>) -> Value {
    let is_allocated = row.object["status"]["allocation"].is_object();
    let is_reserved = is_allocated && row.items("/status/reservedFor").next().is_some();
    let states = [
        (row.is_deleting(), "deleted"),
        (!is_allocated && !row.is_deleting(), "pending"),
        (is_allocated, "allocated"),
        (is_reserved, "reserved"),
    ];
    let states: Vec<&str> = states.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
    json!(states.join(","))
}

fn claim(spec: &mut Fields) {
    let Some(devices) = fill::fields(spec.get_mut("devices")) else { return };
    fill::each(devices.get_mut("requests"), |request| {
        if let Some(exactly) = fill::fields(request.get_mut("exactly")) {
            amount(exactly);
        }
        fill::each(request.get_mut("firstAvailable"), amount);
    });
}

fn amount(request: &mut Fields) {
    fill::text(request, "allocationMode", "ExactCount");
    if fill::given(request, "allocationMode") == "ExactCount" {
        fill::number(request, "count", 1);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::TestServer;

    #[test]
    fn a_request_is_for_one_device_unless_it_says() {
        let test = TestServer::with_namespace();
        let requests = json!([{"name": "a", "exactly": {"deviceClassName": "gold"}},
            {"name": "b", "firstAvailable": [{"name": "x", "deviceClassName": "gold", "count": 2},
                {"name": "y", "deviceClassName": "gold", "allocationMode": "All"}]}]);
        let spec = json!({"devices": {"requests": requests}});
        let path = "/apis/resource.k8s.io/v1/namespaces/default";
        let claim = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": "a"}, "spec": spec});
        let claim = test.create(&format!("{path}/resourceclaims"), &claim);
        let template = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
            "metadata": {"name": "a"}, "spec": {"spec": spec}});
        let template = test.create(&format!("{path}/resourceclaimtemplates"), &template);
        for spec in [&claim["spec"], &template["spec"]["spec"]] {
            let requests = &spec["devices"]["requests"];
            assert_eq!(requests[0]["exactly"]["allocationMode"], "ExactCount");
            assert_eq!(requests[0]["exactly"]["count"], 1);
            assert_eq!(requests[1]["firstAvailable"][0]["count"], 2);
            assert!(requests[1]["firstAvailable"][1].get("count").is_none(), "{requests}");
        }
    }
}
