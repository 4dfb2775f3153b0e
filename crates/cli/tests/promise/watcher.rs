//! A client that follows every write to a kind, in order, and hands it on.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use convoy_api::Object;
use futures_util::TryStreamExt;
use http::Request;
use kube::Client;
use kube::core::WatchEvent;
use serde_json::Value;

pub(crate) struct Watcher {
    findings: Arc<Mutex<Vec<String>>>,
    seen: Arc<AtomicUsize>,
}

impl Watcher {
    /// Follows what a path lists, beginning with what is there. What `see` finds wrong is kept.
    pub(crate) async fn start(
        client: Client,
        path: &'static str,
        mut see: impl FnMut(&Object, bool) -> Result<(), String> + Send + 'static,
    ) -> Self {
        let list: Value =
            client.request(Request::get(path).body(Vec::new()).unwrap()).await.unwrap();
        let version = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        for item in list["items"].as_array().unwrap() {
            let mut raw = item.clone();
            raw["apiVersion"] = list["apiVersion"].clone();
            let kind = list["kind"].as_str().unwrap();
            raw["kind"] = kind.strip_suffix("List").unwrap().into();
            see(&Object::from_value(raw).unwrap(), false).unwrap();
        }
        let watcher = Self { findings: Arc::default(), seen: Arc::default() };
        let (findings, seen) = (Arc::clone(&watcher.findings), Arc::clone(&watcher.seen));
        tokio::spawn(async move {
            let ended = follow(&client, path, &version, |object, is_gone| {
                seen.fetch_add(1, Ordering::Relaxed);
                if let Err(finding) = see(object, is_gone) {
                    findings.lock().unwrap().push(finding);
                }
            });
            let ended = ended.await;
            findings.lock().unwrap().push(format!("the watch ended: {ended:?}"));
        });
        watcher
    }

    /// How many writes it has seen.
    pub(crate) fn seen(&self) -> usize {
        self.seen.load(Ordering::Relaxed)
    }

    /// Nothing was found so far.
    pub(crate) fn approve(&self) {
        let findings = self.findings.lock().unwrap();
        assert!(findings.is_empty(), "{findings:#?}");
    }
}

/// Sees every event, in order; ends only with the server.
async fn follow(
    client: &Client,
    path: &str,
    version: &str,
    mut see: impl FnMut(&Object, bool),
) -> Result<(), kube::Error> {
    let path = format!("{path}?watch=true&timeoutSeconds=3600&resourceVersion={version}");
    let request = Request::get(path).body(Vec::new()).unwrap();
    let mut events = std::pin::pin!(client.request_events::<Value>(request).await?);
    while let Some(event) = events.try_next().await? {
        let (raw, is_gone) = match event {
            WatchEvent::Added(raw) | WatchEvent::Modified(raw) => (raw, false),
            WatchEvent::Deleted(raw) => (raw, true),
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
        };
        see(&Object::from_value(raw).unwrap(), is_gone);
    }
    Ok(())
}
