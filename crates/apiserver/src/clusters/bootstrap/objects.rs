//! What a logical cluster and a namespace begin with, besides roles.

use std::net::{IpAddr, Ipv6Addr};

use convoy_api::well_known::label;
use serde_json::{Value, json};

use super::template::{Care, NOW, Plan};
use crate::access::ServiceEndpoint;

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

pub(super) fn of_cluster(endpoint: ServiceEndpoint, authority: &str) -> Vec<Plan> {
    let mut plans: Vec<Plan> = NAMESPACES.iter().map(|name| create(namespace(name))).collect();
    plans.push(create(priority_class("system-cluster-critical", 2_000_000_000)));
    plans.push(create(priority_class("system-node-critical", 2_000_001_000)));
    plans.push(create(service_range(endpoint)));
    plans.extend([service(endpoint), endpoints(endpoint), endpoint_slice(endpoint)].map(replace));
    plans.push(replace(json!({
        "kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
        "data": {"client-ca-file": authority},
    })));
    plans.extend(NAMESPACES.iter().flat_map(|name| of_namespace(name, authority)));
    plans
}

pub(super) fn of_namespace(namespace: &str, authority: &str) -> Vec<Plan> {
    let account = json!({
        "kind": "ServiceAccount", "apiVersion": "v1",
        "metadata": {"name": "default", "namespace": namespace},
    });
    let certificates = json!({
        "kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"name": "kube-root-ca.crt", "namespace": namespace},
        "data": {"ca.crt": authority},
    });
    vec![create(account), replace(certificates)]
}

fn create(object: Value) -> Plan {
    Plan { object, care: Care::Create }
}

fn replace(object: Value) -> Plan {
    Plan { object, care: Care::Replace }
}

fn namespace(name: &str) -> Value {
    json!({
        "kind": "Namespace", "apiVersion": "v1",
        "metadata": {"name": name, "labels": {(label::NAMESPACE_NAME): name}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    })
}

fn priority_class(name: &str, value: i64) -> Value {
    json!({
        "kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1",
        "metadata": {"name": name},
        "value": value,
        "description": "For what the cluster itself cannot do without.",
        "preemptionPolicy": "PreemptLowerPriority",
    })
}

/// The range that services get their addresses from: the one around the server's own.
fn service_range(endpoint: ServiceEndpoint) -> Value {
    let range = match endpoint.service {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            format!("{first}.{second}.0.0/16")
        }
        IpAddr::V6(address) => {
            let prefix = Ipv6Addr::from_bits(address.to_bits() & !0xffff);
            format!("{prefix}/112")
        }
    };
    json!({
        "kind": "ServiceCIDR", "apiVersion": "networking.k8s.io/v1",
        "metadata": {"name": "kubernetes"},
        "spec": {"cidrs": [range]},
        "status": {"conditions": [{
            "type": "Ready", "status": "True", "reason": "",
            "message": "Kubernetes default Service CIDR is ready",
            "lastTransitionTime": NOW,
        }]},
    })
}

fn service(endpoint: ServiceEndpoint) -> Value {
    let family = if endpoint.service.is_ipv4() { "IPv4" } else { "IPv6" };
    json!({
        "kind": "Service", "apiVersion": "v1",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": endpoint.port}],
            "clusterIP": endpoint.service.to_string(),
            "clusterIPs": [endpoint.service.to_string()],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilies": [family],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        },
        "status": {"loadBalancer": {}},
    })
}

fn endpoints(endpoint: ServiceEndpoint) -> Value {
    json!({
        "kind": "Endpoints", "apiVersion": "v1",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": {(label::SKIP_MIRROR): "true"},
        },
        "subsets": [{
            "addresses": [{"ip": endpoint.address.to_string()}],
            "ports": [{"name": "https", "port": endpoint.port, "protocol": "TCP"}],
        }],
    })
}

fn endpoint_slice(endpoint: ServiceEndpoint) -> Value {
    let family = if endpoint.address.is_ipv4() { "IPv4" } else { "IPv6" };
    json!({
        "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": {(label::SERVICE_NAME): "kubernetes"},
        },
        "addressType": family,
        "endpoints": [{"addresses": [endpoint.address.to_string()], "conditions": {"ready": true}}],
        "ports": [{"name": "https", "protocol": "TCP", "port": endpoint.port}],
    })
}
