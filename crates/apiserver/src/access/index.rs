//! Who holds which rules: roles and bindings of one logical cluster, by subject and namespace,
//! so that a request looks only at bindings of its own caller.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use smol_str::{SmolStr, format_smolstr};

use super::rule::{Attributes, Rule};
use crate::caller::Caller;
use crate::object_meta::Entry;

pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";

/// The shelves that the index is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    ClusterRoles,
    Roles,
    ClusterRoleBindings,
    RoleBindings,
}

#[derive(Debug, Default)]
pub(crate) struct Index {
    /// By namespace, empty for cluster roles, and name.
    roles: BTreeMap<(SmolStr, SmolStr), Arc<Role>>,
    bindings: HashMap<Holder, BTreeMap<SmolStr, Vec<Held>>>,
}

#[derive(Debug, Default)]
pub(crate) struct Role {
    pub rules: Vec<Rule>,
    pub labels: BTreeMap<SmolStr, SmolStr>,
    /// Which cluster roles it is the sum of.
    pub selectors: Option<Vec<Selector>>,
}

/// A user (service accounts are users with a long name) or a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Holder {
    User(SmolStr),
    Group(SmolStr),
}

/// A binding as one of its subjects sees it.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    binding: Arc<Binding>,
    subject: usize,
}

#[derive(Debug)]
struct Binding {
    namespace: SmolStr,
    name: SmolStr,
    role: RoleReference,
    subjects: Vec<Subject>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RoleReference {
    pub kind: SmolStr,
    pub name: SmolStr,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Subject {
    pub kind: SmolStr,
    pub name: SmolStr,
    pub namespace: SmolStr,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Selector {
    pub match_labels: Option<BTreeMap<SmolStr, SmolStr>>,
    pub match_expressions: Option<Vec<Expression>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Expression {
    pub key: SmolStr,
    pub operator: SmolStr,
    pub values: Option<Vec<SmolStr>>,
}

/// The verdict of the rules about a request.
#[derive(Debug)]
pub(crate) enum Verdict {
    Allowed(Held),
    /// With the roles that are bound but do not exist.
    Denied(Vec<String>),
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StoredRole {
    metadata: StoredMetadata,
    rules: Option<Vec<Rule>>,
    aggregation_rule: Option<StoredAggregation>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredMetadata {
    labels: Option<BTreeMap<SmolStr, SmolStr>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StoredAggregation {
    cluster_role_selectors: Option<Vec<Selector>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StoredBinding {
    role_ref: RoleReference,
    subjects: Option<Vec<Subject>>,
}

impl Index {
    pub(crate) fn put(&mut self, source: Source, entry: &Entry) {
        let (namespace, name) = (entry.key.namespace.clone(), entry.key.name.clone());
        match source {
            Source::ClusterRoles | Source::Roles => {
                // A role that cannot be read grants nothing.
                let role = Role::read(&entry.value).unwrap_or_default();
                self.roles.insert((namespace, name), Arc::new(role));
            }
            Source::ClusterRoleBindings | Source::RoleBindings => {
                self.remove(source, entry);
                let stored: StoredBinding = read(&entry.value).unwrap_or_default();
                let subjects = stored.subjects.unwrap_or_default();
                let binding = Binding { namespace, name, role: stored.role_ref, subjects };
                self.bind(&Arc::new(binding));
            }
        }
    }

    /// Forgets an object as it stood in `entry`.
    pub(crate) fn remove(&mut self, source: Source, entry: &Entry) {
        let (namespace, name) = (&entry.key.namespace, &entry.key.name);
        match source {
            Source::ClusterRoles | Source::Roles => {
                self.roles.remove(&(namespace.clone(), name.clone()));
            }
            Source::ClusterRoleBindings | Source::RoleBindings => {
                let stored: StoredBinding = read(&entry.value).unwrap_or_default();
                for subject in stored.subjects.into_iter().flatten() {
                    self.unbind(&subject, namespace, name);
                }
            }
        }
    }

    fn bind(&mut self, binding: &Arc<Binding>) {
        for (at, subject) in binding.subjects.iter().enumerate() {
            let Some(holder) = subject.holder() else { continue };
            let places = self.bindings.entry(holder).or_default();
            let held = Held { binding: Arc::clone(binding), subject: at };
            places.entry(binding.namespace.clone()).or_default().push(held);
        }
    }

    fn unbind(&mut self, subject: &Subject, namespace: &SmolStr, name: &SmolStr) {
        let Some(holder) = subject.holder() else { return };
        let Some(places) = self.bindings.get_mut(&holder) else { return };
        if let Some(list) = places.get_mut(namespace) {
            list.retain(|held| held.binding.name != *name);
            if list.is_empty() {
                places.remove(namespace);
            }
        }
        if places.is_empty() {
            self.bindings.remove(&holder);
        }
    }

    /// Whether a rule that the caller holds allows the request.
    pub(crate) fn judge(&self, caller: &Caller, attributes: &Attributes<'_>) -> Verdict {
        let mut lost = Vec::new();
        for held in self.held(caller, attributes.namespace) {
            match self.role(&held.binding) {
                Some(role) if role.rules.iter().any(|rule| rule.allows(attributes)) => {
                    return Verdict::Allowed(held.clone());
                }
                Some(_) => {}
                None => lost.push(held.binding.role.not_found()),
            }
        }
        lost.sort();
        lost.dedup();
        Verdict::Denied(lost)
    }

    /// Every rule that the caller holds in a namespace, those of the whole cluster included.
    pub(crate) fn rules_of(&self, caller: &Caller, namespace: &str) -> Vec<Rule> {
        let held = self.held(caller, namespace);
        let roles = held.filter_map(|held| self.role(&held.binding));
        let mut rules: Vec<Rule> = Vec::new();
        for role in roles {
            for rule in &role.rules {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
        rules
    }

    /// The rules of a role that a binding in `namespace` names.
    pub(crate) fn rules(&self, namespace: &str, role: &RoleReference) -> Option<Vec<Rule>> {
        let place = if role.kind == "Role" { namespace } else { "" };
        let role = self.roles.get(&(SmolStr::new(place), role.name.clone()))?;
        Some(role.rules.clone())
    }

    /// All cluster roles by name.
    pub(crate) fn cluster_roles(&self) -> impl Iterator<Item = (&SmolStr, &Arc<Role>)> {
        let all = self.roles.iter().take_while(|((namespace, _), _)| namespace.is_empty());
        all.map(|((_, name), role)| (name, role))
    }

    /// The caller's bindings: first those of the whole cluster, then those of the namespace.
    fn held<'i>(&'i self, caller: &Caller, namespace: &str) -> impl Iterator<Item = &'i Held> {
        let user = Holder::User(SmolStr::new(&caller.name));
        let groups = caller.groups.iter().map(|group| Holder::Group(SmolStr::new(group)));
        let holders = std::iter::once(user).chain(groups);
        let places: Vec<_> = holders.filter_map(|holder| self.bindings.get(&holder)).collect();
        let mut found: Vec<&Held> = Vec::new();
        for place in ["", namespace].into_iter().take(1 + usize::from(!namespace.is_empty())) {
            found.extend(places.iter().filter_map(|places| places.get(place)).flatten());
        }
        found.into_iter()
    }

    fn role(&self, binding: &Binding) -> Option<&Arc<Role>> {
        let namespace = match binding.role.kind.as_str() {
            "ClusterRole" => SmolStr::default(),
            "Role" if !binding.namespace.is_empty() => binding.namespace.clone(),
            _ => return None,
        };
        self.roles.get(&(namespace, binding.role.name.clone()))
    }
}

impl Role {
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let stored: StoredRole = read(bytes)?;
        let aggregation = stored.aggregation_rule;
        Some(Self {
            rules: stored.rules.unwrap_or_default(),
            labels: stored.metadata.labels.unwrap_or_default(),
            selectors: aggregation.map(|it| it.cluster_role_selectors.unwrap_or_default()),
        })
    }
}

impl RoleReference {
    fn not_found(&self) -> String {
        format!("{}.{GROUP} {:?} not found", self.kind.to_lowercase(), self.name)
    }
}

impl Subject {
    fn holder(&self) -> Option<Holder> {
        match self.kind.as_str() {
            "User" => Some(Holder::User(self.name.clone())),
            "Group" => Some(Holder::Group(self.name.clone())),
            "ServiceAccount" if !self.namespace.is_empty() => Some(Holder::User(format_smolstr!(
                "system:serviceaccount:{}:{}",
                self.namespace,
                self.name
            ))),
            _ => None,
        }
    }
}

impl Selector {
    /// An empty selector selects everything.
    pub(crate) fn matches(&self, labels: &BTreeMap<SmolStr, SmolStr>) -> bool {
        let plain = self.match_labels.iter().flatten();
        plain.into_iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().flatten().all(|one| one.matches(labels))
    }
}

impl Expression {
    fn matches(&self, labels: &BTreeMap<SmolStr, SmolStr>) -> bool {
        let found = labels.get(&self.key);
        let is_listed = || found.is_some_and(|it| self.values.iter().flatten().any(|v| v == it));
        match self.operator.as_str() {
            "In" => is_listed(),
            "NotIn" => !is_listed(),
            "Exists" => found.is_some(),
            "DoesNotExist" => found.is_none(),
            _ => false,
        }
    }
}

/// Which binding it was, for reviews and for the audit log.
impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Binding { namespace, name, role, subjects } = &*self.binding;
        let subject = &subjects[self.subject];
        if namespace.is_empty() {
            write!(f, "ClusterRoleBinding {name:?}")?;
        } else {
            write!(f, "RoleBinding {:?}", format_smolstr!("{name}/{namespace}"))?;
        }
        write!(f, " of {} {:?} to {} ", role.kind, role.name, subject.kind)?;
        if subject.kind == "ServiceAccount" {
            write!(f, "{:?}", format_smolstr!("{}/{}", subject.name, subject.namespace))
        } else {
            write!(f, "{:?}", subject.name)
        }
    }
}

fn read<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Option<T> {
    match serde_json::from_slice(bytes) {
        Ok(value) => Some(value),
        Err(error) => {
            tracing::error!(%error, "could not parse a role or binding; it grants nothing");
            None
        }
    }
}
