//! What the tasks around the reconciler send to it.

use crate::cache::{CacheEvent, Rollout};
use crate::execution::FinishedStep;

#[derive(Debug)]
pub(crate) enum Message {
    Cache(CacheEvent),
    /// The writes of a step have ended.
    Finished {
        rollout: Rollout,
        finished: FinishedStep,
    },
}
