//! The Endpoints of a Service with a selector: pods with the same ports stand together.

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::kinds::ENDPOINTS;
use serde_json::{Map, Value, json};

use crate::dialect::endpoints::names::{CONTROLLER, HEADLESS, MANAGED_BY, OVER_CAPACITY};
use crate::dialect::endpoints::read::{Backend, families, is_headless};
use crate::snapshot::Snapshot;
use crate::step::{Action, Verb, Why};

/// Addresses that Endpoints list at most; EndpointSlices list all.
const CAPACITY: usize = 1_000;

pub(crate) fn writes(snapshot: &Snapshot<'_>, backends: &[Backend<'_>]) -> Vec<Action> {
    let service = snapshot.rollout();
    let (subsets, is_cut) = subsets(service, backends);
    let labels = labels(service);
    let Some(current) = snapshot.find(&ENDPOINTS, service.namespace(), service.name()) else {
        let key = service.key().sibling(&ENDPOINTS, service.namespace(), service.name());
        let mut object = json!({"apiVersion": "v1", "kind": "Endpoints",
            "metadata": {"name": key.name, "namespace": key.namespace, "labels": labels},
            "subsets": subsets});
        if is_cut {
            object["metadata"]["annotations"] = json!({OVER_CAPACITY: "truncated"});
        }
        let why = Why::new("SelectedPods", "the Service has a selector, and no Endpoints");
        return vec![Action::create(Verb::Create, key, object, why)];
    };
    let mut patch = Map::new();
    let listed = current.raw().get("subsets").filter(|it| !it.is_null());
    if listed.unwrap_or(&json!([])) != &subsets {
        patch.insert("subsets".to_owned(), subsets);
    }
    let mut metadata = Map::new();
    if let Some(labels) = changed(current.metadata().get("labels"), &labels) {
        metadata.insert("labels".to_owned(), labels);
    }
    if current.annotation(OVER_CAPACITY).is_some() != is_cut {
        let mark = if is_cut { json!("truncated") } else { Value::Null };
        metadata.insert("annotations".to_owned(), json!({OVER_CAPACITY: mark}));
    }
    if !metadata.is_empty() {
        patch.insert("metadata".to_owned(), Value::Object(metadata));
    }
    if patch.is_empty() {
        return Vec::new();
    }
    let why = Why::new("SelectedPods", "the pods that the Service selects have changed");
    vec![Action::patch(Verb::Record, current, Value::Object(patch), why)]
}

fn labels(service: &Object) -> Map<String, Value> {
    let mut labels = own_labels(service);
    labels.shift_remove(HEADLESS);
    if is_headless(service) {
        labels.insert(HEADLESS.to_owned(), json!(""));
    }
    labels.insert(MANAGED_BY.to_owned(), json!(CONTROLLER));
    labels
}

pub(crate) fn own_labels(object: &Object) -> Map<String, Value> {
    object.labels().map(|(key, value)| (key.to_owned(), json!(value))).collect()
}

/// The merge patch that makes a map as it is wanted; none if it is so.
pub(crate) fn changed(current: Option<&Value>, wanted: &Map<String, Value>) -> Option<Value> {
    let empty = Map::new();
    let current = current.and_then(Value::as_object).unwrap_or(&empty);
    let gone = current.keys().filter(|key| !wanted.contains_key(*key));
    let mut patch: Map<String, Value> = gone.map(|key| (key.clone(), Value::Null)).collect();
    let new = wanted.iter().filter(|(key, value)| current.get(*key) != Some(*value));
    patch.extend(new.map(|(key, value)| (key.clone(), value.clone())));
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// The subsets, and whether they leave addresses out.
fn subsets(service: &Object, backends: &[Backend<'_>]) -> (Value, bool) {
    let family = families(service)[0];
    let has_ports = !convoy_api::object::member::list(service.spec(), "ports").is_empty();
    let mut subsets: BTreeMap<String, Subset> = BTreeMap::new();
    for backend in backends.iter().filter(|backend| backend.is_listed()) {
        let (Some(address), mut ports) = (backend.address(family), backend.ports()) else {
            continue;
        };
        // A pod without any of the ports is not reached by the Service.
        if ports.is_empty() && (has_ports || !is_headless(service)) {
            continue;
        }
        ports.iter_mut().for_each(unnamed);
        ports.sort_by_key(Value::to_string);
        let subset = subsets.entry(json!(ports).to_string()).or_default();
        subset.ports = ports;
        let shown = backend.endpoint_address(address);
        let listed = if backend.is_ready() { &mut subset.ready } else { &mut subset.not_ready };
        listed.push(shown);
    }
    let mut left = CAPACITY;
    let mut is_cut = false;
    let mut cut = |addresses: &mut Vec<Value>| {
        is_cut |= addresses.len() > left;
        addresses.truncate(left);
        left -= addresses.len();
    };
    for subset in subsets.values_mut() {
        cut(&mut subset.ready);
    }
    for subset in subsets.values_mut() {
        cut(&mut subset.not_ready);
    }
    (subsets.into_values().map(Subset::into_value).collect(), is_cut)
}

/// Endpoints have no name for a port that has none.
fn unnamed(port: &mut Value) {
    if port["name"] == ""
        && let Value::Object(fields) = port
    {
        fields.shift_remove("name");
    }
}

/// Pods with the same ports.
#[derive(Debug, Default)]
struct Subset {
    ready: Vec<Value>,
    not_ready: Vec<Value>,
    ports: Vec<Value>,
}

impl Subset {
    fn into_value(self) -> Value {
        let fields = [
            ("addresses", self.ready),
            ("notReadyAddresses", self.not_ready),
            ("ports", self.ports),
        ];
        let given = fields.into_iter().filter(|(_, list)| !list.is_empty());
        Value::Object(given.map(|(name, list)| (name.to_owned(), Value::Array(list))).collect())
    }
}
