//! What a work says beside its manifests.

use convoy_api::Object;
use convoy_api::object::member::{field, list, text};
use serde_json::Value;

use super::manifest::Item;
use crate::dialect::ocm_agent::names::COMPLETE;

/// Whether the object of a manifest goes with its work, by the work's delete option.
pub(crate) fn owns(work: &Object, item: &Item<'_>) -> bool {
    let option = field(work.spec(), "deleteOption");
    match text(option, "propagationPolicy") {
        "Orphan" => false,
        "SelectivelyOrphan" => {
            let rules = list(field(option, "selectivelyOrphans"), "orphaningRules").iter();
            !rules.clone().any(|rule| is_orphaned(rule, item))
        }
        _ => true,
    }
}

fn is_orphaned(rule: &Value, item: &Item<'_>) -> bool {
    let identifier = &item.identifier;
    text(rule, "group") == identifier.kind.group
        && text(rule, "resource") == item.resource
        && text(rule, "namespace") == identifier.namespace
        && text(rule, "name") == identifier.name
}

/// Whether the work is through: nothing is applied any more.
pub(crate) fn is_complete(work: &Object) -> bool {
    work.condition_status(COMPLETE) == Some("True")
}
