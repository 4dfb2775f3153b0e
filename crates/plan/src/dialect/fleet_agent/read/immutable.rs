//! Fields that an API server does not let anybody change. A manifest that differs in one of them
//! cannot be applied as it is, so that a comparison by what applying would do has no meaning.

use convoy_api::Object;
use convoy_api::object::member::field;
use serde_json::Value;

/// Group and kind, and the paths that stay as they were created.
const FIXED: [(&str, &str, &[&str]); 14] = [
    ("apps", "Deployment", &["/spec/selector"]),
    ("apps", "DaemonSet", &["/spec/selector"]),
    ("apps", "ReplicaSet", &["/spec/selector"]),
    (
        "apps",
        "StatefulSet",
        &[
            "/spec/selector",
            "/spec/serviceName",
            "/spec/podManagementPolicy",
            "/spec/volumeClaimTemplates",
            "/spec/revisionHistoryLimit",
        ],
    ),
    ("batch", "Job", &["/spec/selector", "/spec/template", "/spec/completionMode"]),
    ("rbac.authorization.k8s.io", "RoleBinding", &["/roleRef"]),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding", &["/roleRef"]),
    ("", "Secret", &["/type"]),
    ("", "Service", &["/spec/clusterIP", "/spec/clusterIPs"]),
    ("", "ResourceQuota", &["/spec/scopes", "/spec/scopeSelector"]),
    (
        "",
        "PersistentVolumeClaim",
        &[
            "/spec/accessModes",
            "/spec/selector",
            "/spec/storageClassName",
            "/spec/volumeMode",
            "/spec/dataSource",
            "/spec/dataSourceRef",
        ],
    ),
    (
        "storage.k8s.io",
        "StorageClass",
        &["/provisioner", "/parameters", "/reclaimPolicy", "/volumeBindingMode"],
    ),
    ("scheduling.k8s.io", "PriorityClass", &["/value"]),
    ("networking.k8s.io", "IngressClass", &["/spec/controller"]),
];

/// Fields of ConfigMaps and Secrets that say that they never change.
const FROZEN: [&str; 4] = ["/data", "/binaryData", "/immutable", "/stringData"];

/// Whether a server refuses to change what is at `path` of `live`.
pub(crate) fn is_immutable(live: &Object, path: &str) -> bool {
    let kind = live.kind();
    let within = |fixed: &str| {
        path.strip_prefix(fixed).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let is_frozen = kind.group.is_empty()
        && ["ConfigMap", "Secret"].contains(&kind.kind.as_str())
        && *field(live.raw(), "immutable") == Value::Bool(true);
    let mut rows =
        FIXED.iter().filter(|(group, name, _)| kind.group == *group && kind.kind == *name);
    rows.any(|(_, _, paths)| paths.iter().any(|fixed| within(fixed)))
        || is_frozen && FROZEN.iter().any(|fixed| within(fixed))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_fixed_by_kind_and_by_what_objects_say() {
        let object = |api: &str, kind: &str, immutable: bool| {
            let raw = json!({"apiVersion": api, "kind": kind, "metadata": {"name": "a"},
                "immutable": immutable});
            Object::from_value(raw).unwrap()
        };
        let cases = [
            ("apps/v1", "Deployment", false, "/spec/selector/matchLabels/app", true),
            ("apps/v1", "Deployment", false, "/spec/selectors", false),
            ("apps/v1", "Deployment", false, "/spec/replicas", false),
            ("v1", "ConfigMap", false, "/data/a", false),
            ("v1", "ConfigMap", true, "/data/a", true),
            ("v1", "Secret", false, "/type", true),
            ("example.com/v1", "Secret", true, "/data/a", false),
        ];
        for (api, kind, immutable, path, expected) in cases {
            let live = object(api, kind, immutable);
            assert_eq!(is_immutable(&live, path), expected, "{api} {kind} {path}");
        }
    }
}
