//! The status of an eviction: its two conditions.

use convoy_api::Object;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::condition::{self, Condition};
use crate::dialect::fleet::decide::eviction::Eviction;
use crate::dialect::fleet::names::{EXECUTED, VALID};
use crate::dialect::fleet::read::placement::list;

const IS_VALID: &str = "Eviction is valid";

/// None: nothing is decided any more.
pub(crate) fn status(eviction: &Object, decided: &Eviction<'_>, now: Timestamp) -> Option<Value> {
    let mut conditions = list(eviction.status(), "conditions").to_vec();
    let mut set = |kind: &str, status, reason: &str, message: &str| {
        let wanted = Condition::new(
            kind,
            status,
            format!("ClusterResourcePlacementEviction{reason}"),
            message,
        )
        .of_generation(eviction.generation());
        condition::set(&mut conditions, &wanted, now);
    };
    match decided {
        Eviction::Over => return None,
        Eviction::Invalid { message } => set(VALID, "False", "Invalid", message),
        Eviction::Evicted { message, .. } => {
            set(VALID, "True", "Valid", IS_VALID);
            set(EXECUTED, "True", "Executed", message);
        }
        Eviction::Refused { message, .. } => {
            set(VALID, "True", "Valid", IS_VALID);
            set(EXECUTED, "False", "NotExecuted", message);
        }
    }
    let mut status = eviction.status().as_object().cloned().unwrap_or_else(Map::new);
    status.insert("conditions".into(), Value::Array(conditions));
    Some(Value::Object(status))
}
