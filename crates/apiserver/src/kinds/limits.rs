//! What `LimitRange`s make of new pods: amounts where a container gives none, and bounds that
//! containers and whole pods must keep to.

use std::collections::BTreeMap;

use convoy_api::text::Quantity;
use convoy_api::well_known::annotation::LIMIT_RANGER;
use serde_json::{Map, Value, json};

use super::fill::{self, Fields};
use super::kind::Kind;
use super::priority::all;
use crate::metadata;
use crate::registry::Resource;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};

/// The lists of containers, and how people call their members.
const LISTS: [(&str, &str); 2] =
    [("containers", "container"), ("initContainers", "init container")];

/// Amounts by resource, as they are written.
type Amounts = BTreeMap<String, String>;

/// Gives containers the amounts that they leave out.
pub(super) fn fill_in(request: &ResourceRequest, pod: &mut Value) {
    for range in ranges(request) {
        let defaults: Vec<&Value> = limits(&range, "Container").collect();
        let notes: Vec<String> =
            defaults.iter().flat_map(|limit| fill_in_from(limit, pod)).collect();
        if !notes.is_empty() {
            let note = format!("LimitRanger plugin set: {}", notes.join("; "));
            pod["metadata"]["annotations"][LIMIT_RANGER] = json!(note);
        }
    }
}

fn fill_in_from(limit: &Value, pod: &mut Value) -> Vec<String> {
    let mut notes = Vec::new();
    for (list, called) in LISTS {
        let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let name = container["name"].as_str().unwrap_or_default().to_owned();
            for (defaults, side, word) in
                [("defaultRequest", "requests", "request"), ("default", "limits", "limit")]
            {
                let added = add(container, side, &limit[defaults]);
                if !added.is_empty() {
                    notes.push(format!("{} {word} for {called} {name}", added.join(", ")));
                }
            }
        }
    }
    notes
}

/// Adds the amounts that are not there; which ones, in order.
fn add(container: &mut Value, side: &str, defaults: &Value) -> Vec<String> {
    let defaults = defaults.as_object().filter(|defaults| !defaults.is_empty());
    let Some(defaults) = defaults else { return Vec::new() };
    let Some(container) = container.as_object_mut() else { return Vec::new() };
    let Some(resources) = fill::make(container, "resources") else { return Vec::new() };
    let Some(amounts) = fill::make(resources, side) else { return Vec::new() };
    let mut added = Vec::new();
    for (resource, amount) in defaults {
        if !amounts.contains_key(resource) {
            amounts.insert(resource.clone(), amount.clone());
            added.push(resource.clone());
        }
    }
    added.sort();
    added
}

/// Refuses a pod that does not keep to the bounds of its namespace.
pub(super) fn check(request: &ResourceRequest, pod: &Value) -> ApiResult<()> {
    for range in ranges(request) {
        let mut complaints = Vec::new();
        let containers = LISTS.iter().flat_map(|(list, _)| items(&pod["spec"], list));
        let containers: Vec<&Value> = containers.collect();
        for limit in limits(&range, "Container") {
            for container in &containers {
                let amounts = |side: &str| read(&container["resources"][side]);
                hold(limit, &amounts("requests"), &amounts("limits"), &mut complaints);
            }
        }
        for limit in limits(&range, "Pod") {
            hold(limit, &sum(pod, "requests"), &sum(pod, "limits"), &mut complaints);
        }
        let why = match complaints.as_slice() {
            [] => continue,
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        return Err(Status::forbidden(&request.resource, metadata::text(pod, "name"), &why));
    }
    Ok(())
}

/// Compares amounts with one item of a range.
fn hold(limit: &Value, requests: &Amounts, limits: &Amounts, complaints: &mut Vec<String>) {
    let kind = limit["type"].as_str().unwrap_or_default();
    for (name, least) in read(&limit["min"]) {
        let so = format!("minimum {name} usage per {kind} is {least}");
        match (requests.get(&name), limits.get(&name)) {
            (None, _) => complaints.push(format!("{so}.  No request is specified")),
            (Some(requested), _) if amount(requested) < amount(&least) => {
                complaints.push(format!("{so}, but request is {requested}"));
            }
            (_, Some(limit)) if amount(limit) < amount(&least) => {
                complaints.push(format!("{so}, but limit is {limit}"));
            }
            _ => {}
        }
    }
    for (name, most) in read(&limit["max"]) {
        let so = format!("maximum {name} usage per {kind} is {most}");
        match (limits.get(&name), requests.get(&name)) {
            (None, _) => complaints.push(format!("{so}.  No limit is specified")),
            (Some(limit), _) if amount(limit) > amount(&most) => {
                complaints.push(format!("{so}, but limit is {limit}"));
            }
            (_, Some(requested)) if amount(requested) > amount(&most) => {
                complaints.push(format!("{so}, but request is {requested}"));
            }
            _ => {}
        }
    }
    for (name, most) in read(&limit["maxLimitRequestRatio"]) {
        complaints.extend(strain(kind, &name, &most, requests, limits));
    }
}

/// What is wrong with how far a limit lies above its request, if anything.
#[expect(clippy::cast_precision_loss, reason = "the ratio is shown with six digits")]
fn strain(
    kind: &str,
    name: &str,
    most: &str,
    requests: &Amounts,
    limits: &Amounts,
) -> Option<String> {
    let so = format!("{name} max limit to request ratio per {kind} is {most}");
    let given = |amounts: &Amounts| {
        amounts.get(name).map(|text| amount(text).as_millis()).filter(|millis| *millis != 0)
    };
    let Some(requested) = given(requests) else {
        return Some(format!("{so}, but no request is specified or request is 0"));
    };
    let Some(limit) = given(limits) else {
        return Some(format!("{so}, but no limit is specified or limit is 0"));
    };
    let ratio = limit as f64 / requested as f64;
    let is_over = ratio > amount(most).as_millis() as f64 / 1_000.0;
    is_over.then(|| format!("{so}, but provided ratio is {ratio:.6}"))
}

/// The requests of a pod: the sum of its containers, or of an init container if that is more.
fn sum(pod: &Value, side: &str) -> Amounts {
    let millis = |container: &Value| -> BTreeMap<String, i64> {
        let amounts = read(&container["resources"][side]);
        amounts.into_iter().map(|(name, text)| (name, amount(&text).as_millis())).collect()
    };
    let mut total: BTreeMap<String, i64> = BTreeMap::new();
    for container in items(&pod["spec"], "containers") {
        for (name, more) in millis(container) {
            let sum = total.entry(name).or_default();
            *sum = sum.saturating_add(more);
        }
    }
    for container in items(&pod["spec"], "initContainers") {
        for (name, alone) in millis(container) {
            let most = total.entry(name).or_default();
            *most = alone.max(*most);
        }
    }
    let text = |millis: i64| match (millis / 1_000, millis % 1_000) {
        (units, 0) => units.to_string(),
        _ => format!("{millis}m"),
    };
    total.into_iter().map(|(name, millis)| (name, text(millis))).collect()
}

fn amount(text: &str) -> Quantity {
    text.parse().unwrap_or_default()
}

fn read(amounts: &Value) -> Amounts {
    let fields = amounts.as_object().into_iter().flat_map(Map::iter);
    fields.filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect()
}

fn items<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}

fn limits<'v>(range: &'v Value, kind: &str) -> impl Iterator<Item = &'v Value> {
    items(&range["spec"], "limits").filter(move |limit| limit["type"] == kind)
}

fn ranges(request: &ResourceRequest) -> impl Iterator<Item = Value> {
    let namespace = request.namespace();
    all(request, "", "limitranges")
        .into_iter()
        .filter(move |range| metadata::text(range, "namespace") == namespace)
}

pub(super) struct LimitRange;

impl Kind for LimitRange {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        if let Some(spec) = fill::spec(object) {
            fill::each(spec.get_mut("limits"), default_limit);
        }
    }
}

/// Limits of containers say what a container gets that asks for nothing.
fn default_limit(limit: &mut Fields) {
    if fill::given(limit, "type") != "Container" {
        return;
    }
    for (into, from) in
        [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")]
    {
        let Some(Value::Object(amounts)) = limit.get(from) else { continue };
        let amounts = amounts.clone();
        if let Some(target) = fill::make(limit, into) {
            for (name, amount) in amounts {
                fill::absent(target, &name, || amount);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestServer;

    const PODS: &str = "/api/v1/namespaces/default/pods";

    fn server(limit: &Value) -> TestServer {
        let server = TestServer::new();
        server.create("/api/v1/namespaces", &json!({"metadata": {"name": "default"}}));
        let range = json!({"metadata": {"name": "range"}, "spec": {"limits": [limit]}});
        server.create("/api/v1/namespaces/default/limitranges", &range);
        server
    }

    fn pod(resources: &Value) -> Value {
        let container = |name: &str| json!({"name": name, "image": "i", "resources": resources});
        json!({"metadata": {"name": "p"},
            "spec": {"containers": [container("main")], "initContainers": [container("first")]}})
    }

    #[test]
    fn containers_get_the_amounts_that_they_leave_out() {
        let amounts = json!({"cpu": "500m", "memory": "256Mi"});
        let server = server(
            &json!({"type": "Container", "default": amounts, "defaultRequest": {"cpu": "100m"}}),
        );
        let made = server.create(PODS, &pod(&json!({"limits": {"cpu": "1"}})));
        for list in ["containers", "initContainers"] {
            let resources = &made["spec"][list][0]["resources"];
            assert_eq!(resources["limits"], json!({"cpu": "1", "memory": "256Mi"}), "{list}");
            assert_eq!(resources["requests"], json!({"cpu": "1", "memory": "256Mi"}), "{list}");
        }
        let note = "LimitRanger plugin set: memory request for container main; memory limit for container main; memory request for init container first; memory limit for init container first";
        assert_eq!(made["metadata"]["annotations"][LIMIT_RANGER], note);
    }

    #[test]
    fn bounds_are_kept() {
        let cases = [
            (
                json!({"type": "Container", "max": {"cpu": "1"}}),
                json!({"limits": {"cpu": "2"}}),
                "[maximum cpu usage per Container is 1, but limit is 2, maximum cpu usage per Container is 1, but limit is 2]",
            ),
            (
                json!({"type": "Pod", "min": {"memory": "1Gi"}}),
                json!({}),
                "minimum memory usage per Pod is 1Gi.  No request is specified",
            ),
            (
                json!({"type": "Pod", "maxLimitRequestRatio": {"cpu": "2"}}),
                json!({"limits": {"cpu": "3"}, "requests": {"cpu": "1"}}),
                "cpu max limit to request ratio per Pod is 2, but provided ratio is 3.000000",
            ),
        ];
        for (limit, resources, why) in cases {
            let (code, answer) = server(&limit).call("POST", PODS, &pod(&resources));
            assert_eq!(code, 403, "{answer}");
            assert_eq!(answer["message"], format!("pods \"p\" is forbidden: {why}"));
        }
    }
}
