//! Batch state: where a compartment is in its batches, how the last one went, and whether
//! failures stopped it. It persists in the Skyhook's status, by compartment name.

use serde_json::{Map, Value, json};

use crate::dialect::skyhook::read::policy::{Strategy, number, percent_of};

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
        let Some(value) = value else { return Self::default() };
        let count = |field| number(value.get(field).and_then(Value::as_i64).unwrap_or(0));
        let flag = |field| value.get(field).and_then(Value::as_bool).unwrap_or(false);
        Self {
            current_batch: count("currentBatch").max(1),
            consecutive_failures: count("consecutiveFailures"),
            completed_nodes: count("completedNodes"),
            failed_nodes: count("failedNodes"),
            should_stop: flag("shouldStop"),
            last_batch_size: count("lastBatchSize"),
            last_batch_failed: flag("lastBatchFailed"),
        }
    }

    /// What is zero or false is left out, as in the API.
    pub(crate) fn wire(&self) -> Value {
        let mut wire = Map::new();
        let counts = [
            ("currentBatch", self.current_batch),
            ("consecutiveFailures", self.consecutive_failures),
            ("completedNodes", self.completed_nodes),
            ("failedNodes", self.failed_nodes),
        ];
        for (field, count) in counts {
            if count > 0 {
                wire.insert(field.to_owned(), json!(count));
            }
        }
        if self.should_stop {
            wire.insert("shouldStop".to_owned(), json!(true));
        }
        if self.last_batch_size > 0 {
            wire.insert("lastBatchSize".to_owned(), json!(self.last_batch_size));
        }
        if self.last_batch_failed {
            wire.insert("lastBatchFailed".to_owned(), json!(true));
        }
        Value::Object(wire)
    }

    /// Takes in what became of the nodes, once no batch is running: `completed` and `failed`
    /// of `total`. What came since the last look is the batch.
    ///
    /// | since the last look    | effect                                              |
    /// |------------------------|-----------------------------------------------------|
    /// | fewer of either        | counters are corrected: nodes left, moved, recovered |
    /// | nothing                | none                                                |
    /// | 4 completed, 1 failed  | a batch of 5, of which 80% succeeded                 |
    pub(crate) fn score(&mut self, strategy: &Strategy, completed: u32, failed: u32, total: u32) {
        let shrunk = completed < self.completed_nodes || failed < self.failed_nodes;
        let new_completed = completed.saturating_sub(self.completed_nodes);
        let size = new_completed.saturating_add(failed.saturating_sub(self.failed_nodes));
        (self.completed_nodes, self.failed_nodes) = (completed, failed);
        if shrunk || size == 0 {
            return;
        }
        self.last_batch_size = size;
        self.last_batch_failed = percent_of(new_completed, size) < strategy.batch_threshold;
        self.current_batch = self.current_batch.saturating_add(1);
        if !self.last_batch_failed {
            self.consecutive_failures = 0;
            return;
        }
        self.consecutive_failures = self.consecutive_failures.saturating_add(1);
        let early = percent_of(completed.saturating_add(failed), total) < strategy.safety_limit;
        let too_many =
            strategy.failure_threshold.is_some_and(|most| self.consecutive_failures >= most);
        self.should_stop |= early && too_many;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::Pace;

    fn strategy(batch_threshold: u32, failure_threshold: Option<u32>) -> Strategy {
        let pace = Pace::Exponential { initial: 1, factor: 2 };
        Strategy { pace, batch_threshold, failure_threshold, safety_limit: 50 }
    }

    #[test]
    fn a_fresh_state_is_only_its_number() {
        assert_eq!(BatchState::default().wire(), json!({"currentBatch": 1}));
        let full = json!({"currentBatch": 3, "consecutiveFailures": 1, "completedNodes": 4,
            "failedNodes": 2, "shouldStop": true, "lastBatchSize": 2, "lastBatchFailed": true});
        assert_eq!(BatchState::read(Some(&full)).wire(), full);
        assert_eq!(BatchState::read(Some(&json!("x"))), BatchState::default());
    }

    #[test]
    fn batches_are_scored_by_what_came_since_the_last() {
        // (threshold, stop after, before, completed, failed) -> (batch, failures, stop, size)
        let cases = [
            ("4 of 5 meet 80%", 80, Some(1), (0, 0), (4, 1), (2, 0, false, 5)),
            ("1 of 3 stops early", 80, Some(1), (2, 0), (3, 2), (2, 1, true, 3)),
            ("late failures do not stop", 100, Some(1), (5, 0), (5, 6), (2, 1, false, 6)),
            ("without a threshold nothing stops", 100, None, (0, 0), (0, 1), (2, 1, false, 1)),
            ("blocked nodes alone score nothing", 100, Some(1), (2, 1), (2, 1), (1, 0, false, 0)),
            ("a node left", 100, Some(1), (2, 1), (2, 0), (1, 0, false, 0)),
        ];
        for (case, threshold, stop_after, before, after, (batch, failures, stop, size)) in cases {
            let mut state = BatchState {
                completed_nodes: before.0,
                failed_nodes: before.1,
                ..BatchState::default()
            };
            state.score(&strategy(threshold, stop_after), after.0, after.1, 20);
            let got = (state.current_batch, state.consecutive_failures, state.should_stop);
            assert_eq!(got, (batch, failures, stop), "{case}");
            assert_eq!(state.last_batch_size, size, "{case}");
            assert_eq!((state.completed_nodes, state.failed_nodes), after, "{case}");
        }
    }

    #[test]
    fn sizes_slow_down_only_before_the_safety_limit() {
        let failed = |completed_nodes, failed_nodes, last_batch_size| BatchState {
            completed_nodes,
            failed_nodes,
            last_batch_size,
            last_batch_failed: true,
            ..BatchState::default()
        };
        let exponential = strategy(100, None);
        assert_eq!(exponential.next_size(&failed(4, 1, 4), 20), 2);
        assert_eq!(exponential.next_size(&failed(9, 1, 4), 20), 8);
        assert_eq!(exponential.next_size(&failed(17, 1, 4), 20), 2, "only two remain");
        assert_eq!(exponential.next_size(&failed(19, 1, 4), 20), 1, "all are processed");
    }
}
