//! What the tasks around the reconciler send to it.

use smol_str::SmolStr;

use crate::cache::CacheEvent;
use crate::execution::FinishedStep;
use crate::rollout::Rollout;

#[derive(Debug)]
pub(crate) enum Message {
    /// Of a cluster, over the connection with this number.
    Cache { cluster: SmolStr, link: u64, event: CacheEvent },
    /// The writes of a step have ended.
    Finished { rollout: Rollout, finished: FinishedStep },
}
