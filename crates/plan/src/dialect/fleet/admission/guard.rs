//! The guard rail: who may write the fleet's own objects. It tells users by name and group, beside
//! what RBAC allows them.

use convoy_api::kinds::{CUSTOM_RESOURCE_DEFINITION, NAMESPACE};
use convoy_api::object::member::{field, list, text};
use convoy_api::{GroupKind, Object};
use serde_json::Value;
use smol_str::SmolStr;

use crate::admission::Verdict;
use crate::dialect::fleet::names::kind::is_reserved_namespace;
use crate::dialect::fleet::names::{
    CLUSTER_GROUP, CLUSTER_PROFILE, FLEET_ANNOTATIONS, FLEET_LABELS, INTERNAL_MEMBER_CLUSTER,
    MEMBER_CLUSTER, MEMBER_NAMESPACE_PREFIX, NETWORKING_GROUP, PLACEMENT_GROUP, SYSTEM_NAMESPACE,
    WORK,
};
use crate::dialect::fleet::read::options::GuardRail;
use crate::world::World;

const MASTERS: &str = "system:masters";
const ADMINISTRATORS: [&str; 2] = [MASTERS, "kubeadm:cluster-admins"];

/// Groups and users that write on their own account: service accounts, nodes, and Kubernetes itself.
const MACHINES: [&str; 2] = ["system:serviceaccounts", "system:nodes"];
const MACHINE_USERS: [&str; 3] =
    ["system:kube-scheduler", "system:kube-controller-manager", "aks-support"];

/// From so many groups on, a message names only the first ones.
const GROUPS_MAX: usize = 10;

/// A request as the guard rail reads it.
struct Guarded<'r> {
    request: &'r Value,
    kind: GroupKind,
    /// Empty for objects of the cluster, among them Namespaces.
    namespace: &'r str,
    name: &'r str,
    user: &'r str,
}

/// What the guard rail says to a request. `world` has the member clusters, where the request is
/// about what lies in the namespace of one.
pub(in crate::dialect::fleet) fn judge(
    guard: &GuardRail,
    world: &World,
    request: &Value,
) -> Verdict {
    let guarded = Guarded::read(request);
    let kind = &guarded.kind;
    let is_allowed = if *kind == CUSTOM_RESOURCE_DEFINITION {
        !defines_fleet_kind(guarded.name) || guarded.is_administrator(guard)
    } else if *kind == MEMBER_CLUSTER {
        match member_cluster(guard, &guarded) {
            Ok(is_allowed) => is_allowed,
            Err(message) => return Verdict::Refused(message.to_owned()),
        }
    } else if *kind == NAMESPACE {
        !is_reserved_namespace(guarded.name) || guarded.is_trusted(guard)
    } else if is_of_member(kind) {
        of_member(guard, world, &guarded)
    } else {
        is_event(kind) || guarded.namespace.is_empty() || guarded.is_trusted(guard)
    };
    if is_allowed { Verdict::allowed() } else { Verdict::Refused(guarded.denial()) }
}

impl<'r> Guarded<'r> {
    fn read(request: &'r Value) -> Self {
        let kind = field(request, "kind");
        let kind = GroupKind {
            group: SmolStr::new(text(kind, "group")),
            kind: SmolStr::new(text(kind, "kind")),
        };
        // A Namespace is said to be in itself.
        let namespace = if kind == NAMESPACE { "" } else { text(request, "namespace") };
        let user = text(field(request, "userInfo"), "username");
        Self { request, namespace, name: text(request, "name"), user, kind }
    }

    fn groups(&self) -> impl Iterator<Item = &'r str> {
        list(field(self.request, "userInfo"), "groups").iter().filter_map(Value::as_str)
    }

    fn is_administrator(&self, guard: &GuardRail) -> bool {
        guard.users.iter().any(|user| user == self.user)
            || self.groups().any(|group| ADMINISTRATORS.contains(&group))
    }

    /// Whether the user may write what is guarded.
    fn is_trusted(&self, guard: &GuardRail) -> bool {
        self.is_administrator(guard)
            || MACHINE_USERS.contains(&self.user)
            || self.groups().any(|group| MACHINES.contains(&group))
    }

    /// The object, and what it was.
    fn states(&self) -> [&'r Value; 2] {
        ["object", "oldObject"].map(|name| field(self.request, name))
    }

    fn denial(&self) -> String {
        let groups: Vec<&str> = self.groups().collect();
        let groups = if groups.len() > GROUPS_MAX {
            format!("{},......", groups[..3].join(", "))
        } else {
            groups.join(" ")
        };
        let kind = field(self.request, "requestKind");
        let kind = if kind.is_null() { field(self.request, "kind") } else { kind };
        format!(
            "user: '{}' in 'groups: [{groups}]' is not allowed to {} resource {}/{}, Kind={}/{}: {}/{}",
            self.user,
            text(self.request, "operation"),
            text(kind, "group"),
            text(kind, "version"),
            text(kind, "kind"),
            text(self.request, "subResource"),
            self.namespace,
            self.name,
        )
    }
}

/// Whether a definition, by its name, is of a kind that the fleet needs.
fn defines_fleet_kind(name: &str) -> bool {
    let group = name.split_once('.').map_or("", |(_, group)| group);
    let groups = [NETWORKING_GROUP, CLUSTER_GROUP, PLACEMENT_GROUP];
    groups.contains(&group) || group == CLUSTER_PROFILE.group
}

fn is_event(kind: &GroupKind) -> bool {
    kind.kind == "Event" && (kind.group.is_empty() || kind.group == "events.k8s.io")
}

/// Whether agents write objects of this kind in the namespaces of their members.
fn is_of_member(kind: &GroupKind) -> bool {
    let networking = [
        "EndpointSliceExport",
        "EndpointSliceImport",
        "InternalServiceExport",
        "InternalServiceImport",
    ];
    *kind == INTERNAL_MEMBER_CLUSTER
        || *kind == WORK
        || kind.group == NETWORKING_GROUP && networking.contains(&kind.kind.as_str())
}

/// Whether a user may write what belongs to a member: those who are trusted, and its own agent. One
/// whose cluster is not known is let through.
fn of_member(guard: &GuardRail, world: &World, guarded: &Guarded<'_>) -> bool {
    if !is_reserved_namespace(guarded.namespace) || guarded.is_trusted(guard) {
        return true;
    }
    let Some(cluster) = guarded.namespace.strip_prefix(MEMBER_NAMESPACE_PREFIX) else {
        return false;
    };
    let member = world.find(&MEMBER_CLUSTER, "", cluster);
    member.is_none_or(|member| is_agent(member, guarded.user))
}

/// Whether a user is the agent of a member, by name or as a service account of the fleet.
fn is_agent(member: &Object, user: &str) -> bool {
    let identity = text(field(member.spec(), "identity"), "name");
    let account = user.strip_prefix("system:serviceaccount:").and_then(|it| it.split_once(':'));
    user == identity || account == Some((SYSTEM_NAMESPACE, identity))
}

/// Whether a user may write a member cluster, or what nobody may do to one.
///
/// | the cluster        | create, delete | spec, status     | fleet annotations | the rest |
/// |--------------------|----------------|------------------|-------------------|----------|
/// | has an annotation  | trusted        | trusted          | trusted           | all      |
/// | has none           | all            | all; trusted     | nobody adds one   | all      |
///
/// Nobody takes the last annotation away. Taints count as the rest, and so do labels unless they
/// are kept from users.
fn member_cluster(guard: &GuardRail, guarded: &Guarded<'_>) -> Result<bool, &'static str> {
    let [new, old] = guarded.states();
    if new.is_null() || old.is_null() {
        let object = if new.is_null() { old } else { new };
        return Ok(!is_marked(object) || guarded.is_trusted(guard));
    }
    match (is_marked(old), is_marked(new)) {
        (false, true) => Err("annotations that begin with fleet.azure.com cannot be added to a \
                              member cluster that has none, by no user"),
        (true, false) => Err("the last annotation that begins with fleet.azure.com cannot be \
                              removed from a member cluster, by no user"),
        (false, false) => {
            let is_same = field(new, "status") == field(old, "status");
            Ok(is_same || guarded.is_trusted(guard))
        }
        (true, true) => {
            let is_master = guarded.groups().any(|group| group == MASTERS);
            if guard.denies_labels && !is_master && changes_labels(new, old) {
                return Err(
                    "labels of a member cluster cannot be changed on the hub, except those \
                            that begin with kubernetes-fleet.io/",
                );
            }
            let is_free = rest(new) == rest(old) && !changes_marks(new, old);
            Ok(is_free || guarded.is_trusted(guard))
        }
    }
}

fn annotations(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    field(field(object, "metadata"), "annotations").as_object().into_iter().flatten()
}

/// Whether a member cluster has an annotation that makes it a guarded one.
fn is_marked(object: &Value) -> bool {
    annotations(object).any(|(key, _)| key.starts_with(FLEET_ANNOTATIONS))
}

/// Whether an annotation that makes it a guarded one is changed or gone.
fn changes_marks(new: &Value, old: &Value) -> bool {
    let kept = field(field(new, "metadata"), "annotations");
    let mut marks = annotations(old).filter(|(key, _)| key.starts_with(FLEET_ANNOTATIONS));
    marks.any(|(key, value)| kept.get(key) != Some(value))
}

/// Whether labels that are not the fleet's are changed.
fn changes_labels(new: &Value, old: &Value) -> bool {
    let [new, old] = [new, old].map(|object| field(field(object, "metadata"), "labels"));
    let keys = [new, old].into_iter().filter_map(Value::as_object).flat_map(|it| it.keys());
    keys.filter(|key| !key.starts_with(FLEET_LABELS)).any(|key| new.get(key) != old.get(key))
}

/// A member cluster without what everybody may change, and what the server itself writes.
fn rest(object: &Value) -> Value {
    let mut rest = object.clone();
    let server = [
        "uid",
        "selfLink",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
    ];
    if let Some(metadata) = rest.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| {
            !server.contains(&name.as_str()) && name != "labels" && name != "annotations"
        });
    }
    if let Some(spec) = rest.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("taints");
    }
    rest
}

#[cfg(test)]
mod tests;
