//! The end of a process that the API server calls: webhooks are answered until it calls another one.

use std::time::{Duration, Instant};

use anyhow::Result;
use convoy_controllers::metrics::Metrics;
use tokio::task::JoinHandle;

use super::signal::second_signal;

/// How long webhooks are answered after a signal. Until the endpoints of their Service have changed at
/// every API server, reviews arrive here, and a review without an answer refuses a user's request.
const ANSWERED_FOR: Duration = Duration::from_secs(5);

/// What is known of the end of this process.
#[derive(Debug)]
pub(super) struct Ending {
    /// When the first signal came.
    signalled_at: Option<Instant>,
    second: JoinHandle<()>,
}

impl Ending {
    /// Watches from now on for a second signal.
    pub(super) fn watch() -> Result<Self> {
        Ok(Self { signalled_at: None, second: tokio::spawn(second_signal()?) })
    }

    /// Completes with `shutdown`, and is not ready from then on.
    pub(super) async fn begins(&mut self, shutdown: impl Future<Output = ()>, metrics: &Metrics) {
        shutdown.await;
        metrics.end();
        self.signalled_at = Some(Instant::now());
    }

    /// Goes on answering, unless there was a second signal. Whatever else there was to do is done.
    pub(super) async fn answers_on(self) {
        let Some(signalled_at) = self.signalled_at else { return };
        tokio::select! {
            () = tokio::time::sleep(left(signalled_at.elapsed())) => {}
            _ = self.second => {}
        }
    }
}

/// How long webhooks are still answered, so long after the signal: the writes in progress took a part
/// of the time.
fn left(elapsed: Duration) -> Duration {
    ANSWERED_FOR.saturating_sub(elapsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending(second: JoinHandle<()>) -> Ending {
        Ending { signalled_at: None, second }
    }

    #[test]
    fn the_time_of_the_last_writes_counts() {
        for (elapsed_secs, left_secs) in [(0, 5), (3, 2), (5, 0), (20, 0)] {
            let left = left(Duration::from_secs(elapsed_secs));
            assert_eq!(left, Duration::from_secs(left_secs), "after {elapsed_secs} s");
        }
    }

    #[tokio::test]
    async fn a_process_that_ends_is_not_ready_and_a_second_signal_ends_it_at_once() {
        let metrics = Metrics::default();
        metrics.set_ready(true);
        let mut ending = ending(tokio::spawn(async {}));
        ending.begins(async { assert!(metrics.is_ready()) }, &metrics).await;
        assert!(!metrics.is_ready());
        let begun = Instant::now();
        ending.answers_on().await;
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    }

    /// It lost its Lease, for example.
    #[tokio::test]
    async fn a_process_that_ends_without_a_signal_does_not_wait() {
        let begun = Instant::now();
        ending(tokio::spawn(std::future::pending())).answers_on().await;
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    }
}
