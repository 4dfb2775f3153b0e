//! The place of a member on the hub, and what its agent may do there.

use convoy_api::{GroupKind, Object};
use serde_json::{Value, json};

use crate::dialect::fleet::decide::membership::home;
use crate::dialect::fleet::names::kind::NAMESPACE;
use crate::dialect::fleet::names::{CLUSTER_GROUP, PLACEMENT_GROUP};
use crate::dialect::fleet::read::placement::{field, text};
use crate::step::{Action, Verb, Why};

const RBAC: &str = "rbac.authorization.k8s.io";
pub(crate) const ROLE: GroupKind = GroupKind::new(RBAC, "Role");
pub(crate) const ROLE_BINDING: GroupKind = GroupKind::new(RBAC, "RoleBinding");

pub(crate) fn role_name(member: &Object) -> String {
    format!("fleet-role-{}", member.name())
}

pub(crate) fn role_binding_name(member: &Object) -> String {
    format!("fleet-rolebinding-{}", member.name())
}

pub(crate) fn namespace_created(member: &Object) -> Action {
    let home = home(member.name());
    let object = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": home, "labels": {"kubernetes-fleet.io/is-fleet-resource": "true"}},
    });
    let target = member.key().sibling(&NAMESPACE, "", &home);
    Action::create(Verb::Create, target, object, why(member))
}

/// An agent reads and reports on what lies in its own namespace, and nothing else.
pub(crate) fn role_created(member: &Object) -> Action {
    let verbs = ["get", "list", "watch", "create", "update", "patch", "delete"];
    let rules = json!([
        {"apiGroups": [CLUSTER_GROUP], "verbs": verbs,
            "resources": ["internalmemberclusters", "internalmemberclusters/status"]},
        {"apiGroups": [PLACEMENT_GROUP], "verbs": verbs,
            "resources": ["works", "works/status", "works/finalizers"]},
        {"apiGroups": ["", "events.k8s.io"], "verbs": ["create", "patch", "update"],
            "resources": ["events"]},
    ]);
    let name = role_name(member);
    let mut object = object(member, &ROLE, &name);
    object["rules"] = rules;
    created(member, &ROLE, &name, object)
}

pub(crate) fn role_binding_created(member: &Object) -> Action {
    let identity = field(member.spec(), "identity");
    let kind = text(identity, "kind");
    let mut subject = json!({"kind": kind, "name": text(identity, "name")});
    match kind {
        "ServiceAccount" => subject["namespace"] = json!(text(identity, "namespace")),
        // Users and groups are named within the group of the rights themselves.
        _ => subject["apiGroup"] = json!(RBAC),
    }
    let name = role_binding_name(member);
    let mut object = object(member, &ROLE_BINDING, &name);
    object["roleRef"] = json!({"apiGroup": RBAC, "kind": "Role", "name": role_name(member)});
    object["subjects"] = json!([subject]);
    created(member, &ROLE_BINDING, &name, object)
}

fn object(member: &Object, kind: &GroupKind, name: &str) -> Value {
    json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": home(member.name())},
    })
}

fn created(member: &Object, kind: &GroupKind, name: &str, object: Value) -> Action {
    let target = member.key().sibling(kind, &home(member.name()), name);
    Action::create(Verb::Create, target, object, why(member))
}

fn why(member: &Object) -> Why {
    Why::new("MemberJoining", format!("cluster {} gets its place on the hub", member.name()))
}
