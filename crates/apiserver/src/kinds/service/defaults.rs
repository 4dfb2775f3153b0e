//! Defaults of services. Addresses and ports of the node are allocated later, when it is stored.

use serde_json::{Value, json};

use crate::kinds::fill::{self, Fields};

/// How long a client sticks to its endpoint, unless said otherwise.
const AFFINITY_SECONDS: i64 = 10_800;

pub(super) fn service(object: &mut Value) {
    let Some(spec) = fill::spec(object) else { return };
    affinity(spec);
    fill::text(spec, "type", "ClusterIP");
    fill::each(spec.get_mut("ports"), port);
    let kind = fill::given(spec, "type").to_owned();
    let has_external = !fill::is_empty_list(spec, "externalIPs");
    let is_public = matches!(kind.as_str(), "NodePort" | "LoadBalancer");
    if is_public || kind == "ClusterIP" && has_external {
        fill::text(spec, "externalTrafficPolicy", "Cluster");
    }
    if is_public || kind == "ClusterIP" {
        fill::absent(spec, "internalTrafficPolicy", || json!("Cluster"));
    }
    if kind == "LoadBalancer" {
        fill::absent(spec, "allocateLoadBalancerNodePorts", || json!(true));
        let balancer = object.pointer_mut("/status/loadBalancer/ingress");
        fill::each(balancer, |ingress| {
            if !fill::given(ingress, "ip").is_empty() {
                fill::absent(ingress, "ipMode", || json!("VIP"));
            }
        });
    }
}

fn affinity(spec: &mut Fields) {
    fill::text(spec, "sessionAffinity", "None");
    match fill::given(spec, "sessionAffinity") {
        "None" => {
            spec.shift_remove("sessionAffinityConfig");
        }
        "ClientIP" => {
            let seconds = spec
                .get("sessionAffinityConfig")
                .map_or(&Value::Null, |config| &config["clientIP"]["timeoutSeconds"]);
            if seconds.is_null() {
                let config = json!({"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}});
                spec.insert("sessionAffinityConfig".into(), config);
            }
        }
        _ => {}
    }
}

fn port(port: &mut Fields) {
    fill::text(port, "protocol", "TCP");
    let is_open = port
        .get("targetPort")
        .is_none_or(|target| target.is_null() || *target == json!(0) || *target == json!(""));
    if is_open {
        let number = port.get("port").cloned().unwrap_or_else(|| json!(0));
        port.insert("targetPort".into(), number);
    }
}
