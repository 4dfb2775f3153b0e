//! Kubeconfigs: how clients find and trust the server.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::authority::Authority;

/// The user of our contexts. Contexts of this user are ours, whatever they are called.
const USER: &str = "convoy-admin";

/// How the contexts of a kubeconfig are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextNames {
    /// The context of the first cluster.
    pub first: String,
    /// What the names of other logical clusters follow.
    pub prefix: String,
}

impl Default for ContextNames {
    fn default() -> Self {
        Self { first: "convoy".to_owned(), prefix: "convoy-".to_owned() }
    }
}

impl ContextNames {
    /// The context of a cluster; the first one has the empty name.
    pub fn of(&self, cluster: &str) -> String {
        if cluster.is_empty() { self.first.clone() } else { format!("{}{cluster}", self.prefix) }
    }
}

/// A context for the first cluster, and one for each other logical cluster. Of two clusters whose
/// contexts would have the same name, the first one has it.
pub fn kubeconfig(
    authority: &Authority,
    url: &str,
    clusters: &[&str],
    names: &ContextNames,
) -> Value {
    let encoded = |pem: &str| STANDARD.encode(pem);
    let server = |name: &str| -> String {
        if name.is_empty() { url.to_owned() } else { format!("{url}/clusters/{name}") }
    };
    let mut taken = BTreeSet::new();
    let named: Vec<(String, &str)> = clusters
        .iter()
        .map(|cluster| (names.of(cluster), *cluster))
        .filter(|(context, _)| taken.insert(context.clone()))
        .collect();
    let contexts: Vec<Value> = named
        .iter()
        .map(|(name, _)| json!({"name": name, "context": {"cluster": name, "user": USER}}))
        .collect();
    let clusters: Vec<Value> = named
        .iter()
        .map(|(name, cluster)| {
            json!({"name": name, "cluster": {"server": server(cluster),
                "certificate-authority-data": encoded(&authority.certificate)}})
        })
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Config",
        "clusters": clusters, "contexts": contexts, "current-context": names.first,
        "users": [{"name": USER, "user": {
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
    let entries = |list: &str| existing.get(list).and_then(Value::as_array).into_iter().flatten();
    let earlier: BTreeSet<&str> = entries("contexts")
        .filter(|entry| entry["context"]["user"] == USER)
        .filter_map(|entry| entry["name"].as_str())
        .collect();
    for list in ["clusters", "contexts", "users"] {
        if let Some(Value::Array(new)) = merged.get_mut(list) {
            let is_ours = |entry: &Value| {
                let name = entry["name"].as_str().unwrap_or_default();
                let is_replaced = new.iter().any(|new| new["name"] == entry["name"]);
                is_replaced || is_default(name) || list != "users" && earlier.contains(name)
            };
            let others: Vec<Value> =
                entries(list).filter(|entry| !is_ours(entry)).cloned().collect();
            new.extend(others);
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

/// The names that this program gives without being told otherwise, and takes back.
fn is_default(name: &str) -> bool {
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
        let url = "https://127.0.0.1:6443";
        let config = kubeconfig(&authority, url, &["", "east"], &ContextNames::default());
        assert_eq!(config["contexts"][1]["name"], "convoy-east");
        let servers: Vec<&Value> = config["clusters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| &one["cluster"]["server"])
            .collect();
        assert_eq!(servers, ["https://127.0.0.1:6443", "https://127.0.0.1:6443/clusters/east"]);
    }

    #[test]
    fn contexts_have_the_names_that_were_asked_for() {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let authority = Authority::ephemeral(&["localhost".to_owned()], now).unwrap();
        let names = ContextNames { first: "hub".to_owned(), prefix: String::new() };
        let of = |clusters: &[&str]| kubeconfig(&authority, "https://localhost", clusters, &names);
        let contexts = |config: &Value| -> Vec<String> {
            let entries = config["contexts"].as_array().unwrap().iter();
            entries.map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
        };
        let both = of(&["", "east", "hub"]);
        assert_eq!(contexts(&both), ["hub", "east"], "each name once");
        assert_eq!(both["current-context"], "hub");
        assert_eq!(both["clusters"][0]["cluster"]["server"], "https://localhost");
        let mut mixed = both.clone();
        mixed["contexts"].as_array_mut().unwrap().push(json!({"name": "work"}));
        let one = merged(&mixed, of(&[""]));
        assert_eq!(contexts(&one), ["hub", "work"], "ours is taken back, theirs stays");
        assert_eq!(one["clusters"].as_array().unwrap().len(), 1);
    }
}
