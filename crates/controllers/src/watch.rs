//! Runs one [`Reflector`] against a cluster: sends its requests, and forwards the events to the
//! reconciler.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use kube::core::WatchEvent;
use tokio::sync::mpsc;

use crate::cache::CacheEvent;
use crate::complaints::Complaint;
use crate::link::Link;
use crate::message::Message;
use crate::reflector::{Reflector, ReflectorRequest, StreamEvent, WATCH_SECS, WatchEnd};
use crate::request::Request;
use crate::transport::{self, TransportError};
use crate::trimmed::Trimmed;

/// A watch that is silent for longer than its own time limit has lost its server.
const SILENCE_MAX: Duration = Duration::from_secs(WATCH_SECS + 30);

pub(crate) struct Watcher {
    link: Arc<Link>,
    reflector: Reflector,
    messages: mpsc::Sender<Message>,
    complaint: Complaint,
}

/// The reconciler has ended.
struct Stopped;

impl Watcher {
    pub(crate) fn new(
        link: Arc<Link>,
        reflector: Reflector,
        messages: mpsc::Sender<Message>,
    ) -> Self {
        Self { link, reflector, messages, complaint: Complaint::default() }
    }

    pub(crate) async fn run(mut self) {
        while self.send_next().await.is_ok() {}
    }

    async fn send_next(&mut self) -> Result<(), Stopped> {
        let (request, delay) = self.reflector.next_request();
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        match request {
            ReflectorRequest::Discover => self.discover().await,
            ReflectorRequest::List { path } => self.list(path).await,
            ReflectorRequest::Watch { path, .. } => {
                let end = self.watch(path).await?;
                match self.reflector.watch_ended(end) {
                    Ok(()) => Ok(()),
                    Err(why) => self.report(why).await,
                }
            }
        }
    }

    async fn discover(&mut self) -> Result<(), Stopped> {
        match self.link.discovery.find(&self.link.cluster, self.reflector.kind()).await {
            Ok(resource) => {
                let event = self.reflector.discovered(resource);
                self.forward(event).await
            }
            Err(error) => self.failed(transport::chain(&error)).await,
        }
    }

    async fn list(&mut self, path: String) -> Result<(), Stopped> {
        let listed = match self.link.fetch(path).await {
            Ok(response) if response.code == 200 => self.reflector.listed_text(&response.text),
            Ok(response) => {
                if response.code == 404 {
                    self.link.discovery.forget(self.reflector.kind());
                }
                self.reflector.listed(response.read())
            }
            Err(error) => Err(transport::chain(&error)),
        };
        match listed {
            Ok(event) => {
                if let Some(after) = self.complaint.settle(&self.link.complaints) {
                    let kind = self.reflector.collection();
                    tracing::info!(%kind, after, "list succeeded again");
                }
                self.forward(event).await
            }
            Err(why) => self.failed(why).await,
        }
    }

    /// Discovery or a list has failed.
    async fn failed(&mut self, why: String) -> Result<(), Stopped> {
        self.reflector.failed();
        self.report(why).await
    }

    /// Runs one watch until it ends.
    async fn watch(&mut self, path: String) -> Result<WatchEnd, Stopped> {
        let request = match transport::http_request(Request::get(path)) {
            Ok(request) => request,
            Err(error) => return Ok(WatchEnd::Broken(transport::chain(&error))),
        };
        #[expect(clippy::disallowed_methods, reason = "a watch is a read")]
        let events = self.link.cluster.client.request_events::<Trimmed>(request).await;
        let mut events = match events {
            Ok(events) => std::pin::pin!(events),
            Err(kube::Error::Api(status)) if [404, 410].contains(&status.code) => {
                return Ok(WatchEnd::Expired);
            }
            Err(error) => {
                return Ok(WatchEnd::Broken(transport::chain(&TransportError::Send(error))));
            }
        };
        while self.reflector.is_watching() {
            let next = tokio::time::timeout(SILENCE_MAX, events.try_next()).await;
            let Ok(next) = next else { return Ok(WatchEnd::Closed) };
            let event = match next {
                Ok(Some(event)) => stream_event(event),
                Ok(None) => return Ok(WatchEnd::Closed),
                Err(error) => {
                    return Ok(WatchEnd::Broken(transport::chain(&TransportError::Read(error))));
                }
            };
            let event = self.reflector.observed(event);
            self.forward(event).await?;
        }
        Ok(WatchEnd::Closed)
    }

    async fn forward(&self, event: Option<CacheEvent>) -> Result<(), Stopped> {
        let Some(event) = event else { return Ok(()) };
        self.messages.send(self.link.message(event)).await.map_err(|_| Stopped)
    }

    async fn report(&mut self, why: String) -> Result<(), Stopped> {
        let collection = self.reflector.collection().clone();
        if self.complaint.raise(&self.link.complaints, &why) {
            tracing::warn!(kind = %collection, why, "list or watch failed; retrying");
        } else {
            tracing::debug!(kind = %collection, why, "list or watch failed; retrying");
        }
        self.forward(Some(CacheEvent::Failed { collection, why })).await
    }
}

impl Drop for Watcher {
    /// A watch that is not wanted any more has nothing to complain about.
    fn drop(&mut self) {
        self.complaint.settle(&self.link.complaints);
    }
}

fn stream_event(event: WatchEvent<Trimmed>) -> StreamEvent<'static> {
    match event {
        WatchEvent::Added(Trimmed(raw)) | WatchEvent::Modified(Trimmed(raw)) => {
            StreamEvent::Applied(Cow::Owned(raw))
        }
        WatchEvent::Deleted(Trimmed(raw)) => StreamEvent::Deleted(Cow::Owned(raw)),
        WatchEvent::Bookmark(bookmark) => StreamEvent::Bookmark(bookmark.metadata.resource_version),
        WatchEvent::Error(status) => {
            tracing::debug!(code = status.code, "the version of the watch has expired");
            StreamEvent::Expired
        }
    }
}
