//! The manifests of a Work, one by one. One that cannot be used says why, and the others go on.

use std::collections::BTreeSet;

use convoy_api::object::member::{field, list, text};
use convoy_api::{GroupKind, Object, ObjectKey};
use serde_json::{Map, Value, json};
use smol_str::SmolStr;

use crate::built_in_kind;
use crate::dialect::fleet_agent::names::DECODING_ERRED;

/// One manifest.
#[derive(Clone, Debug)]
pub(crate) struct Manifest<'w> {
    pub(crate) identifier: Identifier,
    pub(crate) raw: &'w Value,
    /// Why it cannot be used.
    pub(crate) problem: Option<Problem>,
}

/// Which object a manifest is about, as statuses name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identifier {
    pub(crate) ordinal: usize,
    pub(crate) kind: GroupKind,
    pub(crate) version: SmolStr,
    pub(crate) namespace: SmolStr,
    pub(crate) name: SmolStr,
}

/// A manifest that nobody can apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    NotAnObject,
    GenerateName,
    Duplicate,
    /// The member serves no such kind.
    NotServed,
}

impl Problem {
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::NotAnObject | Self::NotServed => DECODING_ERRED,
            Self::GenerateName => "FoundGenerateName",
            Self::Duplicate => "Duplicated",
        }
    }

    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::NotAnObject => "the manifest has no apiVersion, kind or name",
            Self::GenerateName => {
                "the manifest has metadata.generateName instead of a name; name the object"
            }
            Self::Duplicate => "the Work has an earlier manifest of the same object; remove one",
            Self::NotServed => {
                "the member serves no objects of this kind; install its definition there"
            }
        }
    }
}

/// The manifests of a Work, in its order.
pub(crate) fn manifests(work: &Object) -> Vec<Manifest<'_>> {
    let mut seen = BTreeSet::new();
    let raw = list(field(work.spec(), "workload"), "manifests").iter().enumerate();
    let read = raw.map(|(ordinal, raw)| {
        let identifier = Identifier::of_manifest(ordinal, raw);
        let metadata = field(raw, "metadata");
        let problem = if identifier.kind.kind.is_empty() || identifier.version.is_empty() {
            Some(Problem::NotAnObject)
        } else if identifier.name.is_empty() {
            let generated = !text(metadata, "generateName").is_empty();
            Some(if generated { Problem::GenerateName } else { Problem::NotAnObject })
        } else {
            let fresh = seen.insert(identifier.key(""));
            (!fresh).then_some(Problem::Duplicate)
        };
        Manifest { identifier, raw, problem }
    });
    read.collect()
}

impl Identifier {
    fn of_manifest(ordinal: usize, raw: &Value) -> Self {
        let (group, version) = match text(raw, "apiVersion").split_once('/') {
            Some((group, version)) => (group, version),
            None => ("", text(raw, "apiVersion")),
        };
        let metadata = field(raw, "metadata");
        Self::of_parts(ordinal, [group, version, text(raw, "kind")], metadata)
    }

    /// As a status has recorded it.
    pub(crate) fn recorded(entry: &Value) -> Self {
        let ordinal = field(entry, "ordinal").as_u64().unwrap_or_default();
        let ordinal = usize::try_from(ordinal).unwrap_or_default();
        let words = ["group", "version", "kind"].map(|name| text(entry, name));
        Self::of_parts(ordinal, words, entry)
    }

    fn of_parts(ordinal: usize, [group, version, kind]: [&str; 3], named: &Value) -> Self {
        Self {
            ordinal,
            kind: GroupKind { group: SmolStr::new(group), kind: SmolStr::new(kind) },
            version: SmolStr::new(version),
            namespace: SmolStr::new(text(named, "namespace")),
            name: SmolStr::new(text(named, "name")),
        }
    }

    /// The object that is meant, in a cluster.
    pub(crate) fn key(&self, cluster: &str) -> ObjectKey {
        let key = self.kind.key(&self.namespace, &self.name);
        ObjectKey { cluster: SmolStr::new(cluster), ..key }
    }

    /// As a status records it.
    pub(crate) fn to_value(&self) -> Value {
        self.served_as(&plural(&self.kind.kind))
    }

    /// The same where the resource that serves the kind is known, or known to be missing: empty.
    pub(crate) fn served_as(&self, resource: &str) -> Value {
        let mut entry = Map::new();
        entry.insert("ordinal".into(), json!(self.ordinal));
        let words = [
            ("group", self.kind.group.as_str()),
            ("version", self.version.as_str()),
            ("kind", self.kind.kind.as_str()),
            ("resource", resource),
            ("namespace", self.namespace.as_str()),
            ("name", self.name.as_str()),
        ];
        for (name, word) in words.into_iter().filter(|(_, word)| !word.is_empty()) {
            entry.insert(name.into(), json!(word));
        }
        Value::Object(entry)
    }

    /// For a person.
    pub(crate) fn shown(&self) -> String {
        match (self.name.as_str(), self.namespace.as_str()) {
            ("", _) => format!("manifest {}", self.ordinal),
            (name, "") => format!("{} {name}", self.kind.kind),
            (name, namespace) => format!("{} {namespace}/{name}", self.kind.kind),
        }
    }
}

/// The resource that a kind is served as, by the rule that most kinds follow.
pub(crate) fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.as_bytes().last() {
        None => kind,
        _ if kind == "endpoints" => kind,
        Some(b's') => format!("{kind}es"),
        Some(b'y') => format!("{}ies", &kind[..kind.len() - 1]),
        Some(_) => format!("{kind}s"),
    }
}

/// Whether Kubernetes itself serves the kind, so that its lists are merged by key.
pub(crate) fn is_built_in(kind: &GroupKind) -> bool {
    built_in_kind::scope(kind).is_some() || ["Pod", "Node"].contains(&kind.kind.as_str())
}

/// The order in which kinds are applied: what others need comes first.
pub(crate) fn wave(kind: &GroupKind) -> u8 {
    match kind.kind.as_str() {
        _ if !is_built_in(kind) => 6,
        "Namespace" | "PriorityClass" => 0,
        "NetworkPolicy"
        | "ResourceQuota"
        | "LimitRange"
        | "PodDisruptionBudget"
        | "ServiceAccount"
        | "Secret"
        | "ConfigMap"
        | "StorageClass"
        | "PersistentVolume"
        | "PersistentVolumeClaim"
        | "CustomResourceDefinition"
        | "IngressClass" => 1,
        "ClusterRole" | "Role" => 2,
        "ClusterRoleBinding" | "RoleBinding" => 3,
        "Service"
        | "DaemonSet"
        | "Pod"
        | "ReplicationController"
        | "ReplicaSet"
        | "Deployment"
        | "HorizontalPodAutoscaler"
        | "StatefulSet"
        | "Job"
        | "CronJob"
        | "Ingress" => 4,
        "APIService" | "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => 5,
        _ => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_that_cannot_be_used_say_why() {
        let named = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a", "namespace": "shop"}});
        let generated = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"generateName": "a-"}});
        let work =
            Object::from_value(json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
            "kind": "Work", "metadata": {"name": "web-work", "namespace": "fleet-member-a"},
            "spec": {"workload": {"manifests": [named, generated, {"kind": "x"}, named]}}}))
            .unwrap();
        let reasons: Vec<Option<&str>> =
            manifests(&work).iter().map(|it| it.problem.map(Problem::reason)).collect();
        let expected = [None, Some("FoundGenerateName"), Some("DecodingErred"), Some("Duplicated")];
        assert_eq!(reasons, expected);
    }

    #[test]
    fn resources_are_named_after_their_kind() {
        let cases = [
            ("NetworkPolicy", "networkpolicies"),
            ("Ingress", "ingresses"),
            ("Endpoints", "endpoints"),
            ("Deployment", "deployments"),
        ];
        for (kind, resource) in cases {
            assert_eq!(plural(kind), resource);
        }
    }
}
