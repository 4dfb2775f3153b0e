//! NodeClaims that are asked for. Bringing the machine up is the provider's part.

use serde_json::{Map, Value, json};

use crate::dialect::karpenter::decide::simulate::{Offer, PoolLabels, Replacement, claim_labels};
use crate::dialect::karpenter::names::{self, FINALIZER, NODE_CLAIM, annotation, label};
use crate::dialect::karpenter::read::pool::Pool;
use crate::gate::Permit;
use crate::step::{Action, Verb, Why};

/// How many instance types a claim names at most.
const TYPES: usize = 600;

/// Creates a claim of `pool` under `name`; `replacement` says which machines would do.
pub(crate) fn create(
    pool: &Pool<'_>,
    name: &str,
    replacement: Option<&Replacement<'_>>,
    command: Option<&str>,
    permit: Permit,
    why: Why,
) -> Action {
    let target = pool.object.key().sibling(&NODE_CLAIM, "", name);
    Action::create(Verb::Start(permit), target, body(pool, name, replacement, command), why)
}

fn body(
    pool: &Pool<'_>,
    name: &str,
    replacement: Option<&Replacement<'_>>,
    command: Option<&str>,
) -> Value {
    let template = pool.template();
    let map = |pointer: &str| {
        template.pointer(pointer).and_then(Value::as_object).cloned().unwrap_or_default()
    };
    let bare = PoolLabels::of(pool);
    let settled = replacement.filter(|replacement| !replacement.offers.is_empty());
    let required = settled.map_or(&bare, |replacement| &replacement.labels);
    let labels = claim_labels(pool, required);
    let mut annotations = map("/metadata/annotations");
    annotations.insert(annotation::HASH.into(), json!(pool.hash));
    annotations.insert(annotation::HASH_VERSION.into(), json!(names::HASH_VERSION));
    if let Some(command) = command {
        annotations.insert(annotation::REPLACES.into(), json!(command));
    }
    let mut spec = map("/spec");
    spec.insert("requirements".into(), Value::Array(requirements(pool, replacement)));
    if let Some(requests) = replacement.map(requests).filter(|requests| !requests.is_empty()) {
        spec.insert("resources".into(), json!({"requests": requests}));
    }
    let owner = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": pool.name(),
        "uid": pool.object.uid().unwrap_or_default(), "blockOwnerDeletion": true});
    json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, "labels": labels, "annotations": annotations,
            "finalizers": [FINALIZER], "ownerReferences": [owner]},
        "spec": spec,
    })
}

/// The pool's own, narrowed to the machines that would do.
fn requirements(pool: &Pool<'_>, replacement: Option<&Replacement<'_>>) -> Vec<Value> {
    let given = pool.template().pointer("/spec/requirements").and_then(Value::as_array);
    let mut all = given.cloned().unwrap_or_default();
    let is_one_of =
        |key: &str, values: Vec<&str>| json!({"key": key, "operator": "In", "values": values});
    all.push(is_one_of(label::NODE_POOL, vec![pool.name()]));
    let mut offers: Vec<Offer<'_>> =
        replacement.map(|replacement| replacement.offers.clone()).unwrap_or_default();
    let price = |offer: &Offer<'_>| offer.price().unwrap_or(f64::INFINITY);
    offers.sort_by(|a, b| {
        price(a).total_cmp(&price(b)).then_with(|| a.type_name().cmp(&b.type_name()))
    });
    for key in [label::INSTANCE_TYPE, label::CAPACITY_TYPE, label::ZONE] {
        let mut values: Vec<&str> = Vec::new();
        for value in offers.iter().filter_map(|offer| offer.label(key)) {
            if !values.contains(&value) && values.len() < TYPES {
                values.push(value);
            }
        }
        if !values.is_empty() {
            all.push(is_one_of(key, values));
        }
    }
    all
}

fn requests(replacement: &Replacement<'_>) -> Map<String, Value> {
    let mut requests = Map::new();
    let mut put = |name: &str, amount: i64, text: String| {
        if amount > 0 {
            requests.insert(name.to_owned(), json!(text));
        }
    };
    let amounts = &replacement.requests;
    put("cpu", amounts.cpu, format!("{}m", amounts.cpu));
    put("memory", amounts.memory, amounts.memory.to_string());
    put("pods", amounts.pods, amounts.pods.to_string());
    requests
}
