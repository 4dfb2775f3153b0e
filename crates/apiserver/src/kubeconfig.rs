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

/// Puts our entries into a kubeconfig that may hold those of others: what is not ours stays, and
/// so does the current context as long as there is one of its name.
pub fn merged(existing: &Value, ours: Value) -> Value {
    let Value::Object(existing) = existing else { return ours };
    let Value::Object(mut merged) = ours else { return ours };
    for list in ["clusters", "contexts", "users"] {
        let others = existing.get(list).and_then(Value::as_array).into_iter().flatten();
        let others = others.filter(|entry| !is_ours(entry["name"].as_str().unwrap_or_default()));
        if let Some(Value::Array(entries)) = merged.get_mut(list) {
            entries.extend(others.cloned());
        }
    }
    let current = existing.get("current-context").and_then(Value::as_str).unwrap_or_default();
    if merged["contexts"].as_array().is_some_and(|all| all.iter().any(|one| one["name"] == current))
    {
        merged.insert("current-context".to_owned(), json!(current));
    }
    for (field, value) in existing {
        merged.entry(field).or_insert_with(|| value.clone());
    }
    Value::Object(merged)
}

/// The names that this program gives, and takes back.
fn is_ours(name: &str) -> bool {
    name == "convoy" || name.starts_with("convoy-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_keep_in_the_file_stays() {
        let ours = |names: &[&str]| -> Value {
            let entries = |form: fn(&str) -> Value| -> Value {
                names.iter().map(|name| form(name)).collect()
            };
            json!({"apiVersion": "v1", "kind": "Config", "current-context": "convoy",
                "clusters": entries(|name| json!({"name": name, "cluster": {"server": "new"}})),
                "contexts": entries(|name| json!({"name": name, "context": {"cluster": name}})),
                "users": [{"name": "convoy-admin"}]})
        };
        assert_eq!(merged(&Value::Null, ours(&["convoy"])), ours(&["convoy"]));
        let existing = json!({"apiVersion": "v1", "kind": "Config", "current-context": "convoy-east",
            "clusters": [{"name": "convoy", "cluster": {"server": "old"}}, {"name": "work"}],
            "contexts": [{"name": "convoy"}, {"name": "convoy-east"}, {"name": "work"}],
            "users": [{"name": "me"}], "extensions": [{"name": "theirs"}]});
        let both = merged(&existing, ours(&["convoy", "convoy-east"]));
        let names = |config: &Value, list: &str| -> Vec<String> {
            let entries = config[list].as_array().unwrap().iter();
            entries.map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names(&both, "clusters"), ["convoy", "convoy-east", "work"]);
        assert_eq!(both["clusters"][0]["cluster"]["server"], "new");
        assert_eq!(names(&both, "users"), ["convoy-admin", "me"]);
        assert_eq!(both["current-context"], "convoy-east");
        assert_eq!(both["extensions"], existing["extensions"]);
        let without = merged(&both, ours(&["convoy"]));
        assert_eq!(names(&without, "contexts"), ["convoy", "work"]);
        assert_eq!(without["current-context"], "convoy", "the other one went");
    }

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
