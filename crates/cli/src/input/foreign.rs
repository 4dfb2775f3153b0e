//! Files that lie among manifests and hold no Kubernetes objects: in a directory they are passed
//! over with a note.

use std::path::Path;

use convoy_api::object::member::text;
use serde_json::Value;

/// What a document found in a directory is, if it is no object and not meant to be one.
pub(super) fn description(file: &str, document: &Value) -> Option<&'static str> {
    let name = Path::new(file).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let api_version = text(document, "apiVersion");
    let is_kustomization = name == "kustomization.yaml" || name == "kustomization.yml";
    if is_kustomization || api_version.starts_with("kustomize.config.k8s.io/") {
        return Some("a kustomization; validate what `kubectl kustomize` prints");
    }
    if name == "Chart.yaml" {
        return Some("a Helm chart; validate what `helm template` prints");
    }
    if api_version.starts_with("skaffold/") {
        return Some("a Skaffold configuration");
    }
    let is_object =
        ["apiVersion", "kind", "metadata"].iter().any(|key| document.get(key).is_some());
    if is_object {
        return None;
    }
    Some(if name.starts_with("values") {
        "values of a Helm chart; validate what `helm template` prints"
    } else {
        "not a Kubernetes object: it has neither apiVersion nor kind"
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_meant_to_be_an_object_is_one() {
        let is_foreign = |file: &str, document: Value| description(file, &document).is_some();
        assert!(is_foreign("a/kustomization.yaml", json!({"resources": []})));
        assert!(is_foreign(
            "b.yaml",
            json!({"apiVersion": "kustomize.config.k8s.io/v1alpha1",
            "kind": "Component"})
        ));
        assert!(is_foreign("Chart.yaml", json!({"apiVersion": "v2", "name": "web"})));
        assert!(is_foreign("values-prod.yaml", json!({"image": "web:1"})));
        assert!(is_foreign("package.json", json!([1])));
        assert!(!is_foreign("a.yaml", json!({"apiVersion": "v1", "metadata": {"name": "a"}})));
        assert!(!is_foreign("a.yaml", json!({"kind": "Node"})));
    }
}
