//! A standby's watch of the lease: it sees that the leader released it, and need not wait for its
//! next look. Whether the lease may be taken is decided in [`crate::lease`] all the same.

use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use kube::Client;
use kube::core::WatchEvent;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::lease::{Election, holder};
use crate::request::Request;
use crate::transport::{self, TransportError};
use crate::trimmed::Trimmed;

/// Watches until it is dropped.
pub(crate) struct LeaseWatch {
    seen: Arc<Notify>,
    task: AbortHandle,
}

impl LeaseWatch {
    pub(crate) fn start(client: Client, election: &Election) -> Self {
        let seen = Arc::<Notify>::default();
        let (path, pause) = (election.watch_path(), election.timing.retry());
        let task = tokio::spawn(watch(client, path, pause, Arc::clone(&seen))).abort_handle();
        Self { seen, task }
    }

    /// Waits until the lease is seen without a holder, which may have been since the last call.
    /// Never returns if the lease cannot be watched: the candidate looks after a while in any case.
    pub(crate) async fn released(&self) {
        self.seen.notified().await;
    }
}

impl Drop for LeaseWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn watch(client: Client, path: String, pause: Duration, seen: Arc<Notify>) {
    loop {
        if let Err(error) = watch_once(&client, &path, &seen).await {
            let why = transport::chain(&error);
            tracing::debug!(why, "could not watch the lease; looking at it regularly");
        }
        tokio::time::sleep(pause).await;
    }
}

/// Until the server ends the watch.
async fn watch_once(client: &Client, path: &str, seen: &Notify) -> Result<(), TransportError> {
    let request = transport::http_request(Request::get(path))?;
    #[expect(clippy::disallowed_methods, reason = "a watch is a read")]
    let events = client.request_events::<Trimmed>(request).await.map_err(TransportError::Send)?;
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.try_next().await.map_err(TransportError::Read)? {
        match event {
            WatchEvent::Added(Trimmed(lease)) | WatchEvent::Modified(Trimmed(lease)) => {
                if holder(&lease).is_empty() {
                    seen.notify_one();
                }
            }
            WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(_) => break,
        }
    }
    Ok(())
}
