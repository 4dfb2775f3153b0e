//! What a `RuntimeClass` makes of the pods that name it: their overhead, and where they may run.

use convoy_api::text::Quantity;
use serde_json::{Value, json};

use super::fill;
use super::kind::Kind;
use crate::column::Cell::Text;
use crate::column::{AGE, Column, NAME, string};
use crate::encoding::read_entry;
use crate::metadata;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};

/// Gives a new pod what its class says.
pub(super) fn admit_pod(request: &ResourceRequest, pod: &mut Value) -> ApiResult<()> {
    let pod_name = metadata::text(pod, "name").to_owned();
    let refuse = |why: String| Err(Status::forbidden(&request.resource, &pod_name, &why));
    let Some(class) = class_of(request, pod)? else { return Ok(()) };
    let Some(spec) = fill::spec(pod) else { return Ok(()) };
    let overhead = &class["overhead"]["podFixed"];
    if overhead.is_object() {
        let given = spec.get("overhead").filter(|given| !is_empty(given));
        if given.is_some_and(|given| !same_amounts(given, overhead)) {
            return refuse(MISMATCH.to_owned());
        }
        spec.insert("overhead".to_owned(), overhead.clone());
    }
    let scheduling = &class["scheduling"];
    for (key, value) in scheduling["nodeSelector"].as_object().into_iter().flatten() {
        let Some(selector) = fill::make(spec, "nodeSelector") else { break };
        if let Some(given) = selector.get(key).filter(|given| *given != value) {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (wanted, given) = (text(value), text(given));
            return refuse(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted}; pod.spec.nodeSelector[{key}] = {given}"
            ));
        }
        selector.insert(key.clone(), value.clone());
    }
    for toleration in scheduling["tolerations"].as_array().into_iter().flatten() {
        fill::absent(spec, "tolerations", || json!([]));
        if let Some(Value::Array(tolerations)) = spec.get_mut("tolerations")
            && !tolerations.contains(toleration)
        {
            tolerations.push(toleration.clone());
        }
    }
    Ok(())
}

/// Refuses a pod whose overhead is not that of its class, whoever gave it.
pub(super) fn check(request: &ResourceRequest, pod: &Value) -> ApiResult<()> {
    let given = &pod["spec"]["overhead"];
    let class = class_of(request, pod)?.unwrap_or_default();
    let overhead = &class["overhead"]["podFixed"];
    let why = match overhead.is_object() {
        true if same_amounts(given, overhead) => return Ok(()),
        false if given.is_null() => return Ok(()),
        true => MISMATCH,
        false => {
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        }
    };
    Err(Status::forbidden(&request.resource, metadata::text(pod, "name"), why))
}

const MISMATCH: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

/// The class that a pod names; a pod whose class does not exist is refused.
fn class_of(request: &ResourceRequest, pod: &Value) -> ApiResult<Option<Value>> {
    let Some(class) = pod["spec"]["runtimeClassName"].as_str() else { return Ok(None) };
    let resource = request.registry.get("node.k8s.io", "v1", "runtimeclasses");
    let found = resource.and_then(|resource| {
        let key = request.cluster.shelf(resource).key("", class);
        request.server.store.snapshot().get(&key).map(|entry| read_entry(entry))
    });
    let why = || format!("pod rejected: RuntimeClass {class:?} not found");
    let name = metadata::text(pod, "name");
    found.map(Some).ok_or_else(|| Status::forbidden(&request.resource, name, &why()))
}

fn is_empty(amounts: &Value) -> bool {
    amounts.as_object().is_none_or(serde_json::Map::is_empty)
}

/// Whether two lists of resources have the same amounts, in whatever form they are written.
fn same_amounts(a: &Value, b: &Value) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else {
        return is_empty(a) && is_empty(b);
    };
    let amount = |value: &Value| value.as_str().and_then(|text| text.parse::<Quantity>().ok());
    let is_same = |(key, value): (&String, &Value)| {
        b.get(key).is_some_and(|other| value == other || amount(value) == amount(other))
    };
    a.len() == b.len() && a.iter().all(is_same)
}

pub(super) struct RuntimeClass;

impl Kind for RuntimeClass {
    fn columns(&self) -> &'static [Column] {
        const { &[NAME, string("Handler", Text("/handler", "")), AGE] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestServer;

    const PODS: &str = "/api/v1/namespaces/default/pods";

    fn server(class: &Value) -> TestServer {
        let server = TestServer::new();
        server.create("/api/v1/namespaces", &json!({"metadata": {"name": "default"}}));
        server.create("/apis/node.k8s.io/v1/runtimeclasses", class);
        server
    }

    fn pod(more: &Value) -> Value {
        let mut pod = json!({"metadata": {"name": "p"}, "spec": {"runtimeClassName": "small",
            "containers": [{"name": "c", "image": "i"}]}});
        for (key, value) in more.as_object().unwrap() {
            pod["spec"][key] = value.clone();
        }
        pod
    }

    #[test]
    fn a_pod_gets_the_overhead_and_the_place_of_its_class() {
        let toleration = json!({"key": "small", "operator": "Exists", "effect": "NoSchedule"});
        let server = server(&json!({"metadata": {"name": "small"}, "handler": "h",
            "overhead": {"podFixed": {"cpu": "10m", "memory": "1Mi"}},
            "scheduling": {"nodeSelector": {"size": "small"}, "tolerations": [toleration]}}));
        let made = server.create(PODS, &pod(&json!({"nodeSelector": {"zone": "a"}})));
        let spec = &made["spec"];
        assert_eq!(spec["overhead"], json!({"cpu": "10m", "memory": "1Mi"}));
        assert_eq!(spec["nodeSelector"], json!({"size": "small", "zone": "a"}));
        assert!(spec["tolerations"].as_array().unwrap().contains(&toleration), "{spec}");
        let refused = [
            (
                json!({"nodeSelector": {"size": "large"}}),
                "conflict: runtimeClass.scheduling.nodeSelector[size] = small; pod.spec.nodeSelector[size] = large",
            ),
            (json!({"overhead": {"cpu": "1"}}), MISMATCH),
            (
                json!({"runtimeClassName": "absent"}),
                "pod rejected: RuntimeClass \"absent\" not found",
            ),
        ];
        for (more, why) in refused {
            let (code, answer) = server.call("POST", PODS, &pod(&more));
            assert_eq!(code, 403, "{answer}");
            assert_eq!(answer["message"], format!("pods \"p\" is forbidden: {why}"));
        }
    }

    #[test]
    fn an_overhead_comes_from_a_class_only() {
        let server = server(&json!({"metadata": {"name": "small"}, "handler": "h"}));
        let (code, answer) = server.call("POST", PODS, &pod(&json!({"overhead": {"cpu": "1"}})));
        assert_eq!(code, 403, "{answer}");
        let made = server.create(PODS, &pod(&json!({})));
        assert!(made["spec"]["overhead"].is_null(), "{made}");
    }
}
