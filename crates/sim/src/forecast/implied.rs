//! What the objects of a hub imply and do not contain: the requests to agents of clusters that have
//! joined, and the definitions of custom kinds that members must have.

use std::collections::BTreeMap;

use convoy_api::kinds::NAMESPACE;
use convoy_api::object::member::{field, list, text};
use convoy_api::ocm::names::MANIFEST_WORK;
use convoy_api::{GroupKind, Object};
use convoy_plan::World;
use convoy_plan::dialect::fleet::names::{
    INTERNAL_MEMBER_CLUSTER, MEMBER_CLUSTER, MEMBER_NAMESPACE_PREFIX, WORK,
};
use serde_json::{Value, json};
use smol_str::SmolStr;

use crate::node::uuid;
use crate::seed::Seed;

/// The `InternalMemberCluster`s, and their namespaces, of clusters that have joined without one: of
/// some hubs only a part of the objects is given. The hub makes those of clusters that are new.
pub(super) fn requests_to_agents(given: &World, applied: &World) -> Vec<Object> {
    let find = |kind: &GroupKind, namespace: &str, name: &str| {
        given.find(kind, namespace, name).or_else(|| applied.find(kind, namespace, name))
    };
    let has_joined = |member: &&Object| {
        !field(member.status(), "conditions").is_null()
            || !field(member.status(), "agentStatus").is_null()
    };
    let members = given.of(&MEMBER_CLUSTER).filter(|member| !member.is_deleting());
    let mut implied: Vec<Value> = Vec::new();
    for member in members.filter(has_joined) {
        let name = member.name().as_str();
        let home = format!("{MEMBER_NAMESPACE_PREFIX}{name}");
        if find(&INTERNAL_MEMBER_CLUSTER, &home, name).is_some() {
            continue;
        }
        if find(&NAMESPACE, "", &home).is_none() {
            implied.push(json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": home, "uid": uid("namespace", &home)}}));
        }
        let period = field(member.spec(), "heartbeatPeriodSeconds");
        let metadata = json!({"name": name, "namespace": home, "generation": 1,
            "uid": uid("internal member cluster", name)});
        let mut request = json!({"apiVersion": member.api_version(),
            "kind": INTERNAL_MEMBER_CLUSTER.kind, "metadata": metadata,
            "spec": {"state": "Join"}});
        if !period.is_null() {
            request["spec"]["heartbeatPeriodSeconds"] = period.clone();
        }
        implied.push(request);
    }
    implied.into_iter().filter_map(|raw| Object::from_value(raw).ok()).collect()
}

/// The definitions of custom kinds of which a Work or ManifestWork says that an object was applied:
/// its member has them, whoever installed them there.
pub(super) fn definitions_of_members(objects: &[Object]) -> Vec<Object> {
    let mut found: BTreeMap<(SmolStr, String), Value> = BTreeMap::new();
    for work in objects {
        let (member, entries, identifier) = if *work.kind() == WORK {
            let Some(member) = work.namespace().strip_prefix(MEMBER_NAMESPACE_PREFIX) else {
                continue;
            };
            (SmolStr::new(member), list(work.status(), "manifestConditions"), "identifier")
        } else if *work.kind() == MANIFEST_WORK {
            let resources = field(work.status(), "resourceStatus");
            (work.namespace().clone(), list(resources, "manifests"), "resourceMeta")
        } else {
            continue;
        };
        let applied = entries.iter().filter(|entry| is_applied(entry));
        for meta in applied.map(|entry| field(entry, identifier)) {
            if let Some((name, definition)) = definition(meta) {
                found.insert((member.clone(), name), definition);
            }
        }
    }
    let placed = |((member, _), raw): ((SmolStr, _), _)| {
        Object::from_value(raw).ok().map(|object| object.in_cluster(&member))
    };
    found.into_iter().filter_map(placed).collect()
}

fn is_applied(entry: &Value) -> bool {
    let is_it = |condition: &Value| {
        text(condition, "type") == "Applied" && text(condition, "status") == "True"
    };
    list(entry, "conditions").iter().any(is_it)
}

/// The definition of a kind that an agent has applied an object of, and its name. None: the kind is
/// one of Kubernetes.
fn definition(meta: &Value) -> Option<(String, Value)> {
    let [group, version, kind, plural] =
        ["group", "version", "kind", "resource"].map(|name| text(meta, name));
    let group_kind = GroupKind { group: group.into(), kind: kind.into() };
    let is_custom = group.contains('.') && convoy_plan::is_namespaced(&group_kind).is_none();
    if !is_custom || version.is_empty() || kind.is_empty() || plural.is_empty() {
        return None;
    }
    let name = format!("{plural}.{group}");
    let scope = if text(meta, "namespace").is_empty() { "Cluster" } else { "Namespaced" };
    let version = json!({"name": version, "served": true, "storage": true});
    let raw = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "uid": uid("definition", &name)},
        "spec": {"group": group, "scope": scope, "versions": [version],
            "names": {"kind": kind, "plural": plural}},
        "status": {"conditions": [{"type": "NamesAccepted", "status": "True"},
            {"type": "Established", "status": "True"}]}});
    Some((name, raw))
}

fn uid(what: &str, name: &str) -> String {
    uuid(Seed::new(0).child(what, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_the_custom_kinds_of_objects_that_were_applied() {
        let entry = |kind: &str, group: &str, applied: &str| {
            json!({"identifier": {"group": group, "version": "v1", "kind": kind,
                    "resource": format!("{}s", kind.to_lowercase()), "namespace": "shop", "name": "a"},
                "conditions": [{"type": "Applied", "status": applied}]})
        };
        let work = json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "Work",
            "metadata": {"name": "w", "namespace": "fleet-member-eu"},
            "status": {"manifestConditions": [entry("Widget", "example.com", "True"),
                entry("Gadget", "example.com", "False"), entry("Deployment", "apps", "True"),
                entry("Ingress", "networking.k8s.io", "True")]}});
        let found = definitions_of_members(&[Object::from_value(work).unwrap()]);
        let keys: Vec<_> =
            found.iter().map(|it| (it.key().cluster.as_str(), it.name().as_str())).collect();
        assert_eq!(keys, [("eu", "widgets.example.com")]);
    }
}
