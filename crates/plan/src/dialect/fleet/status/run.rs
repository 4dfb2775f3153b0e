//! The status of an update run: its record.

use serde_json::{Map, Value};

use crate::dialect::fleet::decide::staged::Pass;

/// None: it reads so already.
pub(crate) fn status(pass: &Pass<'_, '_>) -> Option<Value> {
    let (old, status) = (pass.run.status(), pass.record.write());
    let is_empty = status.as_object().is_some_and(Map::is_empty);
    let unchanged = status == *old || old.is_null() && is_empty;
    (!unchanged).then_some(status)
}
