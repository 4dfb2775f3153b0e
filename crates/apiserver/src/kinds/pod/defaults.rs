//! Defaults of pods, and of pod templates wherever they are embedded. What templates have in common
//! with pods is filled in by the engine's own defaults, so a template hashes the same on both sides.

use convoy_api::apps::defaults::template;
use convoy_api::text::Quantity;
use serde_json::{Value, json};

use crate::kinds::fill::{self, Fields};

/// Fills in the pod template under `template`.
pub(in crate::kinds) fn template_in(owner: &mut Fields) {
    if let Some(made) = fill::make(owner, "template") {
        fill::make(made, "spec");
    }
    if let Some(given) = owner.get_mut("template") {
        *given = template(given);
    }
}

pub(super) fn pod(object: &mut Value) {
    if fill::spec(object).is_none() {
        return;
    }
    *object = template(object);
    let Some(spec) = fill::spec(object) else { return };
    for list in ["containers", "initContainers"] {
        fill::each(spec.get_mut(list), |container| {
            let resources = fill::fields(container.get_mut("resources"));
            resources.into_iter().for_each(requests_from_limits);
        });
    }
    pod_level_requests(spec);
    fill::absent(spec, "enableServiceLinks", || json!(true));
    if spec.get("hostNetwork") == Some(&json!(true)) {
        for list in ["containers", "initContainers"] {
            fill::each(spec.get_mut(list), host_ports);
        }
    }
    addresses(object);
}

/// A limit without a request is also the request.
fn requests_from_limits(resources: &mut Fields) {
    let Some(Value::Object(limits)) = resources.get("limits") else { return };
    let limits = limits.clone();
    if let Some(requests) = fill::make(resources, "requests") {
        for (name, limit) in limits {
            fill::absent(requests, &name, || limit);
        }
    }
}

/// The requests of a pod with pod-level limits: those of its containers, or else its limits.
fn pod_level_requests(spec: &mut Fields) {
    let asked: Vec<(&str, Quantity)> = ["cpu", "memory"]
        .into_iter()
        .filter_map(|name| Some((name, containers_request(spec, name)?)))
        .collect();
    let texts: Vec<(&str, Value)> =
        asked.into_iter().map(|(name, sum)| (name, json!(spelled(name, sum)))).collect();
    let Some(resources) = fill::fields(spec.get_mut("resources")) else { return };
    let Some(Value::Object(limits)) = resources.get("limits") else { return };
    if limits.is_empty() {
        return;
    }
    let limits = limits.clone();
    let Some(requests) = fill::make(resources, "requests") else { return };
    for (name, amount) in texts {
        fill::absent(requests, name, || amount);
    }
    for (name, limit) in limits {
        if matches!(name.as_str(), "cpu" | "memory") || name.starts_with("hugepages-") {
            fill::absent(requests, &name, || limit);
        }
    }
}

/// The sum of the requests of all containers; `None` if no container has any.
fn containers_request(spec: &Fields, name: &str) -> Option<Quantity> {
    let containers = spec.get("containers").and_then(Value::as_array).into_iter().flatten();
    let amounts = containers.filter_map(|container| {
        container["resources"]["requests"][name].as_str()?.parse::<Quantity>().ok()
    });
    amounts.reduce(Quantity::saturating_add)
}

fn spelled(name: &str, amount: Quantity) -> String {
    let text = match name {
        "cpu" => format!("{}m", amount.as_millis()),
        _ => amount.as_units().to_string(),
    };
    convoy_api::apps::quantity::stored(&text, true).unwrap_or(text)
}

/// On the node's own network a container's port is the node's.
fn host_ports(container: &mut Fields) {
    fill::each(container.get_mut("ports"), |port| {
        if let Some(number) = port.get("containerPort").and_then(Value::as_i64) {
            fill::number(port, "hostPort", number);
        }
    });
}

/// The first of a pod's addresses stands alone, too; where the two differ it is the one that
/// older kubelets set.
fn addresses(object: &mut Value) {
    let Some(status) = fill::fields(object.get_mut("status")) else { return };
    let first = status.get("podIPs").and_then(|list| list[0]["ip"].as_str()).map(str::to_owned);
    let single = fill::given(status, "podIP").to_owned();
    match (first, single.as_str()) {
        (Some(first), "") => fill::text(status, "podIP", &first),
        (first, single) if !single.is_empty() && first.as_deref() != Some(single) => {
            status.insert("podIPs".to_owned(), json!([{"ip": single}]));
        }
        _ => {}
    }
}
