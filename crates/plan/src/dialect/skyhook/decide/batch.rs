//! Batches: how the last one went, whether failures stopped the compartment, and how large the
//! next one is.

use crate::dialect::skyhook::read::batch::BatchState;
use crate::dialect::skyhook::read::policy::{Strategy, percent_of};
use crate::pace::LastBatch;

/// How many nodes completed and failed, of a batch or of a compartment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) completed: u32,
    pub(crate) failed: u32,
}

impl Ended {
    pub(crate) fn sum(self) -> u32 {
        self.completed.saturating_add(self.failed)
    }
}

/// Takes in what became of the nodes, once no batch is running: `all` of `total`. What came since
/// the last look is the batch. This is for state without marks, as upstream writes it.
///
/// | since the last look    | effect                                              |
/// |------------------------|-----------------------------------------------------|
/// | fewer of either        | counters are corrected: nodes left, moved, recovered |
/// | nothing                | none                                                |
/// | 4 completed, 1 failed  | a batch of 5, of which 80% succeeded                 |
pub(crate) fn score_by_difference(
    state: &mut BatchState,
    strategy: &Strategy,
    all: Ended,
    total: u32,
) {
    if all.completed < state.completed_nodes || all.failed < state.failed_nodes {
        (state.completed_nodes, state.failed_nodes) = (all.completed, all.failed);
        return;
    }
    let batch = Ended {
        completed: all.completed - state.completed_nodes,
        failed: all.failed - state.failed_nodes,
    };
    score(state, strategy, batch, all, total);
}

/// Takes in how a finished batch went. `all` of the `total` nodes of the compartment have ended,
/// those of the batch included. A batch of which nobody ended is not scored: its nodes are blocked, or
/// left, and the next nodes take its place.
pub(crate) fn score(
    state: &mut BatchState,
    strategy: &Strategy,
    batch: Ended,
    all: Ended,
    total: u32,
) {
    let size = batch.sum();
    if size == 0 {
        return;
    }
    (state.completed_nodes, state.failed_nodes) = (all.completed, all.failed);
    state.last_batch_size = size;
    state.last_batch_failed = percent_of(batch.completed, size) < strategy.batch_threshold;
    state.current_batch = state.current_batch.saturating_add(1);
    if !state.last_batch_failed {
        state.consecutive_failures = 0;
        return;
    }
    state.consecutive_failures = state.consecutive_failures.saturating_add(1);
    let early = !strategy.is_past_safety_limit(all.completed, all.failed, total);
    let too_many =
        strategy.failure_threshold.is_some_and(|most| state.consecutive_failures >= most);
    state.should_stop |= early && too_many;
}

/// The size that `strategy` asks for after `batch`, in a compartment of `total` nodes of which
/// `processed` have ended: never more than remain, never none.
pub(crate) fn next_size(
    strategy: &Strategy,
    batch: &BatchState,
    processed: Ended,
    total: u32,
) -> u32 {
    let Ended { completed, failed } = processed;
    let slow_down =
        batch.last_batch_failed && !strategy.is_past_safety_limit(completed, failed, total);
    let last = LastBatch { size: batch.last_batch_size, slow_down };
    strategy.pace.next_size(last).min(total.saturating_sub(processed.sum())).max(1)
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
            let all = Ended { completed: after.0, failed: after.1 };
            score_by_difference(&mut state, &strategy(threshold, stop_after), all, 20);
            let got = (state.current_batch, state.consecutive_failures, state.should_stop);
            assert_eq!(got, (batch, failures, stop), "{case}");
            assert_eq!(state.last_batch_size, size, "{case}");
            assert_eq!((state.completed_nodes, state.failed_nodes), after, "{case}");
        }
    }

    #[test]
    fn a_batch_is_scored_by_its_own_nodes_whatever_else_ended() {
        let (mut state, policy) = (BatchState::default(), strategy(100, Some(1)));
        let batch = Ended { completed: 2, failed: 0 };
        score(&mut state, &policy, batch, Ended { completed: 9, failed: 3 }, 20);
        assert_eq!((state.last_batch_size, state.current_batch), (2, 2));
        assert_eq!((state.completed_nodes, state.failed_nodes), (9, 3));
        let before = state.clone();
        score(&mut state, &policy, Ended::default(), Ended { completed: 1, failed: 0 }, 20);
        assert_eq!(state, before, "nobody ended");
    }

    #[test]
    fn sizes_slow_down_only_before_the_safety_limit() {
        let failed =
            BatchState { last_batch_size: 4, last_batch_failed: true, ..BatchState::default() };
        let exponential = strategy(100, None);
        let size = |completed| next_size(&exponential, &failed, Ended { completed, failed: 1 }, 20);
        assert_eq!(size(4), 2);
        assert_eq!(size(9), 8);
        assert_eq!(size(17), 2, "only two remain");
        assert_eq!(size(19), 1, "all are processed");
    }
}
