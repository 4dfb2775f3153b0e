//! Executors: a work may be applied on behalf of a service account of the member, which then needs
//! the rights to do it itself. They are read from the roles and bindings there.

use convoy_api::kinds::{CLUSTER_ROLE, CLUSTER_ROLE_BINDING, RBAC_GROUP, ROLE, ROLE_BINDING};
use convoy_api::object::member::{field, list, text};
use convoy_api::rbac::{Attributes, Rule, missing};
use convoy_api::{GroupKind, Object, ObjectKey};
use serde_json::Value;

use super::manifest::Item;
use crate::snapshot::Snapshot;

/// What is read of a member where works have executors.
pub(crate) static RIGHTS: [GroupKind; 4] = [CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING];

/// Whom a work is applied on behalf of.
#[derive(Clone, Debug)]
pub(crate) struct Executor<'a, 'w> {
    snapshot: &'a Snapshot<'w>,
    member: &'a str,
    namespace: &'w str,
    name: &'w str,
}

/// Whether a work has an executor, however it is written.
pub(crate) fn has_executor(work: &Object) -> bool {
    field(work.spec(), "executor").is_object()
}

/// None: the agent applies the work with its own rights. An error says why nobody can.
pub(crate) fn executor<'a, 'w>(
    snapshot: &'a Snapshot<'w>,
    member: &'a str,
) -> Result<Option<Executor<'a, 'w>>, &'static str> {
    let work: &'w Object = snapshot.rollout();
    if !has_executor(work) {
        return Ok(None);
    }
    let subject = field(field(work.spec(), "executor"), "subject");
    if text(subject, "type") != "ServiceAccount" {
        return Err("only support ServiceAccount type for the executor");
    }
    let account = field(subject, "serviceAccount");
    if !account.is_object() {
        return Err("the executor service account is nil");
    }
    let (namespace, name) = (text(account, "namespace"), text(account, "name"));
    Ok(Some(Executor { snapshot, member, namespace, name }))
}

impl<'w> Executor<'_, 'w> {
    /// Why a manifest is not applied; none if the executor may.
    pub(crate) fn refusal(&self, item: &Item<'_>, is_owned: bool) -> Option<String> {
        let identifier = &item.identifier;
        let (group, namespace) = (identifier.kind.group.as_str(), identifier.namespace.as_str());
        let held = self.held(namespace);
        let verbs = ["create", "update", "patch", "get", "delete"];
        let may = |verb: &&str| {
            let wanted = Attributes::on(verb, group, &item.resource, namespace, &identifier.name);
            held.iter().any(|rule| rule.allows(&wanted))
        };
        let why = if verbs.iter().take(4 + usize::from(is_owned)).all(may) {
            self.escalation(item, &held)?
        } else {
            String::new()
        };
        Some(format!(
            "not allowed to apply the resource {group} {}, {namespace} {}{why}, will try again in \
             1m0s",
            item.resource, identifier.name
        ))
    }

    /// A role or a binding must not give more than the executor has. What a role gives that is not
    /// there yet is not known.
    fn escalation(&self, item: &Item<'_>, held: &[Rule]) -> Option<String> {
        let identifier = &item.identifier;
        if identifier.kind.group != RBAC_GROUP {
            return None;
        }
        let namespace = identifier.namespace.as_str();
        let (verb, resource, name, wanted) = match item.resource.as_str() {
            "roles" | "clusterroles" => {
                let given = Some(rules(item.raw));
                ("escalate", item.resource.as_str(), identifier.name.as_str(), given)
            }
            "rolebindings" | "clusterrolebindings" => {
                let role = field(item.raw, "roleRef");
                let is_local = text(role, "kind") == "Role";
                let resource = if is_local { "roles" } else { "clusterroles" };
                let wanted = self.role(role, namespace).map(|role| rules(role.raw()));
                ("bind", resource, text(role, "name"), wanted)
            }
            _ => return None,
        };
        let free = Attributes::on(verb, RBAC_GROUP, resource, namespace, name);
        if held.iter().any(|rule| rule.allows(&free)) {
            return None;
        }
        match wanted {
            None => Some(format!(", error: {resource} {name:?} not found")),
            Some(wanted) if missing(held, &wanted).is_empty() => None,
            Some(_) => Some(", error: permission escalation".to_owned()),
        }
    }

    /// The rules that the executor has in a namespace, those of the whole cluster included.
    fn held(&self, namespace: &str) -> Vec<Rule> {
        let is_local = |it: &&Object| !namespace.is_empty() && it.namespace() == namespace;
        let local = self.of(&ROLE_BINDING).into_iter().filter(is_local);
        let bindings = self.of(&CLUSTER_ROLE_BINDING).into_iter().chain(local);
        let bindings = bindings.filter(|it| list(it.raw(), "subjects").iter().any(|s| self.is(s)));
        let roles = bindings.filter_map(|it| self.role(field(it.raw(), "roleRef"), it.namespace()));
        roles.flat_map(|role| rules(role.raw())).collect()
    }

    fn of(&self, kind: &GroupKind) -> Vec<&'w Object> {
        let all = self.snapshot.of(kind).iter().copied();
        all.filter(|it| it.key().cluster == self.member).collect()
    }

    /// The role that a binding in `namespace` names.
    fn role(&self, reference: &Value, namespace: &str) -> Option<&'w Object> {
        let name = text(reference, "name");
        let key = match text(reference, "kind") {
            "ClusterRole" => CLUSTER_ROLE.key("", name),
            "Role" if !namespace.is_empty() => ROLE.key(namespace, name),
            _ => return None,
        };
        self.snapshot.get(&ObjectKey { cluster: self.member.into(), ..key })
    }

    /// Whether a subject of a binding is the executor, or a group that it is in.
    fn is(&self, subject: &Value) -> bool {
        let Self { namespace, name, .. } = self;
        let given = text(subject, "name");
        match text(subject, "kind") {
            "ServiceAccount" => given == *name && text(subject, "namespace") == *namespace,
            "User" => given == format!("system:serviceaccount:{namespace}:{name}"),
            "Group" => {
                ["system:serviceaccounts", "system:authenticated"].contains(&given)
                    || given == format!("system:serviceaccounts:{namespace}")
            }
            _ => false,
        }
    }
}

/// Rules that cannot be read allow nothing.
fn rules(role: &Value) -> Vec<Rule> {
    let rules = list(role, "rules").iter();
    rules.filter_map(|rule| serde_json::from_value(rule.clone()).ok()).collect()
}
