//! The kinds of a member: under which resource each is served, and where its objects live. Those
//! that Kubernetes has itself are known; definitions tell about the others.

use convoy_api::object::member::{field, text};
use convoy_api::{GroupKind, Object};

use crate::built_in_kind::{self, Scope};
use crate::dialect::fleet_agent::read::manifest::plural;
use crate::dialect::ocm_agent::names::CUSTOM_RESOURCE_DEFINITION;
use crate::snapshot::Snapshot;
use crate::world::World;

/// Kinds of Kubernetes that nobody places elsewhere, so that no other table names them.
static FURTHER: [(GroupKind, Scope); 14] = [
    (GroupKind::new("", "Event"), Scope::Namespaced),
    (GroupKind::new("", "Node"), Scope::Cluster),
    (GroupKind::new("", "Pod"), Scope::Namespaced),
    (GroupKind::new("admissionregistration.k8s.io", "MutatingAdmissionPolicy"), Scope::Cluster),
    (
        GroupKind::new("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
        Scope::Cluster,
    ),
    (GroupKind::new("certificates.k8s.io", "CertificateSigningRequest"), Scope::Cluster),
    (GroupKind::new("coordination.k8s.io", "Lease"), Scope::Namespaced),
    (GroupKind::new("events.k8s.io", "Event"), Scope::Namespaced),
    (GroupKind::new("flowcontrol.apiserver.k8s.io", "FlowSchema"), Scope::Cluster),
    (GroupKind::new("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"), Scope::Cluster),
    (GroupKind::new("node.k8s.io", "RuntimeClass"), Scope::Cluster),
    (GroupKind::new("storage.k8s.io", "CSINode"), Scope::Cluster),
    (GroupKind::new("storage.k8s.io", "CSIStorageCapacity"), Scope::Namespaced),
    (GroupKind::new("storage.k8s.io", "VolumeAttachment"), Scope::Cluster),
];

/// The kinds that a member serves, as far as they are known.
#[derive(Clone, Debug)]
pub(crate) struct Kinds<'w> {
    definitions: Vec<&'w Object>,
}

impl<'w> Kinds<'w> {
    pub(crate) fn of_world(world: &'w World, member: &str) -> Self {
        let definitions = world.of_cluster(member, &CUSTOM_RESOURCE_DEFINITION).collect();
        Self { definitions }
    }

    pub(crate) fn of_snapshot(snapshot: &Snapshot<'w>, member: &str) -> Self {
        let all = snapshot.of(&CUSTOM_RESOURCE_DEFINITION).iter().copied();
        Self { definitions: all.filter(|it| it.key().cluster == member).collect() }
    }

    /// The plural that a kind is served as. Where nobody defines it, by the rule that most follow.
    pub(crate) fn resource(&self, kind: &GroupKind) -> String {
        match self.definition(kind) {
            Some(definition) => text(field(definition.spec(), "names"), "plural").to_owned(),
            None => plural(&kind.kind),
        }
    }

    /// Whether a custom kind is defined.
    pub(crate) fn is_defined(&self, kind: &GroupKind) -> bool {
        self.definition(kind).is_some()
    }

    pub(crate) fn is_cluster_scoped(&self, kind: &GroupKind) -> bool {
        let defined = self.definition(kind).map(|it| it.spec_text("scope") == "Cluster");
        let further = || FURTHER.iter().find(|(known, _)| known == kind).map(|(_, scope)| *scope);
        let known = || built_in_kind::scope(kind).or_else(further);
        defined.unwrap_or_else(|| known() == Some(Scope::Cluster))
    }

    /// The kind that is served under a resource; none if nobody here knows it.
    pub(crate) fn kind(&self, group: &str, resource: &str) -> Option<GroupKind> {
        let built_in = built_in_kind::kinds().chain(FURTHER.iter().map(|(kind, _)| kind));
        let mut of_group = built_in.filter(|kind| kind.group == group);
        if let Some(kind) = of_group.find(|kind| plural(&kind.kind) == resource) {
            return Some(kind.clone());
        }
        let is_it = |definition: &&&Object| {
            let names = field(definition.spec(), "names");
            definition.spec_text("group") == group && text(names, "plural") == resource
        };
        let definition = self.definitions.iter().find(is_it)?;
        let kind = text(field(definition.spec(), "names"), "kind");
        Some(GroupKind { group: group.into(), kind: kind.into() })
    }

    fn definition(&self, kind: &GroupKind) -> Option<&'w Object> {
        let is_it = |definition: &&Object| {
            let names = field(definition.spec(), "names");
            definition.spec_text("group") == kind.group && text(names, "kind") == kind.kind
        };
        self.definitions.iter().copied().find(is_it)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn definitions_tell_what_no_rule_can() {
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition", "metadata": {"name": "geese.example.com"},
            "spec": {"group": "example.com", "scope": "Cluster",
                "names": {"kind": "Goose", "plural": "geese"}}});
        let definition = Object::from_value(definition).unwrap().in_cluster("eu");
        let world: World = [definition].into_iter().collect();
        let goose = GroupKind::new("example.com", "Goose");
        let kinds = Kinds::of_world(&world, "eu");
        assert_eq!(kinds.resource(&goose), "geese");
        assert!(kinds.is_cluster_scoped(&goose));
        assert_eq!(kinds.kind("example.com", "geese"), Some(goose.clone()));
        let elsewhere = Kinds::of_world(&world, "us");
        assert_eq!(elsewhere.resource(&goose), "gooses");
        assert_eq!(elsewhere.kind("example.com", "geese"), None);
        assert_eq!(elsewhere.kind("", "pods"), Some(GroupKind::new("", "Pod")));
        assert_eq!(
            elsewhere.kind("networking.k8s.io", "networkpolicies"),
            Some(GroupKind::new("networking.k8s.io", "NetworkPolicy"))
        );
    }
}
