//! Executes steps on a server: sends their requests, and forwards the responses to the
//! reconciler.

use std::sync::Arc;

use futures_util::future::join_all;
use kube::Client;
use tokio::sync::mpsc;

use crate::discovery::Discovery;
use crate::execution::{FinishedStep, PendingRequest, RequestId, RequestResult, StepExecution};
use crate::message::Message;
use crate::transport::{self, TransportError, Writer};

pub(crate) struct Executor {
    /// For reads.
    pub(crate) client: Client,
    pub(crate) writer: Writer,
    pub(crate) discovery: Arc<Discovery>,
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
            for (id, result) in join_all(sent).await {
                if let Some(event) = execution.handle(id, result) {
                    // The channel is closed only when the process ends.
                    drop(self.messages.send(Message::Cache(event)).await);
                }
            }
        }
    }

    async fn send(
        &self,
        execution: &StepExecution,
        pending: PendingRequest,
    ) -> (RequestId, RequestResult) {
        let PendingRequest { id, delay } = pending;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let kind = execution.kind(id);
        let result = match self.discovery.find(&self.client, kind).await {
            Ok(Some(resource)) => {
                let request = execution.request(id, &resource);
                let response = match id {
                    RequestId::Write(_) => self.writer.fetch(request).await,
                    RequestId::Read(_) => transport::fetch(&self.client, request.path).await,
                };
                match response {
                    Ok(response) => RequestResult::Response(response.trimmed()),
                    Err(TransportError::Fenced(refusal)) => {
                        RequestResult::Unsent(refusal.to_string())
                    }
                    Err(error) => RequestResult::Lost(transport::chain(&error)),
                }
            }
            Ok(None) => RequestResult::Unsupported(format!("the server does not serve {kind}")),
            Err(error) => RequestResult::Unsent(transport::chain(&error)),
        };
        (id, result)
    }
}
