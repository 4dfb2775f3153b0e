//! Batches: how the last one went, whether failures stopped the compartment, and how large the
//! next one is.

use crate::dialect::skyhook::read::batch::BatchState;
use crate::dialect::skyhook::read::policy::{Strategy, percent_of};
use crate::pace::LastBatch;

/// Takes in what became of the nodes, once no batch is running: `completed` and `failed`
/// of `total`. What came since the last look is the batch.
///
/// | since the last look    | effect                                              |
/// |------------------------|-----------------------------------------------------|
/// | fewer of either        | counters are corrected: nodes left, moved, recovered |
/// | nothing                | none                                                |
/// | 4 completed, 1 failed  | a batch of 5, of which 80% succeeded                 |
pub(crate) fn score(
    state: &mut BatchState,
    strategy: &Strategy,
    completed: u32,
    failed: u32,
    total: u32,
) {
    let shrunk = completed < state.completed_nodes || failed < state.failed_nodes;
    let new_completed = completed.saturating_sub(state.completed_nodes);
    let size = new_completed.saturating_add(failed.saturating_sub(state.failed_nodes));
    (state.completed_nodes, state.failed_nodes) = (completed, failed);
    if shrunk || size == 0 {
        return;
    }
    state.last_batch_size = size;
    state.last_batch_failed = percent_of(new_completed, size) < strategy.batch_threshold;
    state.current_batch = state.current_batch.saturating_add(1);
    if !state.last_batch_failed {
        state.consecutive_failures = 0;
        return;
    }
    state.consecutive_failures = state.consecutive_failures.saturating_add(1);
    let early = !strategy.is_past_safety_limit(completed, failed, total);
    let too_many =
        strategy.failure_threshold.is_some_and(|most| state.consecutive_failures >= most);
    state.should_stop |= early && too_many;
}
/// The size that `strategy` asks for after `batch`, in a compartment of `total` nodes: never
/// more than remain, never none.
pub(crate) fn next_size(strategy: &Strategy, batch: &BatchState, total: u32) -> u32 {
    let processed = batch.completed_nodes.saturating_add(batch.failed_nodes);
    let is_past = strategy.is_past_safety_limit(batch.completed_nodes, batch.failed_nodes, total);
    let slow_down = batch.last_batch_failed && !is_past;
    let last = LastBatch { size: batch.last_batch_size, slow_down };
    strategy.pace.next_size(last).min(total.saturating_sub(processed)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::skyhook::read::policy::SafetyProgress;
    use crate::pace::Pace;

    fn strategy(batch_threshold: u32, failure_threshold: Option<u32>) -> Strategy {
        let pace = Pace::Exponential { initial: 1, factor: 2 };
        let safety_progress = SafetyProgress::Processed;
        Strategy { pace, batch_threshold, failure_threshold, safety_limit: 50, safety_progress }
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
            score(&mut state, &strategy(threshold, stop_after), after.0, after.1, 20);
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
        assert_eq!(next_size(&exponential, &failed(4, 1, 4), 20), 2);
        assert_eq!(next_size(&exponential, &failed(9, 1, 4), 20), 8);
        assert_eq!(next_size(&exponential, &failed(17, 1, 4), 20), 2, "only two remain");
        assert_eq!(next_size(&exponential, &failed(19, 1, 4), 20), 1, "all are processed");
    }
}
