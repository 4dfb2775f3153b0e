//! Warnings about valid objects whose fields have no effect, or not the effect that they seem to
//! have.

use convoy_api::well_known::{former_label, label};

use super::at::At;

/// Labels of nodes that have newer names, and since when.
const LABELS: [(&str, &str, &str); 5] = [
    (former_label::ARCH, "v1.14", label::ARCH),
    (former_label::OS, "v1.14", label::OS),
    (former_label::INSTANCE_TYPE, "v1.17", label::INSTANCE_TYPE),
    (former_label::REGION, "v1.17", label::REGION),
    (former_label::ZONE, "v1.17", label::ZONE),
];

const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// About a pod, or what an object makes pods from.
pub(super) fn of_pod(pod: &At<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    places(&pod.get("spec"), &mut warnings);
    for (index, alias) in pod.get("spec.hostAliases").items().iter().enumerate() {
        let ip = alias.get("ip");
        let before = pod.get("spec.hostAliases").items().into_iter().take(index);
        if before.into_iter().any(|other| other.get("ip").text() == ip.text()) {
            warnings.push(format!("{}: duplicate ip {:?}", ip.path, ip.text()));
        }
    }
    for secret in pod.get("spec.imagePullSecrets").items() {
        if secret.get("name").is_empty() {
            warnings.push(format!("{}.name: invalid empty name \"\"", secret.path));
        }
    }
    for list in ["spec.initContainers", "spec.containers"] {
        for container in pod.get(list).items() {
            variables(&container, &mut warnings);
        }
    }
    annotations(&pod.get("metadata.annotations"), &mut warnings);
    for container in pod.get("spec.containers").items() {
        ports(&container, &mut warnings);
    }
    warnings
}

/// Where pods may run, by labels of nodes.
fn places(spec: &At<'_>, warnings: &mut Vec<String>) {
    let newer = |label: &str| LABELS.iter().find(|(old, ..)| *old == label);
    for (label, at) in spec.get("nodeSelector").entries() {
        if let Some((_, since, new)) = newer(label) {
            warnings.push(format!("{}: deprecated since {since}; use {new:?} instead", at.path));
        }
    }
    for constraint in spec.get("topologySpreadConstraints").items() {
        let key = constraint.get("topologyKey");
        if let Some((old, since, new)) = newer(key.text()) {
            let at = &key.path;
            warnings.push(format!("{at}: {old} is deprecated since {since}; use {new:?} instead"));
        }
        if constraint.get("labelSelector").is_absent() {
            let at = constraint.get("labelSelector").path;
            warnings.push(format!("{at}: a null labelSelector results in matching no pod"));
        }
    }
}

fn variables(container: &At<'_>, warnings: &mut Vec<String>) {
    let mut seen: Vec<&str> = Vec::new();
    for variable in container.get("env").items() {
        let name = variable.get("name").text();
        if seen.contains(&name) {
            let at = &variable.path;
            warnings.push(format!(
                "{at}: hides previous definition of {name:?}, which may be dropped when using apply"
            ));
        }
        seen.push(name);
    }
}

fn annotations(annotations: &At<'_>, warnings: &mut Vec<String>) {
    for (name, at) in annotations.entries() {
        if name == SECCOMP_POD || name.starts_with(SECCOMP_CONTAINER) {
            warnings.push(format!(
                "{}: non-functional in v1.27+; use the \"seccompProfile\" field instead",
                at.path
            ));
        } else if name.starts_with(APP_ARMOR) {
            warnings.push(format!(
                "{}: deprecated since v1.30; use the \"appArmorProfile\" field instead",
                at.path
            ));
        }
    }
}

fn ports(container: &At<'_>, warnings: &mut Vec<String>) {
    let ports = container.get("ports").items();
    for (index, port) in ports.iter().enumerate() {
        let is_same = |other: &&At<'_>| {
            let equal = |field: &str| other.get(field).value == port.get(field).value;
            ["containerPort", "hostPort", "protocol", "hostIP"].into_iter().all(equal)
        };
        if let Some(other) = ports[..index].iter().find(is_same) {
            let (at, other) = (&port.path, &other.path);
            warnings.push(format!("{at}: duplicate port definition with {other}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::kinds::warnings_of;
    use crate::registry::builtin;

    #[test]
    fn odd_values_in_pods_are_told() {
        let resource = builtin().get("apps", "v1", "deployments").unwrap();
        let port = json!({"containerPort": 80, "protocol": "TCP"});
        let container = json!({"name": "a", "ports": [port, port],
            "env": [{"name": "X", "value": "1"}, {"name": "X", "value": "2"}]});
        let template = json!({"spec": {"nodeSelector": {"beta.kubernetes.io/os": "linux"},
            "containers": [container]}});
        let told = warnings_of(resource, &json!({"spec": {"template": template}}));
        assert_eq!(
            told,
            [
                "spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead",
                "spec.template.spec.containers[0].env[1]: hides previous definition of \"X\", which may be dropped when using apply",
                "spec.template.spec.containers[0].ports[1]: duplicate port definition with spec.template.spec.containers[0].ports[0]",
            ]
        );
        assert!(warnings_of(builtin().get("", "v1", "secrets").unwrap(), &json!({})).is_empty());
    }
}
