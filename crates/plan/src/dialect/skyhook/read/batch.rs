//! Batch state as the Skyhook's status keeps it, by compartment name.

use convoy_api::object::view::view_of;
use convoy_api::skyhook as wire;
use serde_json::{Value, json};

use crate::dialect::skyhook::read::policy::number;

/// Where a compartment is in its batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BatchState {
    /// Counts from 1.
    pub(crate) current_batch: u32,
    pub(crate) consecutive_failures: u32,
    pub(crate) completed_nodes: u32,
    pub(crate) failed_nodes: u32,
    pub(crate) should_stop: bool,
    /// How many nodes the last batch turned out to have; 0 before the first.
    pub(crate) last_batch_size: u32,
    pub(crate) last_batch_failed: bool,
}

impl Default for BatchState {
    fn default() -> Self {
        Self {
            current_batch: 1,
            consecutive_failures: 0,
            completed_nodes: 0,
            failed_nodes: 0,
            should_stop: false,
            last_batch_size: 0,
            last_batch_failed: false,
        }
    }
}

impl BatchState {
    /// What is absent, or cannot be read, is as at the start.
    pub(crate) fn read(value: Option<&Value>) -> Self {
        let stored = value.and_then(|value| view_of::<wire::BatchState>(value).ok());
        let Some(stored) = stored else { return Self::default() };
        let count = |field: Option<i64>| number(field.unwrap_or(0));
        Self {
            current_batch: count(stored.current_batch).max(1),
            consecutive_failures: count(stored.consecutive_failures),
            completed_nodes: count(stored.completed_nodes),
            failed_nodes: count(stored.failed_nodes),
            should_stop: stored.should_stop.unwrap_or(false),
            last_batch_size: count(stored.last_batch_size),
            last_batch_failed: stored.last_batch_failed.unwrap_or(false),
        }
    }

    /// What is zero or false is left out, as in the API.
    pub(crate) fn wire(&self) -> Value {
        let count = |number: u32| (number > 0).then(|| i64::from(number));
        json!(wire::BatchState {
            current_batch: count(self.current_batch),
            consecutive_failures: count(self.consecutive_failures),
            completed_nodes: count(self.completed_nodes),
            failed_nodes: count(self.failed_nodes),
            should_stop: self.should_stop.then_some(true),
            last_batch_size: count(self.last_batch_size),
            last_batch_failed: self.last_batch_failed.then_some(true),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_state_is_only_its_number() {
        assert_eq!(BatchState::default().wire(), json!({"currentBatch": 1}));
        let full = json!({"currentBatch": 3, "consecutiveFailures": 1, "completedNodes": 4,
            "failedNodes": 2, "shouldStop": true, "lastBatchSize": 2, "lastBatchFailed": true});
        assert_eq!(BatchState::read(Some(&full)).wire(), full);
        assert_eq!(BatchState::read(Some(&json!("x"))), BatchState::default());
    }
}
