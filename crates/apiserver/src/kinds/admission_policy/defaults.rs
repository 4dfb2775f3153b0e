//! Defaults of admission policies and their bindings.

use serde_json::{Value, json};

use crate::kinds::fill::{self, Fields};
use crate::kinds::webhook::defaults::{matching, scope};

pub(super) fn policy(object: &mut Value) {
    let Some(spec) = fill::spec(object) else { return };
    fill::absent(spec, "failurePolicy", || json!("Fail"));
    constraints(spec, "matchConstraints");
}

pub(super) fn binding(object: &mut Value) {
    if let Some(spec) = fill::spec(object) {
        constraints(spec, "matchResources");
    }
}

fn constraints(spec: &mut Fields, key: &str) {
    let Some(part) = fill::fields(spec.get_mut(key)) else { return };
    matching(part);
    fill::each(part.get_mut("resourceRules"), scope);
    fill::each(part.get_mut("excludeResourceRules"), scope);
}
