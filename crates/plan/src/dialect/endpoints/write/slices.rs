//! EndpointSlices: endpoints with the same ports and the same kind of address, a hundred to a
//! slice. An endpoint stays in the slice that it is in, so that a change is written to few.

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::kinds::ENDPOINT_SLICE;
use convoy_api::object::member::{list, text};
use serde_json::{Map, Value, json};

use super::object::{changed, own_labels};
use crate::dialect::endpoints::names::{
    HEADLESS, SERVICE_NAME, SLICE_CONTROLLER, SLICE_MANAGED_BY,
};
use crate::dialect::endpoints::read::{Backend, families, is_headless};
use crate::ownership;
use crate::pods::generated_name;
use crate::snapshot::Snapshot;
use crate::step::{Action, Propagation, Verb, Why};

/// Endpoints in one slice at most.
const SLICE_MAX: usize = 100;

/// Endpoints that may stand in one slice.
#[derive(Debug)]
pub(crate) struct Group {
    /// `IPv4` or `IPv6`.
    pub(crate) address_type: &'static str,
    pub(crate) ports: Vec<Value>,
    /// May be none: then one slice says so.
    pub(crate) endpoints: Vec<Value>,
}

/// Who the slices belong to, and what they say of themselves.
#[derive(Debug)]
pub(crate) struct Header<'o> {
    pub(crate) owner: &'o Object,
    pub(crate) labels: Map<String, Value>,
    pub(crate) annotations: Map<String, Value>,
}

/// The slices of a Service with a selector.
pub(crate) fn of_pods(snapshot: &Snapshot<'_>, backends: &[Backend<'_>]) -> Vec<Action> {
    let service = snapshot.rollout();
    let mut labels = own_labels(service);
    labels.shift_remove(HEADLESS);
    if is_headless(service) {
        labels.insert(HEADLESS.to_owned(), json!(""));
    }
    labels.insert(SERVICE_NAME.to_owned(), json!(service.name()));
    labels.insert(SLICE_MANAGED_BY.to_owned(), json!(SLICE_CONTROLLER));
    let header = Header { owner: service, labels, annotations: Map::new() };
    let groups = families(service).into_iter().flat_map(|family| grouped(family, backends));
    writes(&header, groups.collect(), &existing(snapshot, service, SLICE_CONTROLLER))
}

/// Pods by the ports that they have, in one family; at least one group.
fn grouped(family: &'static str, backends: &[Backend<'_>]) -> Vec<Group> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for backend in backends {
        let Some(address) = backend.address(family) else { continue };
        let ports = backend.ports();
        let group = groups.entry(json!(ports).to_string()).or_insert_with(|| Group {
            address_type: family,
            ports,
            endpoints: Vec::new(),
        });
        group.endpoints.push(backend.endpoint(address));
    }
    if groups.is_empty() {
        return vec![Group { address_type: family, ports: Vec::new(), endpoints: Vec::new() }];
    }
    groups.into_values().collect()
}

/// The slices that a controller made for an owner, and that stay.
pub(crate) fn existing<'o>(
    snapshot: &Snapshot<'o>,
    owner: &Object,
    controller: &str,
) -> Vec<&'o Object> {
    let slices = snapshot.of(&ENDPOINT_SLICE).iter().copied();
    let is_its = |slice: &&Object| {
        !slice.is_deleting()
            && slice.label(SLICE_MANAGED_BY) == Some(controller)
            && slice.owners().any(|reference| Some(reference.uid) == owner.uid())
    };
    slices.filter(is_its).collect()
}

/// What makes the slices say what the groups do.
pub(crate) fn writes(header: &Header<'_>, groups: Vec<Group>, existing: &[&Object]) -> Vec<Action> {
    let mut free = existing.to_vec();
    let mut wanted: Vec<(Option<&Object>, Shape)> = Vec::new();
    let mut rest: Vec<Shape> = Vec::new();
    for group in groups {
        let is_its = |slice: &&Object| {
            text(slice.raw(), "addressType") == group.address_type && ports_of(slice) == group.ports
        };
        let (its, others): (Vec<&Object>, _) = free.into_iter().partition(is_its);
        free = others;
        let (kept, left) = spread(&group, &its);
        for (slice, endpoints) in kept {
            if endpoints.is_empty() {
                free.push(slice);
            } else {
                wanted.push((Some(slice), Shape::of(&group, endpoints)));
            }
        }
        let is_empty = group.endpoints.is_empty();
        rest.extend(left.chunks(SLICE_MAX).map(|chunk| Shape::of(&group, chunk.to_vec())));
        rest.extend(is_empty.then(|| Shape::of(&group, Vec::new())));
    }
    // A slice that is free takes what is new, rather than that one goes and another comes.
    for shape in rest {
        let at = free.iter().position(|it| text(it.raw(), "addressType") == shape.address_type);
        wanted.push((at.map(|at| free.remove(at)), shape));
    }
    let mut names: Vec<String> = existing.iter().map(|slice| slice.name().to_string()).collect();
    let mut actions = Vec::new();
    for (slice, shape) in wanted {
        match slice {
            Some(slice) => actions.extend(header.update(slice, &shape)),
            None => actions.push(header.create(&shape, &mut names)),
        }
    }
    actions.extend(free.into_iter().map(|slice| {
        let why = Why::new("NoEndpoints", "it has no endpoint left");
        Action::delete(Verb::Delete, slice, Propagation::Background, why)
    }));
    actions
}

/// The endpoints of a group in the slices that have them, with those that find room; and those
/// that do not.
fn spread<'o>(group: &Group, slices: &[&'o Object]) -> (Vec<(&'o Object, Vec<Value>)>, Vec<Value>) {
    let mut left: BTreeMap<String, &Value> =
        group.endpoints.iter().map(|endpoint| (identity(endpoint), endpoint)).collect();
    let mut kept: Vec<(&Object, Vec<Value>)> = Vec::new();
    for slice in slices {
        let stay = list(slice.raw(), "endpoints").iter();
        let stay = stay.filter_map(|endpoint| left.remove(&identity(endpoint)));
        kept.push((slice, stay.cloned().collect()));
    }
    let mut left: Vec<Value> = left.into_values().cloned().collect();
    for (_, endpoints) in kept.iter_mut().filter(|(_, endpoints)| !endpoints.is_empty()) {
        let room = SLICE_MAX.saturating_sub(endpoints.len()).min(left.len());
        endpoints.extend(left.drain(..room));
    }
    (kept, left)
}

/// What tells an endpoint from others: its pod, or else its address.
fn identity(endpoint: &Value) -> String {
    let target = endpoint.get("targetRef").unwrap_or(&Value::Null);
    match text(target, "uid") {
        "" => format!("{} {}", endpoint["addresses"], text(endpoint, "hostname")),
        uid => format!("{uid} {}", endpoint["addresses"]),
    }
}

fn ports_of(slice: &Object) -> Vec<Value> {
    list(slice.raw(), "ports").to_vec()
}

/// What one slice lists.
#[derive(Debug)]
struct Shape {
    address_type: &'static str,
    ports: Vec<Value>,
    endpoints: Vec<Value>,
}

impl Shape {
    fn of(group: &Group, endpoints: Vec<Value>) -> Self {
        Self { address_type: group.address_type, ports: group.ports.clone(), endpoints }
    }
}

impl Header<'_> {
    fn create(&self, shape: &Shape, names: &mut Vec<String>) -> Action {
        let about = json!([shape.address_type, shape.ports]).to_string();
        let owner = self.owner;
        let name = generated_name(owner, &about, |name| names.iter().any(|taken| taken == name));
        names.push(name.clone());
        let key = owner.key().sibling(&ENDPOINT_SLICE, owner.namespace(), &name);
        let mut object = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": name, "namespace": owner.namespace(), "labels": self.labels,
                "ownerReferences": [ownership::reference(owner)]},
            "addressType": shape.address_type, "endpoints": shape.endpoints,
            "ports": shape.ports});
        if !self.annotations.is_empty() {
            object["metadata"]["annotations"] = json!(self.annotations);
        }
        let why = format!("{} endpoints have no slice", shape.endpoints.len());
        Action::create(Verb::Create, key, object, Why::new("Endpoints", why))
    }

    /// The patch of a slice that is there; none if it is as it should be.
    fn update(&self, slice: &Object, shape: &Shape) -> Option<Action> {
        let mut patch = Map::new();
        if list(slice.raw(), "endpoints") != shape.endpoints {
            patch.insert("endpoints".to_owned(), json!(shape.endpoints));
        }
        if ports_of(slice) != shape.ports {
            patch.insert("ports".to_owned(), json!(shape.ports));
        }
        let mut metadata = Map::new();
        for (field, wanted) in [("labels", &self.labels), ("annotations", &self.annotations)] {
            if let Some(changed) = changed(slice.metadata().get(field), wanted) {
                metadata.insert(field.to_owned(), changed);
            }
        }
        if !metadata.is_empty() {
            patch.insert("metadata".to_owned(), Value::Object(metadata));
        }
        let why = Why::new("Endpoints", "its endpoints have changed");
        let is_same = patch.is_empty();
        (!is_same).then(|| Action::patch(Verb::Record, slice, Value::Object(patch), why))
    }
}
