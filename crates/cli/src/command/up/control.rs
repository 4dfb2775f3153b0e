//! A control loop in the server's process.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use convoy_api::clock::Clock;
use convoy_controllers::Clusters;
use convoy_plan::Dialect;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::command::metrics;

/// The controllers that run in the server's process, against one of its logical clusters.
pub(super) struct ControllerTask {
    ending: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

impl ControllerTask {
    /// The controllers begin once `prepared`: a kind whose definition is not there yet is looked for
    /// again only after seconds, and until then counts as one without objects.
    pub(super) async fn start(
        clusters: impl Into<Clusters>,
        dialects: Vec<&'static dyn Dialect>,
        clock: Clock,
        metrics_listen: Option<SocketAddr>,
        prepared: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Self> {
        let (ending, mut ended) = oneshot::channel();
        let clusters = clusters.into();
        let settings =
            convoy_controllers::Settings { clock, ..convoy_controllers::Settings::new(dialects) };
        if let Some(address) = metrics_listen {
            metrics::serve(address, Arc::clone(&settings.metrics)).await?;
        }
        let running = tokio::spawn(async move {
            let is_prepared = tokio::select! {
                () = prepared => true,
                _ = &mut ended => false,
            };
            if is_prepared && !settings.dialects.is_empty() {
                let ended = async { _ = ended.await };
                convoy_controllers::run(clusters, settings, ended).await;
            }
        });
        Ok(Self { ending, running })
    }

    pub(super) async fn end(self) {
        let Self { ending, running } = self;
        drop(ending);
        // A panicked task has ended too.
        _ = running.await;
    }
}
