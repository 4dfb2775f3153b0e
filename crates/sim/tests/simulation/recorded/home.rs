//! An embedded home in this process: a server in memory, the machines of a trial, and its control
//! loops.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use convoy_api::schema::crds;
use convoy_api::{GroupKind, Object};
use convoy_apiserver::encoding::{read_entry, set_revision};
use convoy_apiserver::home::{self, Settings as HomeSettings};
use convoy_apiserver::object_meta::ObjectMeta;
use convoy_apiserver::transport::Transport;
use convoy_controllers::Settings;
use convoy_controllers::clusters::{Cluster, Clusters, Members};
use convoy_controllers::reconciler::DecisionObserver;
use convoy_controllers::request::Request;
use convoy_plan::{DIALECTS, Dialect};
use convoy_sim::fleet::{self, Fleet};
use convoy_sim::simulation::Trial;
use convoy_sim::simulation::cluster::{Author, WriteRecord};
use convoy_store::{Revision, Watch};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use serde_json::{Value, json};
use smol_str::SmolStr;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::transport::{Noted, WrittenVersions};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MEMBERS: &str = "/apis/convoy.dev/v1/logicalclusters";
const EVENT: GroupKind = GroupKind::new("", "Event");
/// How long a definition may take until its kind is served, and a cluster until it is there.
const SET_UP: Duration = Duration::from_secs(10);

pub(super) struct Home {
    server: Arc<convoy_apiserver::server::Server>,
    fleets: Vec<Fleet>,
    loops: Vec<JoinHandle<()>>,
    written: WrittenVersions,
    watch: Watch<ObjectMeta>,
    records: Vec<WriteRecord>,
    /// Version and kind by the collections of what the definitions define.
    defined: BTreeMap<String, (String, String)>,
    ending: watch::Sender<()>,
    running: JoinHandle<()>,
    _directory: tempfile::TempDir,
}

impl Home {
    /// With the machines of a trial, and the definitions of every dialect.
    pub(super) async fn start(trial: &impl Trial) -> Self {
        let directory = tempfile::tempdir().expect("the machine has room");
        let settings = HomeSettings::in_memory(directory.path().join("kubeconfig"));
        let home = home::Home::start(settings).await.expect("it starts");
        let server = Arc::clone(&home.server);
        let (ending, mut ended) = watch::channel(());
        let running = tokio::spawn(async move {
            let ended = async move { _ = ended.changed().await };
            home.run(ended).await.expect("it ends as asked");
        });
        let watch = server.store.watch_everything(Revision(0));
        let mut started = Self {
            server,
            fleets: Vec::new(),
            loops: Vec::new(),
            written: WrittenVersions::default(),
            watch,
            records: Vec::new(),
            defined: BTreeMap::new(),
            ending,
            running,
            _directory: directory,
        };
        let loops = 0..trial.loops().len();
        let members: BTreeSet<SmolStr> = loops.flat_map(|index| trial.members(index)).collect();
        for cluster in std::iter::once(SmolStr::default()).chain(members) {
            started.set_up(&cluster).await;
        }
        let home = (SmolStr::default(), trial.scenario());
        for (cluster, scenario) in std::iter::once(home).chain(trial.member_scenarios()) {
            let settings = fleet::Settings {
                runs_scheduler: true,
                runs_node_lifecycle: true,
                ..fleet::Settings::new(scenario)
            };
            let mut fleet = Fleet::start(started.client(&cluster), settings);
            assert!(fleet.ready().await, "its nodes come up");
            started.fleets.push(fleet);
        }
        started
    }

    fn client(&self, cluster: &str) -> Client {
        Client::new(Transport::trusted(&self.server, cluster), "default")
    }

    /// Makes what is there before anybody does anything.
    async fn set_up(&mut self, cluster: &str) {
        if !cluster.is_empty() {
            self.make_member(cluster).await;
        }
        let transport = Transport::trusted(&self.server, cluster);
        for name in ["default", "kube-node-lease"] {
            let body = json!({"metadata": {"name": name}});
            transport.send(http::Method::POST, "/api/v1/namespaces", Some(&body)).await;
        }
        let names = DIALECTS.iter().map(|dialect| dialect.name());
        for definition in names.filter_map(crds).flatten() {
            transport.send(http::Method::POST, DEFINITIONS, Some(&json!(definition))).await;
            let name = definition.metadata.name.unwrap_or_default();
            has(&transport, &format!("{DEFINITIONS}/{name}"), "Established").await;
            let spec = definition.spec;
            for version in spec.versions {
                let version = format!("{}/{}", spec.group, version.name);
                let collection = format!("/apis/{version}/{}", spec.names.plural);
                self.defined.insert(collection, (version, spec.names.kind.clone()));
            }
        }
    }

    async fn make_member(&self, name: &str) {
        let home = Transport::trusted(&self.server, "");
        let body = json!({"apiVersion": "convoy.dev/v1", "kind": "LogicalCluster",
            "metadata": {"name": name}});
        home.send(http::Method::POST, MEMBERS, Some(&body)).await;
        has(&home, &format!("{MEMBERS}/{name}"), "Ready").await;
    }

    /// Runs a control loop.
    pub(super) fn run(
        &mut self,
        dialects: Vec<&'static dyn Dialect>,
        members: &[SmolStr],
        observer: DecisionObserver,
    ) {
        let cluster = |name: &str| {
            let inner = Transport::trusted(&self.server, name);
            let noted = Noted { inner, written: self.written.clone() };
            Cluster::new(Client::new(noted, "default"))
        };
        let members: Members =
            members.iter().map(|name| (name.clone(), Arc::new(cluster(name)))).collect();
        let clusters = Clusters::fixed(cluster(""), members);
        let settings = Settings { observer: Some(observer), ..Settings::new(dialects) };
        let mut ended = self.ending.subscribe();
        self.loops.push(tokio::spawn(async move {
            convoy_controllers::run(clusters, settings, async move { _ = ended.changed().await })
                .await;
        }));
    }

    /// Sends what users do. What they act on may be gone, or another than they believe.
    pub(super) async fn send_all(&self, requests: Vec<Request>) {
        for request in requests {
            self.sending(request).await;
        }
    }

    /// Sends what others do in response, each after its delay.
    pub(super) fn react(&self, reactions: Vec<(SignedDuration, Request)>) {
        for (delay, request) in reactions {
            let sending = self.sending(request);
            tokio::spawn(async move {
                tokio::time::sleep(delay.unsigned_abs()).await;
                sending.await;
            });
        }
    }

    /// Sends a request of a trial: to the cluster in its path, with what a server in virtual time
    /// does not ask for.
    fn sending(&self, request: Request) -> impl Future<Output = ()> + Send + use<> {
        let Request { method, path, content_type, mut body } = request;
        let (cluster, path) = match path.strip_prefix("/clusters/") {
            Some(rest) => rest.split_once('/').map(|(name, path)| (name, format!("/{path}"))),
            None => Some(("", path.clone())),
        }
        .expect("a path in a cluster");
        let mut parts: Vec<&str> = path.split('/').collect();
        let namespaces = parts.iter().position(|part| *part == "namespaces");
        let namespace = namespaces.filter(|at| at + 2 < parts.len()).map(|at| {
            let name = parts[at + 1].to_owned();
            parts.drain(at..at + 2);
            json!({"metadata": {"name": name}})
        });
        let defined = self.defined.get(parts.join("/").split('?').next().unwrap_or_default());
        if let (true, Some((version, kind))) = (method == http::Method::POST, defined) {
            (body["apiVersion"], body["kind"]) = (json!(version), json!(kind));
        }
        // All definitions are there, and whole.
        let is_for_light = path.starts_with(DEFINITIONS);
        let namespace = namespace.filter(|_| method == http::Method::POST);
        let transport = Transport::trusted(&self.server, cluster);
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let sent = http::Request::builder()
            .method(method)
            .uri(&path)
            .header(http::header::CONTENT_TYPE, content_type)
            .body(bytes)
            .expect("a path that is sound");
        async move {
            if is_for_light {
                return;
            }
            if namespace.is_some() {
                transport.send(http::Method::POST, "/api/v1/namespaces", namespace.as_ref()).await;
            }
            let client = Client::new(transport, "default");
            match client.request::<Value>(sent).await {
                Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => {}
                sent => drop(sent.unwrap_or_else(|error| panic!("{path}: {error}"))),
            }
        }
    }

    /// The new records. All are kept.
    pub(super) fn read(&mut self) -> Vec<WriteRecord> {
        let from = self.records.len();
        while let Ok(Some(events)) = self.watch.read() {
            if events.is_empty() {
                break;
            }
            for event in events {
                let mut object = read_entry(&event.entry);
                set_revision(&mut object, event.revision.0);
                let Ok(object) = Object::from_value(object) else { continue };
                let object = object.in_cluster(&event.entry.key.shelf.cluster);
                let (revision, at) = (event.revision.0, Timestamp::now());
                let (by, change) = (Author::Machines, event.change);
                self.records.push(WriteRecord { revision, at, by, change, object });
            }
        }
        self.records[from..].to_vec()
    }

    /// Ends everything; returns all records, with their authors.
    pub(super) async fn end(mut self) -> Vec<WriteRecord> {
        _ = self.ending.send(());
        for running in std::mem::take(&mut self.loops) {
            running.await.expect("it ends");
        }
        for fleet in std::mem::take(&mut self.fleets) {
            fleet.end().await;
        }
        self.read();
        self.running.await.expect("it ends");
        let mut records = self.records;
        for record in &mut records {
            // Events tell about decisions, and are not of their writes.
            if self.written.contains(record.revision) && *record.object.kind() != EVENT {
                record.by = Author::Controller;
            }
        }
        records
    }
}

/// Waits until a status has a word.
async fn has(transport: &Transport, path: &str, word: &str) {
    let has = async {
        loop {
            let (_, found) = transport.send(http::Method::GET, path, None).await;
            if found["status"].to_string().contains(word) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SET_UP, has).await.expect("a server is ready in time");
}
