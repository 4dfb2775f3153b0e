//! PodDisruptionBudgets: which pods they cover, and how many of them may still be evicted.

use convoy_api::Object;
use serde_json::Value;

use crate::selector::Selector;

#[derive(Clone, Debug)]
pub(crate) struct DisruptionBudget<'w> {
    pub(crate) object: &'w Object,
    pub(crate) selector: Selector,
    /// Absent: no controller has computed it, so that only the server can tell.
    pub(crate) allowed: Option<i64>,
}

impl<'w> DisruptionBudget<'w> {
    /// None for a budget that covers no pod: unlike elsewhere, an absent selector selects nothing.
    pub(crate) fn read(object: &'w Object) -> Option<Self> {
        let selector = object.spec().get("selector").filter(|value| !value.is_null())?;
        let selector = Selector::from_value(selector).ok()?;
        let allowed = object.status().get("disruptionsAllowed").and_then(Value::as_i64);
        Some(Self { object, selector, allowed })
    }
}
