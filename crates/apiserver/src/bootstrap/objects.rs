//! What a logical cluster and a namespace begin with, besides roles.

use serde_json::{Value, json};

use super::Place;
use super::template::{Care, NOW, Plan};
use crate::registry::builtin;

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// How far in front the groups of discovery stand; those not listed share a place in the middle.
const GROUP_PRIORITIES: [(&str, u32); 16] = [
    ("", 18_000),
    ("apps", 17_800),
    ("events.k8s.io", 17_750),
    ("authentication.k8s.io", 17_700),
    ("authorization.k8s.io", 17_600),
    ("autoscaling", 17_500),
    ("batch", 17_400),
    ("certificates.k8s.io", 17_300),
    ("networking.k8s.io", 17_200),
    ("policy", 17_100),
    ("rbac.authorization.k8s.io", 17_000),
    ("storage.k8s.io", 16_800),
    ("apiextensions.k8s.io", 16_700),
    ("admissionregistration.k8s.io", 16_700),
    ("scheduling.k8s.io", 16_600),
    ("coordination.k8s.io", 16_500),
];

pub(super) fn of_cluster(place: Place, authority: &str) -> Vec<Plan> {
    let mut plans: Vec<Plan> = NAMESPACES.iter().map(|name| create(namespace(name))).collect();
    plans.push(create(priority_class("system-cluster-critical", 2_000_000_000)));
    plans.push(create(priority_class("system-node-critical", 2_000_001_000)));
    plans.extend([service(place), endpoints(place), endpoint_slice(place)].map(replace));
    plans.push(replace(json!({
        "kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
        "data": {"client-ca-file": authority},
    })));
    plans.extend(api_services());
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
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
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

fn service(place: Place) -> Value {
    let family = if place.service.is_ipv4() { "IPv4" } else { "IPv6" };
    json!({
        "kind": "Service", "apiVersion": "v1",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": place.port}],
            "clusterIP": place.service.to_string(),
            "clusterIPs": [place.service.to_string()],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilies": [family],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        },
        "status": {"loadBalancer": {}},
    })
}

fn endpoints(place: Place) -> Value {
    json!({
        "kind": "Endpoints", "apiVersion": "v1",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
        },
        "subsets": [{
            "addresses": [{"ip": place.address.to_string()}],
            "ports": [{"name": "https", "port": place.port, "protocol": "TCP"}],
        }],
    })
}

fn endpoint_slice(place: Place) -> Value {
    let family = if place.address.is_ipv4() { "IPv4" } else { "IPv6" };
    json!({
        "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": family,
        "endpoints": [{"addresses": [place.address.to_string()], "conditions": {"ready": true}}],
        "ports": [{"name": "https", "protocol": "TCP", "port": place.port}],
    })
}

/// One for each group and version that is built in.
fn api_services() -> impl Iterator<Item = Plan> {
    let groups = builtin().groups().into_iter();
    let pairs = groups.flat_map(|(group, versions)| versions.into_iter().map(move |v| (group, v)));
    pairs.map(|(group, version)| {
        let listed = GROUP_PRIORITIES.iter().find(|(name, _)| *name == group);
        let priority = listed.map_or(16_300, |(_, priority)| *priority);
        // Newer versions of a group come first.
        let rank = version.trim_start_matches('v').parse::<u32>().unwrap_or(0);
        create(json!({
            "kind": "APIService", "apiVersion": "apiregistration.k8s.io/v1",
            "metadata": {
                "name": format!("{version}.{group}"),
                "labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"},
            },
            "spec": {
                "group": group, "version": version,
                "groupPriorityMinimum": priority, "versionPriority": 15 + rank,
            },
            "status": {"conditions": [{
                "type": "Available", "status": "True", "reason": "Local",
                "message": "Local APIServices are always available",
                "lastTransitionTime": NOW,
            }]},
        }))
    })
}
