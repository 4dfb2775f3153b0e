//! A fleet on an API server in real time: watches in, writes out, one clock. What to write is
//! decided by the parts.

mod connect;
pub(crate) mod send;
mod watch;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

pub use connect::{ConnectError, connect};
use jiff::Timestamp;
pub use kube::Client;
use serde_json::Value;
use smol_str::SmolStr;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::known::Known;
use crate::kubelets::Kubelets;
use crate::lifecycle::Lifecycle;
use crate::part::{Answer, Key, Kind, Part, Request, tell_answer};
use crate::scenario::Scenario;
use crate::scheduler::Scheduler;

/// What a fleet does beside playing the kubelets.
#[derive(Clone, Debug)]
pub struct Settings {
    pub scenario: Arc<Scenario>,
    /// Bind pods that name no node, where no other scheduler does.
    pub schedules: bool,
    /// Taint nodes that are not heard of and evict their pods, where nobody else does.
    pub tends_nodes: bool,
    /// Delete the nodes when the fleet ends.
    pub removes_nodes: bool,
    /// Writes on their way at a time.
    pub concurrency: usize,
}

impl Settings {
    pub fn new(scenario: Scenario) -> Self {
        Self {
            scenario: Arc::new(scenario),
            schedules: false,
            tends_nodes: false,
            removes_nodes: false,
            concurrency: 64,
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
            let runner = Runner::new(client, settings, ready_to);
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

/// Something the watches saw.
#[derive(Debug)]
struct News {
    key: Key,
    object: Option<Known>,
}

struct Runner {
    client: Client,
    settings: Settings,
    parts: Vec<Box<dyn Part>>,
    /// The writes to come, each with the part that asked for it.
    urgent: VecDeque<(usize, Request)>,
    background: VecDeque<(usize, Request)>,
    sent: u64,
    under_way: JoinSet<(usize, Request, Answer)>,
    news: mpsc::Receiver<News>,
    watches: JoinSet<()>,
    ready: Option<oneshot::Sender<()>>,
    /// Nodes we made, for taking them down.
    made: Vec<SmolStr>,
}

/// News taken in before anything is decided on them.
const NEWS_BATCH: usize = 1_000;

/// Of so many writes one may be a background one while urgent ones wait, so that leases are
/// renewed under load.
const BACKGROUND_TURN: u64 = 4;

impl Runner {
    fn new(client: Client, settings: Settings, ready: oneshot::Sender<()>) -> Self {
        let (to, news) = mpsc::channel(NEWS_BATCH * 4);
        let mut watches = JoinSet::new();
        let mut parts: Vec<Box<dyn Part>> =
            vec![Box::new(Kubelets::new(Arc::clone(&settings.scenario)))];
        if settings.schedules {
            parts.push(Box::<Scheduler>::default());
        }
        let mut kinds = vec![Kind::Node, Kind::Pod];
        if settings.tends_nodes {
            parts.push(Box::<Lifecycle>::default());
            kinds.push(Kind::Lease);
        }
        for kind in kinds {
            watches.spawn(watch::follow(client.clone(), kind, to.clone()));
        }
        Self {
            client,
            settings,
            parts,
            urgent: VecDeque::new(),
            background: VecDeque::new(),
            sent: 0,
            under_way: JoinSet::new(),
            news,
            watches,
            ready: Some(ready),
            made: Vec::new(),
        }
    }

    async fn run(mut self, mut ended: oneshot::Receiver<()>) {
        loop {
            let now = clock();
            for (part, asked) in self.parts.iter_mut().enumerate() {
                for request in asked.due(now) {
                    let queue =
                        if request.is_background { &mut self.background } else { &mut self.urgent };
                    queue.push_back((part, request));
                }
            }
            self.send_some();
            self.tell_ready();
            let pause = self.pause();
            tokio::select! {
                _ = &mut ended => break,
                Some(news) = self.news.recv() => self.take_in(news),
                Some(answered) = self.under_way.join_next() => self.answered(answered),
                () = tokio::time::sleep(pause) => {}
            }
        }
        self.finish().await;
    }

    fn pause(&self) -> Duration {
        const IDLE: Duration = Duration::from_mins(1);
        let next = self.parts.iter().filter_map(|part| part.next()).min();
        next.map_or(IDLE, |next| {
            Duration::try_from(next.duration_since(clock())).unwrap_or_default()
        })
    }

    fn send_some(&mut self) {
        while self.under_way.len() < self.settings.concurrency {
            let is_turn = self.sent.is_multiple_of(BACKGROUND_TURN);
            let next = match (is_turn, self.background.pop_front()) {
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
            let Some((part, request)) = next else { return };
            self.sent += 1;
            let client = self.client.clone();
            self.under_way.spawn(async move {
                let answer = send::send(&client, &request).await;
                (part, request, answer)
            });
        }
    }

    fn take_in(&mut self, first: News) {
        let now = clock();
        let mut next = Some(first);
        for _ in 0..NEWS_BATCH {
            let Some(News { key, object }) = next else { break };
            self.tell(&key, object.as_ref(), now);
            next = self.news.try_recv().ok();
        }
        if let Some(News { key, object }) = next {
            self.tell(&key, object.as_ref(), now);
        }
    }

    fn tell(&mut self, key: &Key, object: Option<&Known>, now: Timestamp) {
        for part in &mut self.parts {
            part.changed(key, object, now);
        }
    }

    fn answered(&mut self, first: Result<(usize, Request, Answer), tokio::task::JoinError>) {
        let mut next = Some(first);
        while let Some(answered) = next {
            // A request that was cut off by the end of the runtime has no answer.
            if let Ok((part, request, answer)) = answered {
                let now = clock();
                tell_answer(&mut self.parts, &request, &answer, now);
                if request.key.kind == Kind::Node
                    && matches!(request.write, crate::part::Write::Create(_))
                    && matches!(answer, Answer::Done(_) | Answer::Exists)
                {
                    self.made.push(request.key.name.clone());
                }
                self.parts[part].answered(&request, &answer, now);
            }
            next = self.under_way.try_join_next();
        }
    }

    fn tell_ready(&mut self) {
        if self.parts.iter().all(|part| part.is_settled())
            && let Some(ready) = self.ready.take()
        {
            let _ = ready.send(()); // nobody waits: fine
        }
    }

    /// Lets writes finish that are on their way, then takes the nodes down if asked to.
    async fn finish(mut self) {
        self.watches.abort_all();
        while self.under_way.join_next().await.is_some() {}
        if !self.settings.removes_nodes {
            return;
        }
        for name in std::mem::take(&mut self.made) {
            if self.under_way.len() >= self.settings.concurrency {
                self.under_way.join_next().await;
            }
            let client = self.client.clone();
            let options = Value::Object(serde_json::Map::new());
            let request = Request::new(Key::node(&name), crate::part::Write::Delete(options));
            self.under_way.spawn(async move {
                let answer = send::send(&client, &request).await;
                (0, request, answer)
            });
        }
        while self.under_way.join_next().await.is_some() {}
    }
}

#[expect(clippy::disallowed_methods, reason = "this is where real time comes in")]
fn clock() -> Timestamp {
    Timestamp::now()
}
