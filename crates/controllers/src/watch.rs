//! One kind, listed and then watched for as long as the loop runs. A kind that the server does
//! not serve has no objects, until it does.

use std::sync::Arc;
use std::time::Duration;

use convoy_api::{GroupKind, Object};
use futures_util::TryStreamExt;
use kube::Client;
use kube::core::WatchEvent;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::api::{self, ApiError};
use crate::discovery::{Discovery, DiscoveryError};
use crate::projection::Projections;
use crate::request::{Request, Resource};
use crate::run::Message;

/// Objects asked for at once: a page that a server answers without holding up others.
const PAGE: usize = 500;
/// How often a kind that is not served is asked for.
const ABSENT: Duration = Duration::from_secs(5);
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Servers end watches by themselves; asking them to do so in time spreads the work.
const WATCH_SECS: u64 = 290;
/// A watch this silent, beyond its own end, has lost its server.
const SILENCE_MAX: Duration = Duration::from_secs(WATCH_SECS + 30);
/// How often a watch is taken up again where it broke off before everything is listed anew.
const RESUMES: u32 = 3;

/// Follows the objects of one kind.
pub(crate) struct Watcher {
    pub(crate) client: Client,
    pub(crate) discovery: Arc<Discovery>,
    pub(crate) projections: Arc<Projections>,
    pub(crate) kind: GroupKind,
    pub(crate) messages: mpsc::Sender<Message>,
}

#[derive(Debug, thiserror::Error)]
enum WatchError {
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("could not list: {message}")]
    List { message: String },
    #[error("the watch broke off")]
    Watch(#[source] kube::Error),
    #[error("the loop has ended")]
    Ended,
}

#[derive(Deserialize)]
struct Page {
    metadata: PageMetadata,
    #[serde(default)]
    items: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata {
    #[serde(default)]
    resource_version: String,
    #[serde(default)]
    r#continue: Option<String>,
}

/// What a watch does after an event.
enum Next {
    GoOn,
    ListAnew,
}

impl Watcher {
    pub(crate) async fn run(self) {
        let mut failures = 0;
        loop {
            match self.follow(&mut failures).await {
                Ok(()) => {}
                Err(WatchError::Ended) => return,
                Err(error) => {
                    let pause = PAUSE_FIRST.saturating_mul(1 << failures.min(16)).min(PAUSE_MAX);
                    failures += 1;
                    let why = api::chain(&error);
                    tracing::warn!(kind = %self.kind, why, "could not follow; trying again");
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }

    async fn follow(&self, failures: &mut u32) -> Result<(), WatchError> {
        let Some(resource) = self.discovery.find(&self.client, &self.kind).await? else {
            self.listed(None, Vec::new()).await?;
            tokio::time::sleep(ABSENT).await;
            return Ok(());
        };
        let Some(version) = self.list(&resource).await? else {
            self.discovery.forget(&self.kind);
            return Ok(());
        };
        *failures = 0;
        self.watch(&resource, version).await
    }

    /// Tells of every object there is; gives back the version they are of, or none if the kind
    /// is not served any more.
    async fn list(&self, resource: &Resource) -> Result<Option<String>, WatchError> {
        let (mut objects, mut token) = (Vec::new(), String::new());
        loop {
            let path = format!("{}?limit={PAGE}{token}", resource.collection(""));
            let answer = api::send(&self.client, Request::get(path)).await?;
            match answer.code {
                200 => {}
                404 => return Ok(None),
                // The pages asked for are too old by now: from the beginning.
                410 if !token.is_empty() => {
                    objects.clear();
                    token.clear();
                    continue;
                }
                _ => return Err(WatchError::List { message: answer.message() }),
            }
            let page: Page = serde_json::from_value(answer.body)
                .map_err(|error| WatchError::List { message: error.to_string() })?;
            objects.extend(page.items.into_iter().filter_map(|item| self.item(resource, item)));
            let Some(next) = page.metadata.r#continue.filter(|token| !token.is_empty()) else {
                let version = page.metadata.resource_version;
                self.listed(version.parse().ok(), objects).await?;
                return Ok(Some(version));
            };
            token = format!("&continue={next}");
        }
    }

    /// Items of a list do not say what they are.
    fn item(&self, resource: &Resource, mut item: Value) -> Option<Object> {
        let fields = item.as_object_mut()?;
        fields.insert("apiVersion".to_owned(), resource.api_version().into());
        fields.insert("kind".to_owned(), self.kind.kind.as_str().into());
        self.projections.read(item)
    }

    async fn watch(&self, resource: &Resource, mut version: String) -> Result<(), WatchError> {
        let mut resumes = 0;
        loop {
            let path = format!(
                "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECS}&resourceVersion={version}",
                resource.collection("")
            );
            let before = version.clone();
            let ended = self.watch_once(path, &mut version).await;
            let moved = before != version;
            resumes = if moved { 0 } else { resumes + 1 };
            match ended {
                Ok(Next::ListAnew) => return Ok(()),
                Ok(Next::GoOn) if resumes <= RESUMES || moved => {}
                // A quiet kind whose watches just end is followed all the same.
                Ok(Next::GoOn) => tokio::time::sleep(PAUSE_FIRST).await,
                Err(WatchError::Watch(error)) if resumes <= RESUMES => {
                    tracing::debug!(kind = %self.kind, %error, "the watch broke off; resuming");
                    tokio::time::sleep(PAUSE_FIRST.saturating_mul(1 << resumes)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// One watch from `version` on, which moves along with what it tells.
    async fn watch_once(&self, path: String, version: &mut String) -> Result<Next, WatchError> {
        let request = api::form(Request::get(path))?;
        let events = self.client.request_events::<Value>(request).await;
        let mut events = match events {
            Ok(events) => std::pin::pin!(events),
            Err(kube::Error::Api(status)) if [404, 410].contains(&status.code) => {
                return Ok(Next::ListAnew);
            }
            Err(error) => return Err(WatchError::Watch(error)),
        };
        loop {
            let next = tokio::time::timeout(SILENCE_MAX, events.try_next()).await;
            let Ok(next) = next else { return Ok(Next::GoOn) };
            let Some(event) = next.map_err(WatchError::Watch)? else { return Ok(Next::GoOn) };
            if let Next::ListAnew = self.take(event, version).await? {
                return Ok(Next::ListAnew);
            }
        }
    }

    async fn take(&self, event: WatchEvent<Value>, at: &mut String) -> Result<Next, WatchError> {
        let (raw, is_gone) = match event {
            WatchEvent::Added(raw) | WatchEvent::Modified(raw) => (raw, false),
            WatchEvent::Deleted(raw) => (raw, true),
            WatchEvent::Bookmark(bookmark) => {
                *at = bookmark.metadata.resource_version;
                return Ok(Next::GoOn);
            }
            WatchEvent::Error(status) => {
                tracing::debug!(kind = %self.kind, code = status.code, "the watch is too old");
                return Ok(Next::ListAnew);
            }
        };
        if let Some(newer) = raw.pointer("/metadata/resourceVersion").and_then(Value::as_str) {
            newer.clone_into(at);
        }
        if let Some(object) = self.projections.read(raw) {
            let message = if is_gone { Message::Deleted(object) } else { Message::Changed(object) };
            self.messages.send(message).await.map_err(|_| WatchError::Ended)?;
        }
        Ok(Next::GoOn)
    }

    async fn listed(&self, version: Option<u64>, objects: Vec<Object>) -> Result<(), WatchError> {
        let message = Message::Listed { kind: self.kind.clone(), version, objects };
        self.messages.send(message).await.map_err(|_| WatchError::Ended)
    }
}
