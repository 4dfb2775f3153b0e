//! Which objects have a namespace, also where nobody has named it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use convoy_api::kinds::POD;
use convoy_api::schema::crds;
use convoy_api::{GroupKind, Object, ObjectKey};

/// The key of an object once it is applied: without a namespace of its own it goes to `default`.
pub(super) fn placed(object: &Object) -> ObjectKey {
    let mut key = object.key().clone();
    if key.namespace.is_empty() && is_namespaced(&key.kind) {
        key.namespace = "default".into();
    }
    key
}

/// Whether objects of a kind have a namespace. Custom kinds that nobody here knows are taken as
/// they are given.
fn is_namespaced(kind: &GroupKind) -> bool {
    static DEFINED: LazyLock<BTreeMap<GroupKind, bool>> = LazyLock::new(|| {
        let all = ["skyhook", "karpenter", "fleet", "ocm"].into_iter().filter_map(crds).flatten();
        all.map(|definition| definition.spec)
            .map(|spec| {
                let kind = GroupKind { group: spec.group.into(), kind: spec.names.kind.into() };
                (kind, spec.scope == "Namespaced")
            })
            .collect()
    });
    let defined = || DEFINED.get(kind).copied();
    convoy_plan::is_namespaced(kind).or_else(defined).unwrap_or(*kind == POD)
}
