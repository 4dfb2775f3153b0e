//! The schemas of the kinds that Convoy defines, found by kind and version.
//!
//! Nothing is built before it is asked for: first the CRDs of the one dialect that has the
//! group, then the schema of the one version.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};

use super::Schema;
use crate::object::GroupKind;

type Versions = BTreeMap<String, Version>;
type Kinds = BTreeMap<GroupKind, Versions>;

/// A served version; its schema is compiled when first asked for.
type Version = LazyLock<Schema, Box<dyn FnOnce() -> Schema + Send>>;

/// One dialect: the groups it has, told by their ends, and its kinds.
struct Dialect {
    groups: &'static [&'static str],
    kinds: LazyLock<Kinds>,
}

static DIALECTS: [Dialect; 5] = [
    Dialect {
        groups: &["skyhook.nvidia.com"],
        kinds: LazyLock::new(|| defined(crate::skyhook::crds())),
    },
    Dialect {
        groups: &["kubernetes-fleet.io"],
        kinds: LazyLock::new(|| defined(crate::fleet::crds())),
    },
    Dialect { groups: &["apps"], kinds: LazyLock::new(|| defined(crate::apps::crds())) },
    Dialect {
        groups: &["karpenter.sh", "karpenter.kwok.sh"],
        kinds: LazyLock::new(|| defined(crate::karpenter::crds())),
    },
    Dialect {
        groups: &["open-cluster-management.io"],
        kinds: LazyLock::new(|| defined(crate::ocm::crds())),
    },
];

/// The CRDs of a dialect by the word that plans use for it, by group and kind; None for a word
/// that is no dialect's.
pub fn crds(dialect: &str) -> Option<Vec<CustomResourceDefinition>> {
    let mut crds = match dialect {
        "skyhook" => crate::skyhook::crds(),
        "fleet" => crate::fleet::crds(),
        "apps" => crate::apps::crds(),
        "karpenter" => crate::karpenter::crds(),
        "ocm" => crate::ocm::crds(),
        _ => return None,
    };
    crds.sort_by(|left, right| {
        let key =
            |crd: &CustomResourceDefinition| (crd.spec.group.clone(), crd.spec.names.kind.clone());
        key(left).cmp(&key(right))
    });
    Some(crds)
}

/// The schema of a kind that Convoy defines, in one of its served versions.
pub fn of(kind: &GroupKind, version: &str) -> Option<&'static Schema> {
    Some(versions(kind)?.get(version)?)
}

/// The versions in which a kind that Convoy defines is served; None for other kinds.
pub fn served_versions(kind: &GroupKind) -> Option<Vec<&'static str>> {
    Some(versions(kind)?.keys().map(String::as_str).collect())
}

/// Every kind that Convoy defines.
pub fn kinds() -> impl Iterator<Item = &'static GroupKind> {
    DIALECTS.iter().flat_map(|dialect| dialect.kinds.keys())
}

fn versions(kind: &GroupKind) -> Option<&'static Versions> {
    let has_group = |dialect: &&Dialect| {
        dialect.groups.iter().any(|end| match kind.group.strip_suffix(end) {
            Some(rest) => rest.is_empty() || rest.ends_with('.'),
            None => false,
        })
    };
    DIALECTS.iter().find(has_group)?.kinds.get(kind)
}

fn defined(crds: Vec<CustomResourceDefinition>) -> Kinds {
    let entry = |crd: CustomResourceDefinition| {
        let kind = GroupKind {
            group: crd.spec.group.as_str().into(),
            kind: crd.spec.names.kind.as_str().into(),
        };
        let served = crd.spec.versions.into_iter().filter(|version| version.served);
        (kind, served.map(|version| (version.name.clone(), lazy(version))).collect())
    };
    crds.into_iter().map(entry).collect()
}

fn lazy(version: CustomResourceDefinitionVersion) -> Version {
    LazyLock::new(Box::new(move || {
        let schema = version.schema.and_then(|schema| schema.open_api_v3_schema);
        Schema::new(&schema.unwrap_or_default())
    }))
}
