//! Owner references: by these an object belongs to the `AppliedManifestWorks` that asked for it.

use convoy_api::Object;
use convoy_api::object::member::{field, list};
use convoy_api::object::meta::OwnerReference;
use convoy_api::ocm::names::APPLIED_MANIFEST_WORK;
use serde_json::{Value, json};

use crate::dialect::ocm_agent::names::WORK_API;

/// Who owns an object, seen from one `AppliedManifestWork`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owners {
    pub(crate) is_ours: bool,
    /// Whether another `AppliedManifestWork` owns it too. Owners of other kinds do not count.
    pub(crate) is_shared: bool,
}

impl Owners {
    pub(crate) fn of(live: &Object, applied_work: &Object) -> Self {
        let uid = applied_work.uid();
        let is_other = |owner: &OwnerReference<'_>| {
            owner.kind == APPLIED_MANIFEST_WORK.kind
                && owner.api_version == WORK_API
                && Some(owner.uid) != uid
        };
        Self {
            is_ours: live.owners().any(|owner| Some(owner.uid) == uid),
            is_shared: live.owners().any(|owner| is_other(&owner)),
        }
    }
}

/// The reference to an `AppliedManifestWork`. Several works may own one object, so none of them
/// is its controller.
pub(crate) fn reference(applied_work: &Object) -> Value {
    json!({
        "apiVersion": WORK_API,
        "kind": APPLIED_MANIFEST_WORK.kind,
        "name": applied_work.name(),
        "uid": applied_work.uid().unwrap_or_default(),
    })
}

/// The owner references of an object, with or without ours.
pub(crate) fn references(live: &Object, applied_work: &Object, is_owned: bool) -> Vec<Value> {
    let uid = applied_work.uid();
    let mut all = list(live.metadata(), "ownerReferences").to_vec();
    let is_ours = |entry: &Value| field(entry, "uid").as_str() == uid;
    if !is_owned {
        all.retain(|entry| !is_ours(entry));
    } else if !all.iter().any(is_ours) {
        all.push(reference(applied_work));
    }
    all
}
