//! The tasks that watch: one for each collection, and one for each cluster whose kinds have to be
//! known.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use convoy_api::{CollectionKey, GroupKind};
use smol_str::SmolStr;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::cache::CacheEvent;
use crate::discovery::namespaced_kinds;
use crate::link::{Link, Links};
use crate::message::Message;
use crate::projection::Projections;
use crate::reflector::Reflector;
use crate::transport;
use crate::watch::Watcher;
use crate::watches::WatchChange;

/// How often the kinds of a cluster are looked up; KubeFleet's hub does it as often.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(30);
/// The same while the cluster does not answer.
const DISCOVERY_RETRY: Duration = Duration::from_secs(5);

/// The running watches.
pub(crate) struct Watchers {
    links: Arc<Links>,
    projections: Arc<Projections>,
    messages: mpsc::Sender<Message>,
    tasks: JoinSet<()>,
    collections: BTreeMap<CollectionKey, AbortHandle>,
    discoveries: BTreeMap<SmolStr, AbortHandle>,
}

impl Watchers {
    pub(crate) fn new(
        links: Arc<Links>,
        projections: Arc<Projections>,
        messages: mpsc::Sender<Message>,
    ) -> Self {
        let tasks = JoinSet::new();
        let (collections, discoveries) = (BTreeMap::new(), BTreeMap::new());
        Self { links, projections, messages, tasks, collections, discoveries }
    }

    pub(crate) fn apply(&mut self, change: WatchChange) {
        match change {
            WatchChange::Start { collection, version } => self.start(collection, &version),
            WatchChange::Stop { collection } => abort(self.collections.remove(&collection)),
            WatchChange::StartDiscovery { cluster } => {
                let Some(link) = self.links.get(&cluster) else { return };
                let task = self.tasks.spawn(discover(link, self.messages.clone()));
                abort(self.discoveries.insert(cluster, task));
            }
            WatchChange::StopDiscovery { cluster } => abort(self.discoveries.remove(&cluster)),
        }
        // Tasks that have ended are not kept.
        while self.tasks.try_join_next().is_some() {}
    }

    fn start(&mut self, collection: CollectionKey, version: &SmolStr) {
        let Some(link) = self.links.get(&collection.cluster) else { return };
        link.discovery.prefer(&collection.kind, version);
        let scope = link.cluster.scopes.get(&collection.kind).cloned().unwrap_or_default();
        let reflector =
            Reflector::new(collection.clone(), Arc::clone(&self.projections)).within(scope);
        let watcher = Watcher::new(link, reflector, self.messages.clone());
        abort(self.collections.insert(collection, self.tasks.spawn(watcher.run())));
    }

    pub(crate) async fn shutdown(&mut self) {
        self.tasks.shutdown().await;
    }
}

fn abort(task: Option<AbortHandle>) {
    if let Some(task) = task {
        task.abort();
    }
}

/// Reports which namespaced kinds a cluster serves, for as long as the task runs.
async fn discover(link: Arc<Link>, messages: mpsc::Sender<Message>) {
    let mut known: BTreeMap<String, BTreeSet<GroupKind>> = BTreeMap::new();
    loop {
        let found = namespaced_kinds(&link.cluster, &known).await;
        let pause = if found.is_ok() { DISCOVERY_INTERVAL } else { DISCOVERY_RETRY };
        let kinds = match found {
            Ok(found) => {
                known = found;
                Ok(known.values().flatten().cloned().collect())
            }
            Err(error) => Err(transport::chain(&error)),
        };
        let event = CacheEvent::Served { cluster: link.name.clone(), kinds };
        if messages.send(link.message(event)).await.is_err() {
            return;
        }
        tokio::time::sleep(pause).await;
    }
}
