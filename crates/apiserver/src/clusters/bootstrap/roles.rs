//! The table of default roles and bindings as objects.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::{Map, Value, json};
use smol_str::SmolStr;

use super::template::{AUTO_UPDATE, Care, Plan, Template};
use crate::access::{Role, aggregate, read_rule};

const TABLE: &str = include_str!("roles.txt");
const API_VERSION: &str = "rbac.authorization.k8s.io/v1";
const GROUP: &str = "rbac.authorization.k8s.io";

/// The default roles and bindings, ready to be stamped.
pub(super) fn templates() -> &'static [Template] {
    static TEMPLATES: OnceLock<Vec<Template>> = OnceLock::new();
    TEMPLATES.get_or_init(|| {
        let plans = objects().into_iter().map(|object| Plan { object, care: Care::Complete });
        plans.map(|plan| Template::of(&plan)).collect()
    })
}

/// The default roles and bindings.
pub(super) fn objects() -> Vec<Value> {
    let mut objects: Vec<Value> = Vec::new();
    for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if line.starts_with(' ') {
            let rule = read_rule(line).expect("a rule of the table");
            let role = objects.last_mut().expect("rules follow their role");
            let rules = role["rules"].as_array_mut().expect("only roles have rules");
            rules.push(json!(rule));
        } else {
            objects.push(read_object(line).expect("a role or binding of the table"));
        }
    }
    add_sums(&mut objects);
    objects
}

fn read_object(line: &str) -> Option<Value> {
    let mut words = line.split_whitespace();
    match words.next()? {
        "clusterrole" => Some(role("ClusterRole", "", words.next()?, words)),
        "role" => Some(role("Role", words.next()?, words.next()?, words)),
        "clusterrolebinding" => binding("ClusterRoleBinding", "", words),
        "rolebinding" => {
            let namespace = words.next()?;
            binding("RoleBinding", namespace, words)
        }
        _ => None,
    }
}

fn role<'t>(
    kind: &str,
    namespace: &str,
    name: &str,
    marks: impl Iterator<Item = &'t str>,
) -> Value {
    let mut object = base(kind, namespace, name);
    object["rules"] = json!([]);
    for mark in marks {
        let (label, aggregates) = mark.split_at(1);
        let key = format!("{GROUP}/{aggregates}");
        if label == "+" {
            object["metadata"]["labels"][key] = json!("true");
        } else {
            object["aggregationRule"] =
                json!({"clusterRoleSelectors": [{"matchLabels": {key: "true"}}]});
        }
    }
    object
}

fn binding<'t>(
    kind: &str,
    namespace: &str,
    mut words: impl Iterator<Item = &'t str>,
) -> Option<Value> {
    let mut object = base(kind, namespace, words.next()?);
    let (role_kind, role_name) = words.next()?.split_once('/')?;
    let role_kind = if role_kind == "role" { "Role" } else { "ClusterRole" };
    object["roleRef"] = json!({"apiGroup": GROUP, "kind": role_kind, "name": role_name});
    let subjects: Option<Vec<Value>> = words.map(subject).collect();
    object["subjects"] = Value::Array(subjects?);
    Some(object)
}

fn subject(word: &str) -> Option<Value> {
    let (kind, name) = word.split_once(':')?;
    match kind {
        "user" => Some(json!({"kind": "User", "apiGroup": GROUP, "name": name})),
        "group" => Some(json!({"kind": "Group", "apiGroup": GROUP, "name": name})),
        "account" => {
            let (namespace, name) = name.split_once('/')?;
            Some(json!({"kind": "ServiceAccount", "name": name, "namespace": namespace}))
        }
        _ => None,
    }
}

fn base(kind: &str, namespace: &str, name: &str) -> Value {
    let mut metadata = Map::new();
    metadata.insert("name".into(), json!(name));
    if !namespace.is_empty() {
        metadata.insert("namespace".into(), json!(namespace));
    }
    metadata.insert("labels".into(), json!({"kubernetes.io/bootstrapping": "rbac-defaults"}));
    metadata.insert("annotations".into(), json!({AUTO_UPDATE: "true"}));
    json!({"kind": kind, "apiVersion": API_VERSION, "metadata": metadata})
}

/// Fills in the rules of roles that are sums of others.
fn add_sums(objects: &mut [Value]) {
    let roles: BTreeMap<SmolStr, Role> = objects
        .iter()
        .filter(|object| object["kind"] == "ClusterRole")
        .filter_map(|object| {
            let name = SmolStr::new(object["metadata"]["name"].as_str()?);
            Some((name, Role::read(object.to_string().as_bytes())?))
        })
        .collect();
    let sums = aggregate::sums(&roles.iter().collect());
    for object in objects.iter_mut().filter(|object| !object["aggregationRule"].is_null()) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        object["rules"] = json!(sums[name]);
    }
}
