//! Cluster addresses and node ports. Each one that is taken is an object of its own, written in
//! one transaction with its service: two services can never have the same, whoever is faster,
//! and what a service gives up is free the moment it does.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use convoy_api::schema::FieldError;
use convoy_store::{Expect, Key, Shelf, Write};
use serde_json::{Value, json};

use super::change::{drop_dependent, keep_allocated, settle_addresses};
use super::range::Range;
use super::{
    is_blank, is_headless, needs_address, needs_health_check, needs_node_ports, port_number,
};
use crate::metadata;
use crate::object_meta::{Entry, ObjectMeta, Snapshot};
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};
use crate::surroundings::{new_uid, seconds};

const NODE_PORTS: std::ops::RangeInclusive<u16> = 30_000..=32_767;

/// Taken node ports, by number. No client sees this shelf.
const PORT_SHELF: &str = "ranges/servicenodeports";

/// One thing that no two services share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    Address(String),
    Port(u16),
}

pub(in crate::kinds) fn prepare_create(
    request: &ResourceRequest,
    service: &mut Value,
) -> ApiResult<()> {
    let spec = &mut service["spec"];
    let is_given = !is_blank(&spec["clusterIP"]);
    if is_given && spec["clusterIPs"].as_array().is_none_or(Vec::is_empty) {
        spec["clusterIPs"] = json!([spec["clusterIP"]]);
    }
    allocate(request, service, &BTreeSet::new())
}

pub(in crate::kinds) fn prepare_update(
    request: &ResourceRequest,
    service: &mut Value,
    current: &Value,
) -> ApiResult<()> {
    if !request.target.subresource.is_empty() {
        return Ok(());
    }
    settle_addresses(service, current);
    keep_allocated(service, current);
    drop_dependent(service, current);
    allocate(request, service, &claims(current))
}

/// What has to be written and deleted together with a service, so that nobody else gets what it
/// has. `service` is none when it goes.
pub(in crate::kinds) fn companions(
    request: &ResourceRequest,
    service: Option<&Value>,
    current: Option<&Entry>,
) -> Vec<Write<ObjectMeta>> {
    let current = current.map(|entry| request.read(entry));
    let wanted = service.map(claims).unwrap_or_default();
    let held = current.as_ref().map(claims).unwrap_or_default();
    let snapshot = request.server.store.snapshot();
    let owner = service.or(current.as_ref()).unwrap_or(&Value::Null);
    let mut writes: Vec<Write<ObjectMeta>> = Vec::new();
    for claim in wanted.difference(&held) {
        let value = crate::encoding::stored(&claim.object(request, owner));
        writes.push(Write::put(claim.key(request), Expect::Absent, value));
    }
    for claim in held.difference(&wanted) {
        if let Some(entry) = snapshot.get(&claim.key(request)) {
            writes.push(Write::delete(entry.key.clone(), entry.modified));
        }
    }
    writes
}

/// Everything that a service has for itself.
fn claims(service: &Value) -> BTreeSet<Claim> {
    let spec = &service["spec"];
    let mut claims = BTreeSet::new();
    if needs_address(service) && !is_headless(service) {
        let addresses = spec["clusterIPs"].as_array().into_iter().flatten();
        claims.extend(
            addresses.filter_map(Value::as_str).map(|address| Claim::Address(address.to_owned())),
        );
    }
    let ports = spec["ports"].as_array().into_iter().flatten().map(|port| &port["nodePort"]);
    let numbers = ports.chain([&spec["healthCheckNodePort"]]).filter_map(port_number);
    claims.extend(numbers.map(Claim::Port));
    claims
}

/// Hands out what the service needs and does not have; refuses what somebody else has.
fn allocate(
    request: &ResourceRequest,
    service: &mut Value,
    held: &BTreeSet<Claim>,
) -> ApiResult<()> {
    let snapshot = request.server.store.snapshot();
    if needs_address(service) {
        families(request, service)?;
        if !is_headless(service) {
            address(request, &snapshot, service, held)?;
        }
    }
    if needs_node_ports(service) {
        node_ports(request, &snapshot, service, held)?;
    }
    if needs_health_check(service)
        && service["spec"]["healthCheckNodePort"].as_i64().unwrap_or(0) == 0
    {
        let taken: BTreeSet<u16> = service["spec"]["ports"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|port| port_number(&port["nodePort"]))
            .collect();
        let number = free_port(request, &snapshot, &taken)?;
        service["spec"]["healthCheckNodePort"] = json!(number);
    }
    Ok(())
}

/// This cluster has addresses of one family.
fn families(request: &ResourceRequest, service: &mut Value) -> ApiResult<()> {
    let is_unselective = is_headless(service)
        && service["spec"]["selector"].as_object().is_none_or(serde_json::Map::is_empty);
    let name = metadata::text(service, "name").to_owned();
    let spec = &mut service["spec"];
    if spec["ipFamilyPolicy"].is_null() {
        spec["ipFamilyPolicy"] =
            json!(if is_unselective { "RequireDualStack" } else { "SingleStack" });
    }
    let has_families = spec["ipFamilies"].as_array().is_some_and(|list| !list.is_empty());
    if is_unselective {
        if !has_families {
            spec["ipFamilies"] = json!(["IPv4"]);
        }
        let is_single = spec["ipFamilyPolicy"] == "SingleStack";
        if let Some(list) = spec["ipFamilies"].as_array_mut()
            && !is_single
            && list.len() < 2
        {
            let other = if list[0] == "IPv4" { "IPv6" } else { "IPv4" };
            list.push(json!(other));
        }
        return Ok(());
    }
    let mut errors = Vec::new();
    if spec["ipFamilyPolicy"] == "RequireDualStack" {
        let detail = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid("spec.ipFamilyPolicy", &spec["ipFamilyPolicy"], detail));
    }
    for (index, family) in spec["ipFamilies"].as_array().into_iter().flatten().enumerate() {
        if family == "IPv6" {
            let field = format!("spec.ipFamilies[{index}]");
            errors.push(FieldError::invalid(&field, family, "not configured on this cluster"));
        }
    }
    if !errors.is_empty() {
        return Err(Status::invalid(&request.resource, &name, &errors));
    }
    if !has_families {
        spec["ipFamilies"] = json!(["IPv4"]);
    }
    Ok(())
}

fn address(
    request: &ResourceRequest,
    snapshot: &Snapshot,
    service: &mut Value,
    held: &BTreeSet<Claim>,
) -> ApiResult<()> {
    let name = metadata::text(service, "name").to_owned();
    let range = Range::of(request, snapshot);
    let given = &service["spec"]["clusterIPs"][0];
    let Some(given) = given.as_str().filter(|text| !text.is_empty()) else {
        let Some(free) = range.free(request, |address| {
            snapshot.get(&Claim::Address(address.to_owned()).key(request)).is_some()
        }) else {
            let detail = "failed to allocate IP: range is full";
            let shown = json!(null);
            let error = FieldError::invalid("spec.clusterIPs", &shown, detail);
            return Err(Status::invalid(&request.resource, &name, &[error]));
        };
        service["spec"]["clusterIP"] = json!(free);
        service["spec"]["clusterIPs"] = json!([free]);
        return Ok(());
    };
    let claim = Claim::Address(given.to_owned());
    // What is no address is refused by the rules that follow.
    let Ok(parsed) = given.parse::<Ipv4Addr>() else { return Ok(()) };
    if held.contains(&claim) {
        return Ok(());
    }
    let why = if !range.contains(parsed) {
        Some(format!(
            "the provided IP ({given}) is not in the valid range. The range of valid IPs is {range}"
        ))
    } else if snapshot.get(&claim.key(request)).is_some() {
        Some("provided IP is already allocated".to_owned())
    } else {
        None
    };
    let Some(why) = why else { return Ok(()) };
    let detail = format!("failed to allocate IP {given}: {why}");
    let shown = service["spec"]["clusterIPs"].clone();
    let error = FieldError::invalid("spec.clusterIPs", &shown, &detail);
    Err(Status::invalid(&request.resource, &name, &[error]))
}

fn node_ports(
    request: &ResourceRequest,
    snapshot: &Snapshot,
    service: &mut Value,
    held: &BTreeSet<Claim>,
) -> ApiResult<()> {
    let name = metadata::text(service, "name").to_owned();
    let Some(ports) = service["spec"]["ports"].as_array_mut() else { return Ok(()) };
    let mut taken: BTreeSet<u16> =
        ports.iter().filter_map(|port| port_number(&port["nodePort"])).collect();
    for (index, port) in ports.iter_mut().enumerate() {
        let given = port["nodePort"].as_i64().unwrap_or(0);
        if given != 0 && port_number(&port["nodePort"]).is_none() {
            return Err(out_of_range(request, &name, index, given));
        }
        let Some(number) = port_number(&port["nodePort"]) else {
            let number = free_port(request, snapshot, &taken)?;
            taken.insert(number);
            port["nodePort"] = json!(number);
            continue;
        };
        let claim = Claim::Port(number);
        if held.contains(&claim) {
            continue;
        }
        if !NODE_PORTS.contains(&number) {
            return Err(out_of_range(request, &name, index, given));
        }
        if snapshot.get(&claim.key(request)).is_some() {
            let detail = "provided port is already allocated";
            return Err(bad_port(request, &name, index, given, detail));
        }
    }
    Ok(())
}

fn out_of_range(request: &ResourceRequest, name: &str, index: usize, given: i64) -> Box<Status> {
    let detail = format!(
        "provided port is not in the valid range. The range of valid ports is {}-{}",
        NODE_PORTS.start(),
        NODE_PORTS.end()
    );
    bad_port(request, name, index, given, &detail)
}

fn bad_port(
    request: &ResourceRequest,
    name: &str,
    index: usize,
    given: i64,
    detail: &str,
) -> Box<Status> {
    let field = format!("spec.ports[{index}].nodePort");
    let error = FieldError::invalid(&field, &json!(given), detail);
    Status::invalid(&request.resource, name, &[error])
}

fn free_port(
    request: &ResourceRequest,
    snapshot: &Snapshot,
    taken: &BTreeSet<u16>,
) -> ApiResult<u16> {
    let count = NODE_PORTS.end() - NODE_PORTS.start() + 1;
    let random = request.server.surroundings.random();
    let start = u16::from_be_bytes([random[0], random[1]]) % count;
    let mut candidates = (0..count).map(|step| NODE_PORTS.start() + (start + step) % count);
    candidates
        .find(|port| {
            !taken.contains(port) && snapshot.get(&Claim::Port(*port).key(request)).is_none()
        })
        .ok_or_else(|| Status::internal("failed to allocate a nodePort: range is full"))
}

impl Claim {
    fn key(&self, request: &ResourceRequest) -> Key {
        match self {
            Self::Address(address) => {
                let resource = request.registry.get("networking.k8s.io", "v1", "ipaddresses");
                let shelf = request.cluster.shelf(resource.expect("a built-in resource"));
                shelf.key("", address)
            }
            Self::Port(number) => {
                Shelf::new(&request.cluster.name, PORT_SHELF).key("", &number.to_string())
            }
        }
    }

    /// What is stored for the claim: for addresses an object that clients know.
    fn object(&self, request: &ResourceRequest, service: &Value) -> Value {
        let parent = json!({"resource": "services",
            "namespace": metadata::text(service, "namespace"),
            "name": metadata::text(service, "name")});
        match self {
            Self::Address(address) => {
                let mut object = json!({
                    "kind": "IPAddress", "apiVersion": "networking.k8s.io/v1",
                    "metadata": {
                        "name": address,
                        "uid": new_uid(&*request.server.surroundings),
                        "creationTimestamp": seconds(request.server.now()),
                        "labels": {
                            "ipaddress.kubernetes.io/ip-family": "IPv4",
                            "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
                        },
                    },
                    "spec": {"parentRef": parent},
                });
                let shape = crate::form::builtin("networking.k8s.io/v1", "IPAddress");
                crate::canonical::canonicalise(shape, &mut object);
                object
            }
            Self::Port(number) => json!({
                "kind": "ServiceNodePort", "apiVersion": "v1",
                "metadata": {"name": number.to_string()},
                "spec": {"parentRef": parent},
            }),
        }
    }
}
