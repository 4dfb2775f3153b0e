//! What an object uses of quotas, and which writes change that.

use std::collections::BTreeMap;

use convoy_api::well_known::annotation::STORAGE_CLASS;
use jiff::Timestamp;
use serde_json::Value;
use smol_str::{SmolStr, format_smolstr};

use super::amount::Amount;
use super::names::{
    CLAIMS, DEVICE_CLAIMS, PODS, SERVICES, of_device_class, of_storage_class, resource_of,
};
use super::{QuotaRequest, Usage, pods, scope};

/// Devices that a request for all of them is charged with: one allocation has no more.
const DEVICES_MAX: i64 = 32;

/// Whether a write may change what its object uses.
pub(super) fn is_charged(request: &QuotaRequest<'_>) -> bool {
    let QuotaRequest { resource, subresource, object, old } = *request;
    match (resource, subresource) {
        // Events come and go by themselves.
        ("events" | "events.events.k8s.io", _) => false,
        (PODS, "") => old.is_none_or(|old| scope::has_deadline(old) != scope::has_deadline(object)),
        (PODS, "resize") => old.is_some(),
        (CLAIMS, "status") => old.is_some_and(|old| claim_differs(old, object)),
        (SERVICES | CLAIMS | DEVICE_CLAIMS, "") => true,
        (_, "") => old.is_none(),
        _ => false,
    }
}

/// Whether an object uses less than before, or something else, so that usage has to be counted
/// again.
pub fn releases(resource: &str, before: &Value, after: &Value, now: Timestamp) -> bool {
    match resource {
        PODS => {
            pods::is_live(before, now) && !pods::is_live(after, now)
                || scope::has_deadline(before) != scope::has_deadline(after)
                || before["spec"]["containers"] != after["spec"]["containers"]
        }
        SERVICES | DEVICE_CLAIMS => before["spec"] != after["spec"],
        CLAIMS => before["spec"] != after["spec"] || claim_differs(before, after),
        _ => false,
    }
}

fn claim_differs(before: &Value, after: &Value) -> bool {
    let allocated = |claim: &Value| claim["status"]["allocatedResources"]["storage"].clone();
    allocated(before) != allocated(after)
        || scope::attributes_classes(before) != scope::attributes_classes(after)
}

/// What an object of a resource uses.
pub(super) fn of(resource: &str, object: &Value, now: Timestamp) -> Usage {
    match resource {
        PODS => pods::usage(object, now),
        SERVICES => service(object),
        CLAIMS => volume_claim(object),
        DEVICE_CLAIMS => device_claim(object),
        _ => counted(resource),
    }
}

/// One object, under the name of its resource and the older one that some have.
fn counted(resource: &str) -> Usage {
    let names = [format_smolstr!("count/{resource}"), SmolStr::new(resource)];
    let known = names.into_iter().filter(|name| resource_of(name) == Some(resource));
    known.map(|name| (name, Amount::of_units(1))).collect()
}

fn service(service: &Value) -> Usage {
    let spec = &service["spec"];
    let ports = || spec["ports"].as_array().into_iter().flatten();
    let chosen = || ports().filter(|port| port["nodePort"].as_i64().unwrap_or(0) != 0);
    let (node_ports, balancers) = match spec["type"].as_str() {
        Some("NodePort") => (ports().count(), 0),
        Some("LoadBalancer") if spec["allocateLoadBalancerNodePorts"] == false => {
            (chosen().count(), 1)
        }
        Some("LoadBalancer") => (ports().count(), 1),
        _ => (0, 0),
    };
    let mut usage = counted("services");
    let node_ports = i64::try_from(node_ports).unwrap_or(i64::MAX);
    usage.insert(SmolStr::new("services.nodeports"), Amount::of_units(node_ports));
    usage.insert(SmolStr::new("services.loadbalancers"), Amount::of_units(balancers));
    usage
}

fn volume_claim(claim: &Value) -> Usage {
    let annotated = &claim["metadata"]["annotations"][STORAGE_CLASS];
    let class = annotated.as_str().or_else(|| claim["spec"]["storageClassName"].as_str());
    let class = class.filter(|class| !class.is_empty());
    let mut usage = counted(CLAIMS);
    let requested = Amount::read(&claim["spec"]["resources"]["requests"]["storage"]);
    if let Some(requested) = requested {
        let allocated = Amount::read(&claim["status"]["allocatedResources"]["storage"]);
        let storage = allocated.filter(|allocated| *allocated > requested).unwrap_or(requested);
        usage.insert(SmolStr::new("requests.storage"), storage.rounded_up());
    }
    if let Some(class) = class {
        for name in [CLAIMS, "requests.storage"] {
            if let Some(amount) = usage.get(name).copied() {
                usage.insert(SmolStr::from(of_storage_class(class, name)), amount);
            }
        }
    }
    usage
}

/// A claim for devices is charged with the most that its requests may come to, by class.
fn device_claim(claim: &Value) -> Usage {
    let devices = |request: &Value| match request["allocationMode"].as_str() {
        Some("All") => DEVICES_MAX,
        Some("ExactCount") => request["count"].as_i64().unwrap_or(0),
        _ => 0,
    };
    let class = |request: &Value| {
        SmolStr::from(of_device_class(request["deviceClassName"].as_str().unwrap_or_default()))
    };
    let mut usage = counted(DEVICE_CLAIMS);
    for request in claim["spec"]["devices"]["requests"].as_array().into_iter().flatten() {
        let mut most: BTreeMap<SmolStr, i64> = BTreeMap::new();
        let choices = request["firstAvailable"].as_array();
        let exactly = request.get("exactly").filter(|_| choices.is_none_or(Vec::is_empty));
        for choice in choices.into_iter().flatten().chain(exactly) {
            let known = most.entry(class(choice)).or_default();
            *known = devices(choice).max(*known);
        }
        let most: Usage =
            most.into_iter().map(|(name, count)| (name, Amount::of_units(count))).collect();
        super::add(&mut usage, &most);
    }
    usage
}
