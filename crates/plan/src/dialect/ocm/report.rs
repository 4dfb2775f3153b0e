//! Decisions as steps: the verdict, groups, holds, and the summary that plans print.

pub(crate) mod completed;
pub(crate) mod placement;
pub(crate) mod registration;
pub(crate) mod replica_set;

use jiff::Timestamp;
use serde_json::Value;

/// Seconds from `now` to an instant ahead, as plans print them; null if there is none.
fn seconds_until(instant: Option<Timestamp>, now: Timestamp) -> Value {
    let Some(instant) = instant else { return Value::Null };
    let left = instant.duration_since(now);
    if left.subsec_nanos() == 0 {
        Value::from(left.as_secs())
    } else {
        Value::from(left.as_secs_f64())
    }
}
