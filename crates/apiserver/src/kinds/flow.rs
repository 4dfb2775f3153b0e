//! Fairness between requests, which is not enforced here.

use serde_json::Value;

use super::kind::{Kind, OWNERSHIP_ALONE};
use super::{defaults, fill};
use crate::registry::Resource;

pub(super) struct FlowSchema;

impl Kind for FlowSchema {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        if let Some(spec) = fill::spec(object) {
            fill::number(spec, "matchingPrecedence", 1000);
        }
    }

    fn status_metadata(&self) -> &'static [&'static str] {
        OWNERSHIP_ALONE
    }
}

pub(super) struct PriorityLevel;

impl Kind for PriorityLevel {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::access::priority_level(object);
    }

    fn status_metadata(&self) -> &'static [&'static str] {
        OWNERSHIP_ALONE
    }
}
