//! The `successPolicy` of an indexed Job. Rules are read one by one and leniently: one that says
//! nothing readable is never met.

use convoy_api::Object;
use convoy_api::object::member::{field, list, member};
use serde_json::Value;

use crate::text::indexes::Indexes;

/// A rule names indexes, a number of them, or both: then so many of the named ones.
#[derive(Clone, Debug)]
pub(crate) struct SuccessRule {
    pub(crate) indexes: Option<Indexes>,
    pub(crate) count: Option<usize>,
}

impl SuccessRule {
    /// The rules of a Job, in order.
    pub(crate) fn all(job: &Object) -> impl Iterator<Item = Self> {
        list(field(job.spec(), "successPolicy"), "rules").iter().map(Self::read)
    }

    pub(crate) fn read(rule: &Value) -> Self {
        let count = member(rule, "succeededCount").and_then(Value::as_u64);
        Self {
            indexes: member(rule, "succeededIndexes").and_then(Value::as_str).map(Indexes::read),
            count: count.map(|count| usize::try_from(count).unwrap_or(usize::MAX)),
        }
    }
}
