//! A client that follows every write to pods and holds the promise against it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use convoy_api::Object;
use convoy_check::{Hand, Vigil};
use futures_util::TryStreamExt;
use http::Request;
use jiff::Timestamp;
use kube::Client;
use kube::core::WatchEvent;
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";

pub(crate) struct Watcher {
    vigil: Arc<Mutex<Vigil>>,
    findings: Arc<Mutex<Vec<String>>>,
    seen: Arc<AtomicUsize>,
}

impl Watcher {
    /// Watches over the pods of a Deployment that has none yet.
    pub(crate) async fn start(client: Client, deployment: &Value) -> Self {
        let mut vigil = Vigil::default();
        let deployment = Object::from_value(deployment.clone()).unwrap();
        vigil.see(&deployment, false, Hand::Other, Timestamp::now()).unwrap();
        let list: Value =
            client.request(Request::get(PODS).body(Vec::new()).unwrap()).await.unwrap();
        assert_eq!(list["items"], json!([]), "nobody works yet");
        let version = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        let vigil = Arc::new(Mutex::new(vigil));
        let watcher = Self { vigil, findings: Arc::default(), seen: Arc::default() };
        let vigil = Arc::clone(&watcher.vigil);
        let (findings, seen) = (Arc::clone(&watcher.findings), Arc::clone(&watcher.seen));
        tokio::spawn(async move {
            let ended = follow(&client, version, &vigil, &findings, &seen).await;
            findings.lock().unwrap().push(format!("the watch ended: {ended:?}"));
        });
        watcher
    }

    /// The loop has said that everything is as it should be: from here on every pod counts.
    pub(crate) fn rest(&self) {
        self.vigil.lock().unwrap().rest(Timestamp::now());
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
    version: String,
    vigil: &Mutex<Vigil>,
    findings: &Mutex<Vec<String>>,
    seen: &AtomicUsize,
) -> Result<(), kube::Error> {
    let path = format!("{PODS}?watch=true&timeoutSeconds=3600&resourceVersion={version}");
    let request = Request::get(path).body(Vec::new()).unwrap();
    let mut events = std::pin::pin!(client.request_events::<Value>(request).await?);
    while let Some(event) = events.try_next().await? {
        let (raw, is_gone) = match event {
            WatchEvent::Added(raw) | WatchEvent::Modified(raw) => (raw, false),
            WatchEvent::Deleted(raw) => (raw, true),
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
        };
        let pod = Object::from_value(raw).unwrap();
        seen.fetch_add(1, Ordering::Relaxed);
        // Simulated nodes do not fail here: whatever pods lose, the loop took.
        let looked = vigil.lock().unwrap().see(&pod, is_gone, Hand::Loop, Timestamp::now());
        if let Err(finding) = looked {
            findings.lock().unwrap().push(finding);
        }
    }
    Ok(())
}
