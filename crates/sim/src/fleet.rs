//! Runs a simulated fleet against an API server in real time: watches in, writes out, one clock.
//! The components decide what to write.

mod connect;
pub mod link;
pub(crate) mod send;
mod watch;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

pub use connect::{ConnectError, connect};
use convoy_api::clock::Clock;
use jiff::Timestamp;
pub use kube::Client;
use serde_json::Value;
use smol_str::SmolStr;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::component::{Component, Key, Kind, WriteRequest, WriteResponse, apply_response};
use crate::kubelets::Kubelets;
use crate::lifecycle::Lifecycle;
use crate::reporter::Reporter;
use crate::scenario::Scenario;
use crate::scheduler::Scheduler;
use crate::shared_object::SharedObject;

/// Which components a fleet runs beside the kubelets.
#[derive(Clone, Debug)]
pub struct Settings {
    pub scenario: Arc<Scenario>,
    /// Bind pods that name no node, where no other scheduler does.
    pub runs_scheduler: bool,
    /// Taint nodes that are not heard of and evict their pods, where nobody else does.
    pub runs_node_lifecycle: bool,
    /// Delete the nodes when the fleet ends.
    pub removes_nodes: bool,
    /// Writes on their way at a time.
    pub concurrency: usize,
    /// What nodes and pods are dated by.
    pub clock: Clock,
}

impl Settings {
    pub fn new(scenario: Scenario) -> Self {
        Self {
            scenario: Arc::new(scenario),
            runs_scheduler: false,
            runs_node_lifecycle: false,
            removes_nodes: false,
            concurrency: 64,
            clock: Clock::default(),
        }
    }
}

/// A fleet that runs in a task of its own.
#[derive(Debug)]
pub struct Fleet {
    ready: Option<oneshot::Receiver<()>>,
    end: Option<oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<()>,
}

impl Fleet {
    pub fn start(client: Client, settings: Settings) -> Self {
        let (ready_to, ready) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let task = tokio::spawn(async move {
            let version = server_version(&client).await;
            let runner = Runner::new(client, settings, version, ready_to);
            runner.run(ended).await;
        });
        Self { ready: Some(ready), end: Some(end), task }
    }

    /// Waits until every node of the scenario is there; whether that came to pass.
    pub async fn ready(&mut self) -> bool {
        match self.ready.take() {
            Some(ready) => ready.await.is_ok(),
            None => true,
        }
    }

    /// Ends it; the nodes stay or go as the settings say.
    pub async fn end(mut self) {
        if let Some(end) = self.end.take() {
            let _ = end.send(()); // one that has ended already is fine
        }
        // A defect in there was reported when it happened.
        drop(self.task.await);
    }
}

/// The release of the API server; our own server's where it does not say.
async fn server_version(client: &Client) -> String {
    let said = client.apiserver_version().await;
    said.map_or_else(|_| convoy_apiserver::git_version(), |version| version.git_version)
}

/// A watch event.
#[derive(Debug)]
struct WatchedObject {
    key: Key,
    object: Option<SharedObject>,
}

struct Runner {
    client: Client,
    settings: Settings,
    components: Vec<Box<dyn Component>>,
    /// Queued writes, each with the index of its component.
    urgent: VecDeque<(usize, WriteRequest)>,
    background: VecDeque<(usize, WriteRequest)>,
    sent: u64,
    in_flight: JoinSet<(usize, WriteRequest, WriteResponse)>,
    watched: mpsc::Receiver<WatchedObject>,
    watches: JoinSet<()>,
    ready: Option<oneshot::Sender<()>>,
    /// Nodes we created, for taking them down.
    created: Vec<SmolStr>,
}

/// The most watch events that are handled before components decide.
const EVENT_BATCH: usize = 1_000;

/// One of this many writes may be a background write while urgent ones wait, so that leases are
/// renewed under load.
const BACKGROUND_SHARE: u64 = 4;

impl Runner {
    fn new(
        client: Client,
        settings: Settings,
        version: String,
        ready: oneshot::Sender<()>,
    ) -> Self {
        let (to, watched) = mpsc::channel(EVENT_BATCH * 4);
        let mut watches = JoinSet::new();
        let mut components: Vec<Box<dyn Component>> = vec![
            Box::new(Kubelets::new(Arc::clone(&settings.scenario), version)),
            Box::<Reporter>::default(),
        ];
        if settings.runs_scheduler {
            components.push(Box::<Scheduler>::default());
        }
        let mut kinds = vec![Kind::Node, Kind::Pod];
        if settings.runs_node_lifecycle {
            components.push(Box::<Lifecycle>::default());
            kinds.push(Kind::Lease);
        }
        for kind in kinds {
            watches.spawn(watch::watch_kind(client.clone(), kind, to.clone()));
        }
        Self {
            client,
            settings,
            components,
            urgent: VecDeque::new(),
            background: VecDeque::new(),
            sent: 0,
            in_flight: JoinSet::new(),
            watched,
            watches,
            ready: Some(ready),
            created: Vec::new(),
        }
    }

    async fn run(mut self, mut ended: oneshot::Receiver<()>) {
        loop {
            let now = self.now();
            for (component, asked) in self.components.iter_mut().enumerate() {
                for request in asked.due(now) {
                    let queue =
                        if request.is_background { &mut self.background } else { &mut self.urgent };
                    queue.push_back((component, request));
                }
            }
            self.send_some();
            self.announce_ready();
            let pause = self.pause();
            tokio::select! {
                _ = &mut ended => break,
                Some(event) = self.watched.recv() => self.handle_events(event),
                Some(finished) = self.in_flight.join_next() => self.handle_response(finished),
                () = tokio::time::sleep(pause) => {}
            }
        }
        self.finish().await;
    }

    #[expect(clippy::disallowed_methods, reason = "this is where real time comes in")]
    fn now(&self) -> Timestamp {
        self.settings.clock.at(Timestamp::now())
    }

    fn pause(&self) -> Duration {
        const IDLE: Duration = Duration::from_mins(1);
        let next = self.components.iter().filter_map(|component| component.next()).min();
        next.map_or(IDLE, |next| {
            Duration::try_from(next.duration_since(self.now())).unwrap_or_default()
        })
    }

    fn send_some(&mut self) {
        while self.in_flight.len() < self.settings.concurrency {
            let is_background_due = self.sent.is_multiple_of(BACKGROUND_SHARE);
            let next = match (is_background_due, self.background.pop_front()) {
                (true, Some(waiting)) => Some(waiting),
                (_, waiting) => {
                    let urgent = self.urgent.pop_front();
                    match (urgent, waiting) {
                        (Some(urgent), Some(waiting)) => {
                            self.background.push_front(waiting);
                            Some(urgent)
                        }
                        (urgent, waiting) => urgent.or(waiting),
                    }
                }
            };
            let Some((component, request)) = next else { return };
            self.sent += 1;
            let client = self.client.clone();
            self.in_flight.spawn(async move {
                let response = send::send(&client, &request).await;
                (component, request, response)
            });
        }
    }

    fn handle_events(&mut self, first: WatchedObject) {
        let now = self.now();
        let mut next = Some(first);
        for _ in 0..EVENT_BATCH {
            let Some(WatchedObject { key, object }) = next else { break };
            self.notify(&key, object.as_ref(), now);
            next = self.watched.try_recv().ok();
        }
        if let Some(WatchedObject { key, object }) = next {
            self.notify(&key, object.as_ref(), now);
        }
    }

    fn notify(&mut self, key: &Key, object: Option<&SharedObject>, now: Timestamp) {
        for component in &mut self.components {
            component.changed(key, object, now);
        }
    }

    fn handle_response(
        &mut self,
        first: Result<(usize, WriteRequest, WriteResponse), tokio::task::JoinError>,
    ) {
        let mut next = Some(first);
        while let Some(finished) = next {
            // A request that was cut off by the end of the runtime has no response.
            if let Ok((component, request, response)) = finished {
                let now = self.now();
                apply_response(&mut self.components, &request, &response, now);
                if request.key.kind == Kind::Node
                    && matches!(request.write, crate::component::WriteVerb::Create(_))
                    && matches!(response, WriteResponse::Done(_) | WriteResponse::Exists)
                {
                    self.created.push(request.key.name.clone());
                }
                self.components[component].handle_response(&request, &response, now);
            }
            next = self.in_flight.try_join_next();
        }
    }

    fn announce_ready(&mut self) {
        if self.components.iter().all(|component| component.is_settled())
            && let Some(ready) = self.ready.take()
        {
            let _ = ready.send(()); // nobody waits: fine
        }
    }

    /// Lets writes finish that are on their way, then takes the nodes down if asked to.
    async fn finish(mut self) {
        self.watches.abort_all();
        while self.in_flight.join_next().await.is_some() {}
        if !self.settings.removes_nodes {
            return;
        }
        for name in std::mem::take(&mut self.created) {
            if self.in_flight.len() >= self.settings.concurrency {
                self.in_flight.join_next().await;
            }
            let client = self.client.clone();
            let options = Value::Object(serde_json::Map::new());
            let request =
                WriteRequest::new(Key::node(&name), crate::component::WriteVerb::Delete(options));
            self.in_flight.spawn(async move {
                let response = send::send(&client, &request).await;
                (0, request, response)
            });
        }
        while self.in_flight.join_next().await.is_some() {}
    }
}
