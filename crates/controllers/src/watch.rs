//! Follows one kind on a server: sends what its [`Follower`] asks for, and tells the loop.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use kube::Client;
use kube::core::WatchEvent;
use tokio::sync::mpsc;

use crate::api::{self, ApiError};
use crate::brain::News;
use crate::discovery::Discovery;
use crate::follower::{Closed, Follower, Seen, WATCH_SECS, Wish};
use crate::request::Request;
use crate::run::Message;
use crate::trimmed::Trimmed;

/// A watch this silent, beyond its own end, has lost its server.
const SILENCE_MAX: Duration = Duration::from_secs(WATCH_SECS + 30);

pub(crate) struct Watcher {
    pub(crate) client: Client,
    pub(crate) discovery: Arc<Discovery>,
    pub(crate) follower: Follower,
    pub(crate) messages: mpsc::Sender<Message>,
}

/// The loop has ended.
struct Ended;

impl Watcher {
    pub(crate) async fn run(mut self) {
        while self.go_on().await.is_ok() {}
    }

    async fn go_on(&mut self) -> Result<(), Ended> {
        let (wish, pause) = self.follower.wish();
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        match wish {
            Wish::Resource => match self.discovery.find(&self.client, self.follower.kind()).await {
                Ok(resource) => {
                    let news = self.follower.found(resource);
                    self.tell(news).await
                }
                Err(error) => {
                    self.trouble(&api::chain(&error));
                    self.follower.failed();
                    Ok(())
                }
            },
            Wish::List { path } => self.list(path).await,
            Wish::Watch { path, .. } => {
                let closed = self.watch(path).await?;
                if let Err(why) = self.follower.closed(closed) {
                    self.trouble(&why);
                }
                Ok(())
            }
        }
    }

    async fn list(&mut self, path: String) -> Result<(), Ended> {
        let listed = match api::fetch(&self.client, Request::get(path)).await {
            Ok(answer) if answer.code == 200 => self.follower.listed_text(&answer.text),
            Ok(answer) => {
                if answer.code == 404 {
                    self.discovery.forget(self.follower.kind());
                }
                self.follower.listed(answer.read())
            }
            Err(error) => Err(api::chain(&error)),
        };
        match listed {
            Ok(news) => self.tell(news).await,
            Err(why) => {
                self.trouble(&why);
                self.follower.failed();
                Ok(())
            }
        }
    }

    /// One watch, until it ends.
    async fn watch(&mut self, path: String) -> Result<Closed, Ended> {
        let request = match api::form(Request::get(path)) {
            Ok(request) => request,
            Err(error) => return Ok(Closed::Broken(api::chain(&error))),
        };
        let events = self.client.request_events::<Trimmed>(request).await;
        let mut events = match events {
            Ok(events) => std::pin::pin!(events),
            Err(kube::Error::Api(status)) if [404, 410].contains(&status.code) => {
                return Ok(Closed::Expired);
            }
            Err(error) => return Ok(Closed::Broken(api::chain(&ApiError::Send(error)))),
        };
        while self.follower.is_watching() {
            let next = tokio::time::timeout(SILENCE_MAX, events.try_next()).await;
            let Ok(next) = next else { return Ok(Closed::Properly) };
            let seen = match next {
                Ok(Some(event)) => seen(event),
                Ok(None) => return Ok(Closed::Properly),
                Err(error) => return Ok(Closed::Broken(api::chain(&ApiError::Read(error)))),
            };
            let news = self.follower.seen(seen);
            self.tell(news).await?;
        }
        Ok(Closed::Properly)
    }

    async fn tell(&self, news: Option<News>) -> Result<(), Ended> {
        let Some(news) = news else { return Ok(()) };
        self.messages.send(Message::News(news)).await.map_err(|_| Ended)
    }

    fn trouble(&self, why: &str) {
        tracing::warn!(kind = %self.follower.kind(), why, "could not follow; trying again");
    }
}

fn seen(event: WatchEvent<Trimmed>) -> Seen<'static> {
    match event {
        WatchEvent::Added(Trimmed(raw)) | WatchEvent::Modified(Trimmed(raw)) => {
            Seen::Changed(Cow::Owned(raw))
        }
        WatchEvent::Deleted(Trimmed(raw)) => Seen::Deleted(Cow::Owned(raw)),
        WatchEvent::Bookmark(bookmark) => Seen::Bookmark(bookmark.metadata.resource_version),
        WatchEvent::Error(status) => {
            tracing::debug!(code = status.code, "the watch is too old");
            Seen::Expired
        }
    }
}
