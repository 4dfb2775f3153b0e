//! Kubeconfigs: how clients find and trust the server.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::authority::Authority;

/// A context for the first cluster, `convoy`, and one for each other logical cluster.
pub fn kubeconfig(authority: &Authority, url: &str, clusters: &[&str]) -> Value {
    let encoded = |pem: &str| STANDARD.encode(pem);
    let named = |name: &str| -> String {
        if name.is_empty() { "convoy".to_owned() } else { format!("convoy-{name}") }
    };
    let server = |name: &str| -> String {
        if name.is_empty() { url.to_owned() } else { format!("{url}/clusters/{name}") }
    };
    let contexts: Vec<Value> = clusters
        .iter()
        .map(|name| json!({"name": named(name), "context": {"cluster": named(name), "user": "convoy-admin"}}))
        .collect();
    let clusters: Vec<Value> = clusters
        .iter()
        .map(|name| {
            json!({"name": named(name), "cluster": {
            "server": server(name), "certificate-authority-data": encoded(&authority.certificate)}})
        })
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Config",
        "clusters": clusters, "contexts": contexts, "current-context": "convoy",
        "users": [{"name": "convoy-admin", "user": {
            "client-certificate-data": encoded(&authority.admin.certificate),
            "client-key-data": encoded(&authority.admin.key)}}],
        "preferences": {},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cluster_has_a_context() {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let authority = Authority::ephemeral(&["localhost".to_owned()], now).unwrap();
        let config = kubeconfig(&authority, "https://127.0.0.1:6443", &["", "east"]);
        assert_eq!(config["contexts"][1]["name"], "convoy-east");
        let servers: Vec<&Value> = config["clusters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| &one["cluster"]["server"])
            .collect();
        assert_eq!(servers, ["https://127.0.0.1:6443", "https://127.0.0.1:6443/clusters/east"]);
    }
}
