//! Executes steps: sends their requests to the clusters that they name, and forwards the responses
//! to the reconciler.

use std::sync::Arc;

use convoy_plan::Denial;
use futures_util::future::join_all;
use tokio::sync::mpsc;

use crate::execution::{FinishedStep, PendingRequest, RequestId, RequestResult, StepExecution};
use crate::link::{Link, Links};
use crate::message::Message;
use crate::transport::{self, TransportError};

pub(crate) struct Executor {
    pub(crate) links: Arc<Links>,
    pub(crate) messages: mpsc::Sender<Message>,
}

impl Executor {
    pub(crate) async fn execute(&self, mut execution: StepExecution) -> FinishedStep {
        loop {
            let requests = execution.next_requests();
            if let Some(finished) = execution.finished() {
                return finished;
            }
            let sent = requests.into_iter().map(|pending| self.send(&execution, pending));
            for (id, link, result) in join_all(sent).await {
                let event = execution.handle(id, result);
                if let (Some(link), Some(event)) = (link, event) {
                    // The channel is closed only when the process ends.
                    drop(self.messages.send(link.message(event)).await);
                }
            }
        }
    }

    async fn send(
        &self,
        execution: &StepExecution,
        pending: PendingRequest,
    ) -> (RequestId, Option<Arc<Link>>, RequestResult) {
        let PendingRequest { id, delay } = pending;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let cluster = execution.cluster(id);
        let Some(link) = self.links.get(cluster) else {
            let message = format!("there is no connection to cluster {cluster:?}");
            return (id, None, RequestResult::NoCluster(message));
        };
        let kind = execution.kind(id);
        let result = match link.discovery.find(&link.cluster, kind).await {
            Ok(Some(resource)) => {
                let request = execution.request(id, &resource);
                let response = match id {
                    RequestId::Write(_) => link.writer.fetch(request).await,
                    RequestId::Read(_) => link.fetch(request.path).await,
                };
                match response {
                    Ok(response) => RequestResult::Response(response.trimmed()),
                    Err(TransportError::Fenced(refusal)) => {
                        RequestResult::Unsent(refusal.to_string())
                    }
                    Err(error) => RequestResult::Lost(transport::chain(&error)),
                }
            }
            Ok(None) => RequestResult::Unsupported(Denial::of_unknown_kind(kind)),
            Err(error) => RequestResult::Unsent(transport::chain(&error)),
        };
        (id, Some(link), result)
    }
}
