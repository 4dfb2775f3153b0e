//! The names that quotas have for what they limit.

use convoy_api::well_known::DOMAIN;

const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";
const DEVICE_CLASS: &str = ".deviceclass.resource.k8s.io/devices";

pub(super) const PODS: &str = "pods";
pub(super) const CLAIMS: &str = "persistentvolumeclaims";
pub(super) const SERVICES: &str = "services";
pub(super) const DEVICE_CLAIMS: &str = "resourceclaims.resource.k8s.io";

/// The resource whose objects are counted under a name, as `pods` or `jobs.batch`; none if
/// nothing is.
pub fn resource_of(name: &str) -> Option<&str> {
    if let Some(counted) = name.strip_prefix("count/") {
        return Some(counted);
    }
    let (_, of_class) = name.split_once(STORAGE_CLASS).unwrap_or(("", ""));
    Some(match name {
        "configmaps" | "resourcequotas" | "replicationcontrollers" | "secrets" => name,
        "services" | "services.nodeports" | "services.loadbalancers" => SERVICES,
        "persistentvolumeclaims" | "requests.storage" => CLAIMS,
        _ if matches!(of_class, "persistentvolumeclaims" | "requests.storage") => CLAIMS,
        _ if name.ends_with(DEVICE_CLASS) => DEVICE_CLAIMS,
        "pods" => PODS,
        _ if is_compute(name) => PODS,
        _ => return None,
    })
}

fn is_compute(name: &str) -> bool {
    let of = |prefix: &str| name.strip_prefix(prefix);
    let is_native = |name: &str| matches!(name, "cpu" | "memory" | "ephemeral-storage");
    is_native(name)
        || name.starts_with("hugepages-")
        || of("limits.").is_some_and(is_native)
        || of("requests.").is_some_and(|rest| {
            is_native(rest) || rest.starts_with("hugepages-") || is_extended(rest)
        })
}

/// Whether a resource is one that a device plugin brings, not one of Kubernetes' own.
pub(super) fn is_extended(resource: &str) -> bool {
    resource.starts_with("deviceclass.resource.kubernetes.io/")
        || resource.contains('/') && !resource.contains(DOMAIN)
}

/// `gold.storageclass.storage.k8s.io/requests.storage`.
pub(super) fn of_storage_class(class: &str, name: &str) -> String {
    format!("{class}{STORAGE_CLASS}{name}")
}

/// `gpu.deviceclass.resource.k8s.io/devices`.
pub(super) fn of_device_class(class: &str) -> String {
    format!("{class}{DEVICE_CLASS}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_is_counted() {
        let cases = [
            ("count/widgets.example.com", Some("widgets.example.com")),
            ("count/pods", Some("pods")),
            ("secrets", Some("secrets")),
            ("services.nodeports", Some("services")),
            ("requests.storage", Some(CLAIMS)),
            ("gold.storageclass.storage.k8s.io/requests.storage", Some(CLAIMS)),
            ("gpu.deviceclass.resource.k8s.io/devices", Some(DEVICE_CLAIMS)),
            ("limits.memory", Some("pods")),
            ("requests.example.com/gpu", Some("pods")),
            ("requests.hugepages-2Mi", Some("pods")),
            ("limits.example.com/gpu", None),
            ("example.com/gpu", None),
            ("requests.speed", None),
        ];
        for (name, resource) in cases {
            assert_eq!(resource_of(name), resource, "{name}");
        }
    }
}
