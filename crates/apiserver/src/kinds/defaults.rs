//! What the server fills in for kinds that leave something open, when a request is read. All of
//! it can be done twice without doing more.

mod access;
mod autoscaling;
mod networking;
mod pod;
mod service;
mod storage;
mod workload;

use convoy_api::apps::defaults as apps;
use serde_json::{Value, json};

use super::fill::{self, Fields};
use crate::registry::Resource;

pub(super) fn fill(resource: &Resource, object: &mut Value) {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", _) => core(&resource.plural, object),
        ("apps", "deployments") => {
            workload::make_template(object);
            *object = apps::deployment(object);
        }
        ("apps", "replicasets") => {
            workload::make_template(object);
            *object = apps::replica_set(object);
        }
        ("apps", "daemonsets") => workload::daemon_set(object),
        ("apps", "statefulsets") => workload::stateful_set(object),
        ("batch", "jobs") => workload::job(object),
        ("batch", "cronjobs") => workload::cron_job(object),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
            access::binding(object);
        }
        ("admissionregistration.k8s.io", plural) => access::admission(plural, object),
        ("networking.k8s.io", "networkpolicies") => networking::policy(object),
        ("networking.k8s.io", "ingressclasses") => networking::ingress_class(object),
        ("discovery.k8s.io", "endpointslices") => networking::endpoint_slice(object),
        ("scheduling.k8s.io", "priorityclasses") => with(object, |class| {
            fill::absent(class, "preemptionPolicy", || json!("PreemptLowerPriority"));
        }),
        ("storage.k8s.io", "storageclasses") => storage::class(object),
        ("storage.k8s.io", "csidrivers") => storage::driver(object),
        ("autoscaling", "horizontalpodautoscalers") => {
            autoscaling::autoscaler(&resource.version, object);
        }
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => {
            if let Some(spec) = fill::spec(object) {
                fill::number(spec, "matchingPrecedence", 1000);
            }
        }
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => {
            access::priority_level(object);
        }
        _ => {}
    }
}

fn core(plural: &str, object: &mut Value) {
    match plural {
        "pods" => pod::pod(object),
        "podtemplates" => with(object, pod::template_in),
        "replicationcontrollers" => workload::replication_controller(object),
        "services" => service::service(object),
        "endpoints" => with(object, |endpoints| {
            fill::each(endpoints.get_mut("subsets"), |subset| {
                fill::each(subset.get_mut("ports"), |port| fill::text(port, "protocol", "TCP"));
            });
        }),
        "secrets" => with(object, storage::secret),
        "namespaces" => namespace(object),
        "nodes" => {
            with(object, node);
            super::node::default_ranges(object);
        }
        "persistentvolumes" => storage::volume(object),
        "persistentvolumeclaims" => with(object, storage::claim),
        "limitranges" => {
            if let Some(spec) = fill::spec(object) {
                fill::each(spec.get_mut("limits"), storage::limit);
            }
        }
        _ => {}
    }
}

fn with(object: &mut Value, change: impl FnOnce(&mut Fields)) {
    if let Value::Object(fields) = object {
        change(fields);
    }
}

/// Every namespace can be selected by its own name.
fn namespace(object: &mut Value) {
    let name = crate::metadata::text(object, "name").to_owned();
    if name.is_empty() {
        return;
    }
    let metadata = crate::metadata::of(object);
    if let Some(labels) = fill::make(metadata, "labels") {
        labels.insert("kubernetes.io/metadata.name".into(), json!(name));
    }
}

/// A node that says nothing else gives all that it has.
fn node(node: &mut Fields) {
    let Some(status) = fill::fields(node.get_mut("status")) else { return };
    if let Some(capacity) = status.get("capacity").filter(|capacity| capacity.is_object()) {
        let capacity = capacity.clone();
        fill::absent(status, "allocatable", || capacity);
    }
}
