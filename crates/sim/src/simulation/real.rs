//! Convoy's own API server in virtual time: in memory, with a clock that the simulation sets and
//! randomness that its seed gives.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use bytes::Bytes;
use convoy_api::{GroupKind, Object};
use convoy_apiserver::access::Peer;
use convoy_apiserver::chores::Chores;
use convoy_apiserver::encoding::{read_entry, set_revision};
use convoy_apiserver::handler::handle;
use convoy_apiserver::object_meta::{ObjectMeta, Store};
use convoy_apiserver::server::{Limits, Server as ApiServer};
use convoy_apiserver::surroundings::Surroundings;
use convoy_controllers::discovery;
use convoy_controllers::response::Response;
use convoy_store::{MemoryBackend, Revision, Settings, Watch};
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use serde_json::Value;

use super::server::{Server, ServerResponse, Written, path_in};
use crate::fleet::send::HttpParts;
use crate::seed::Seed;

pub(super) struct Real {
    server: Arc<ApiServer>,
    clock: Arc<Clock>,
    runtime: tokio::runtime::Runtime,
    chores: Chores,
    watch: Watch<ObjectMeta>,
}

/// Time as it is set, and bytes from a seed.
#[derive(Debug)]
struct Clock {
    nanos: AtomicI64,
    seed: Seed,
    drawn: AtomicU64,
}

impl Clock {
    fn set(&self, now: Timestamp) {
        let nanos = i64::try_from(now.as_nanosecond()).unwrap_or(i64::MAX);
        self.nanos.store(nanos, Ordering::Relaxed);
    }
}

impl Surroundings for Clock {
    fn now(&self) -> Timestamp {
        let nanos = i128::from(self.nanos.load(Ordering::Relaxed));
        Timestamp::from_nanosecond(nanos).unwrap_or(Timestamp::MAX)
    }

    fn random(&self) -> [u8; 16] {
        let index = self.drawn.fetch_add(1, Ordering::Relaxed);
        let seed = self.seed.child("bytes", &index.to_string());
        let [high, low] = [seed.nth(0).number(), seed.nth(1).number()];
        (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
    }
}

impl Real {
    pub(super) fn new(seed: Seed) -> Self {
        let settings = Settings { inline: true, ..Settings::default() };
        let store = Store::open(MemoryBackend, settings).expect("memory opens");
        let (nanos, drawn) = (AtomicI64::new(0), AtomicU64::new(0));
        let clock = Arc::new(Clock { nanos, seed: seed.child("server", ""), drawn });
        let surroundings: Arc<dyn Surroundings> = clock.clone();
        let server = Arc::new(ApiServer::new(store, surroundings, Limits::default()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("the machine has resources");
        let chores = Chores::new(&server);
        let watch = server.store.watch_everything(Revision(0));
        Self { server, clock, runtime, chores, watch }
    }
}

impl Real {
    fn get(&mut self, path: &str) -> Value {
        let (method, content_type) = (http::Method::GET, "application/json");
        let parts = HttpParts { method, uri: path.to_owned(), content_type, body: &Value::Null };
        Response::from(self.send(&parts, self.clock.now())).body
    }
}

impl Server for Real {
    fn send(&mut self, parts: &HttpParts<'_>, now: Timestamp) -> ServerResponse {
        self.clock.set(now);
        let HttpParts { method, uri, content_type, body } = parts;
        let bytes = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let sent = http::Request::builder()
            .method(method)
            .uri(uri)
            .header(http::header::CONTENT_TYPE, *content_type)
            .body(Full::new(bytes));
        let Ok(sent) = sent else { return ServerResponse { code: 400, body: Value::Null.into() } };
        let peer = Peer { is_local: true, ..Peer::default() };
        self.runtime.block_on(async {
            let (head, body) = handle(&self.server, sent, &peer).await.into_parts();
            let bytes = body.collect().await.map(http_body_util::Collected::to_bytes);
            let body = bytes.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
            let (code, body) = (head.status.as_u16(), body.unwrap_or(Value::Null).into());
            ServerResponse { code, body }
        })
    }

    fn namespaced_kinds(&mut self, cluster: &str) -> BTreeSet<GroupKind> {
        let core = self.get(&path_in(cluster, "/api/v1"));
        let mut kinds = discovery::watchable(&core, "");
        let groups = self.get(&path_in(cluster, "/apis"));
        for group in groups["groups"].as_array().into_iter().flatten() {
            let name = group["name"].as_str().unwrap_or_default();
            for version in discovery::versions(group) {
                let list = self.get(&path_in(cluster, &format!("/apis/{name}/{version}")));
                kinds.extend(discovery::watchable(&list, name));
            }
        }
        kinds
    }

    fn collect_garbage(&mut self, now: Timestamp) {
        self.clock.set(now);
        self.runtime.block_on(self.chores.settle());
    }

    fn written(&mut self) -> Vec<Written> {
        let mut written = Vec::new();
        while let Ok(Some(events)) = self.watch.read() {
            if events.is_empty() {
                break;
            }
            for event in events {
                let mut object = read_entry(&event.entry);
                set_revision(&mut object, event.revision.0);
                if let Ok(object) = Object::from_value(object) {
                    let object = object.in_cluster(&event.entry.key.shelf.cluster);
                    let (revision, change) = (event.revision.0, event.change);
                    written.push(Written { revision, change, object });
                }
            }
        }
        written
    }
}

impl fmt::Debug for Real {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Real").finish_non_exhaustive()
    }
}
