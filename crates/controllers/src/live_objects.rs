//! The objects of a cluster that decisions about its rollouts look at, each kind listed once. For
//! commands, which decide once, watch nothing and may write what a person asks for.

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_plan::{Action, Dialect, Need, World};
use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use kube::Client;
use serde_json::{Value, json};
use smol_str::SmolStr;

use crate::api_resources::ApiResources;
use crate::clusters::Cluster;
use crate::discovery::namespaced_kinds;
use crate::fence::Fence;
use crate::list_page::ListPage;
use crate::request::{self, OwnVersions, Resource};
use crate::response::Response;
use crate::transport::{self, TransportError, Writer};

/// How many objects a page of a list has.
const PAGE: usize = 500;
/// How many lists are read at the same time.
const LISTS_AT_ONCE: usize = 8;
/// The field manager of what people ask for.
const FIELD_MANAGER: &str = "convoy-cli";

/// Why the objects could not be read.
#[derive(Debug, thiserror::Error)]
#[error("could not read the cluster")]
pub struct ReadError(#[source] Box<dyn std::error::Error + Send + Sync>);

impl From<TransportError> for ReadError {
    fn from(error: TransportError) -> Self {
        Self(Box::new(error))
    }
}

/// The objects of a cluster, as far as they matter to rollouts.
pub struct LiveObjects {
    pub world: World,
    /// The kinds whose objects could not be listed, and why.
    pub unread: BTreeMap<GroupKind, String>,
    client: Client,
    resources: ApiResources,
    /// The kinds that are in the world, with the namespace if it is not all.
    listed: BTreeMap<GroupKind, Option<String>>,
}

impl std::fmt::Debug for LiveObjects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveObjects").field("unread", &self.unread).finish_non_exhaustive()
    }
}

/// A kind to list, in all namespaces or in one.
#[derive(Clone, Debug)]
struct Wanted {
    version: SmolStr,
    namespace: Option<String>,
}

/// Reads the rollouts of `dialects` and, for dialects that have any, what decisions about them look
/// at. With a namespace, the rollouts of dialects that stay in theirs are those of that one.
pub fn read<'a>(
    client: Client,
    dialects: &'a [&'static dyn Dialect],
    namespace: Option<&'a str>,
) -> BoxFuture<'a, Result<LiveObjects, ReadError>> {
    Box::pin(async move {
        let mut live = rollouts(client, dialects, namespace).await?;
        let has_rollouts = |dialect: &&&'static dyn Dialect| {
            let mut kinds = dialect.rollout_kinds().iter();
            kinds.any(|named| live.world.of(&named.kind).next().is_some())
        };
        let active: Vec<&'static dyn Dialect> =
            dialects.iter().filter(has_rollouts).copied().collect();
        live.read_kinds(watched_kinds(&active, namespace)).await?;
        for dialect in active {
            let needed = live.needed_kinds(dialect).await?;
            live.read_kinds(needed).await?;
        }
        Ok(live)
    })
}

/// Reads the objects of some kinds, those with a namespace in all or in one.
pub fn list<'a>(
    client: Client,
    kinds: &'a BTreeSet<GroupKind>,
    namespace: Option<&'a str>,
) -> BoxFuture<'a, Result<LiveObjects, ReadError>> {
    Box::pin(async move {
        let wanted =
            || Wanted { version: SmolStr::default(), namespace: namespace.map(str::to_owned) };
        let wanted = kinds.iter().map(|kind| (kind.clone(), wanted())).collect();
        let mut live = LiveObjects::new(client).await?;
        live.read_kinds(wanted).await?;
        Ok(live)
    })
}

/// Reads the rollouts of `dialects`, and nothing that decisions about them look at.
pub fn rollouts<'a>(
    client: Client,
    dialects: &'a [&'static dyn Dialect],
    namespace: Option<&'a str>,
) -> BoxFuture<'a, Result<LiveObjects, ReadError>> {
    Box::pin(async move {
        let mut live = LiveObjects::new(client).await?;
        live.read_kinds(rollout_kinds(dialects, namespace)).await?;
        Ok(live)
    })
}

type WantedKinds = BTreeMap<GroupKind, Wanted>;

fn rollout_kinds(dialects: &[&'static dyn Dialect], namespace: Option<&str>) -> WantedKinds {
    let mut wanted = WantedKinds::new();
    for dialect in dialects {
        for named in dialect.rollout_kinds() {
            want(&mut wanted, *dialect, &named.kind, namespace);
        }
    }
    wanted
}

fn watched_kinds(dialects: &[&'static dyn Dialect], namespace: Option<&str>) -> WantedKinds {
    let mut wanted = WantedKinds::new();
    for dialect in dialects {
        for watch in dialect.watches() {
            want(&mut wanted, *dialect, &watch.kind, namespace);
        }
    }
    wanted
}

/// Notes that a dialect reads a kind. One that any dialect reads in all namespaces is read so.
fn want(
    wanted: &mut WantedKinds,
    dialect: &dyn Dialect,
    kind: &GroupKind,
    namespace: Option<&str>,
) {
    let namespace = namespace.filter(|_| dialect.stays_in_namespace()).map(str::to_owned);
    if let Some(known) = wanted.get_mut(kind) {
        if namespace.is_none() {
            known.namespace = None;
        }
        return;
    }
    let version = SmolStr::new_static(dialect.version(kind));
    wanted.insert(kind.clone(), Wanted { version, namespace });
}

impl LiveObjects {
    /// Nothing yet, and what the server has.
    async fn new(client: Client) -> Result<Self, ReadError> {
        let resources = ApiResources::new(&client).await?;
        let (world, unread, listed) = (World::new(), BTreeMap::new(), BTreeMap::new());
        Ok(Self { world, unread, client, resources, listed })
    }

    /// The kinds that the rollouts of a dialect name, which no table can.
    async fn needed_kinds(&self, dialect: &'static dyn Dialect) -> Result<WantedKinds, ReadError> {
        let mut wanted = WantedKinds::new();
        let mut takes_all = false;
        for rollout in dialect.rollouts(&self.world) {
            for need in dialect.needs(&self.world, rollout) {
                match need {
                    Need::Kind { collection, version } if collection.cluster.is_empty() => {
                        wanted.insert(collection.kind, Wanted { version, namespace: None });
                    }
                    Need::NamespacedKinds { cluster } => takes_all |= cluster.is_empty(),
                    Need::Kind { .. } | Need::Member { .. } => {}
                }
            }
        }
        if takes_all {
            let cluster = Cluster::new(self.client.clone());
            let found = namespaced_kinds(&cluster, &BTreeMap::new()).await;
            let found = found.map_err(|error| ReadError(Box::new(error)))?;
            let kinds: BTreeSet<GroupKind> = found.into_values().flatten().collect();
            for kind in kinds.into_iter().filter(|kind| dialect.takes_along(kind)) {
                let version = SmolStr::default();
                wanted.entry(kind).or_insert(Wanted { version, namespace: None });
            }
        }
        Ok(wanted)
    }

    /// Lists the kinds that are not in the world yet.
    async fn read_kinds(&mut self, mut wanted: WantedKinds) -> Result<(), ReadError> {
        wanted.retain(|kind, wanted| match self.listed.get(kind) {
            Some(None) => false,
            Some(namespace) => *namespace != wanted.namespace,
            None => true,
        });
        self.resources.extend(&self.client, wanted.keys()).await?;
        let lists = wanted.into_iter().map(|(kind, wanted)| {
            let resource = self.resources.find(&kind, &wanted.version);
            let client = &self.client;
            async move {
                let namespace = wanted.namespace.clone().unwrap_or_default();
                let objects = match resource {
                    Some(resource) => objects(client, &resource, &kind, &namespace).await,
                    None => Ok(Ok(Vec::new())),
                };
                (kind, wanted.namespace, objects)
            }
        });
        let lists: Vec<_> = stream::iter(lists).buffer_unordered(LISTS_AT_ONCE).collect().await;
        for (kind, namespace, objects) in lists {
            match objects? {
                Ok(objects) => {
                    self.world.observe(&kind.in_cluster(""));
                    for object in objects {
                        self.world.insert(object);
                    }
                }
                Err(refusal) => _ = self.unread.insert(kind.clone(), refusal),
            }
            self.listed.insert(kind, namespace);
        }
        Ok(())
    }

    /// Reads one object again, and puts it into the world; false if it is gone.
    pub fn refresh<'a>(&'a mut self, key: &'a ObjectKey) -> BoxFuture<'a, Result<bool, ReadError>> {
        Box::pin(async move {
            let version = self.world.get(key).map_or("", Object::version).to_owned();
            let Some(resource) = self.resources.find(&key.kind, &version) else { return Ok(false) };
            let response = transport::read(&self.client, resource.object(key)).await?;
            match Object::from_value(response.body) {
                Ok(object) if response.code == 200 => {
                    self.world.insert(object);
                    Ok(true)
                }
                _ => {
                    self.world.remove(key);
                    Ok(false)
                }
            }
        })
    }

    /// Sends a write; with `dry_run` the server checks it and stores nothing. None if the server
    /// does not have the kind.
    pub fn write<'a>(
        &'a self,
        action: &'a Action,
        dry_run: bool,
    ) -> BoxFuture<'a, Result<Option<Response>, ReadError>> {
        Box::pin(async move {
            let object = self.world.get(&action.target);
            let version = object.map_or("", Object::version);
            let Some(resource) = self.resources.find(&action.target.kind, version) else {
                return Ok(None);
            };
            let own = OwnVersions::default();
            let request = request::request(action, &resource, &own, FIELD_MANAGER);
            let request = if dry_run { request.dry_run() } else { request };
            let writer = Writer::new(self.client.clone(), Fence::none());
            Ok(Some(writer.write(request).await?))
        })
    }

    /// The resource of a kind in a path: `deployments`. None if the server does not have the kind.
    pub fn resource(&self, kind: &GroupKind) -> Option<Resource> {
        self.resources.find(kind, "")
    }

    /// As whom the server knows the client; none if it does not tell.
    pub fn user(&self) -> BoxFuture<'_, Option<String>> {
        const PATH: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        Box::pin(async move {
            let question =
                json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
            let response = transport::ask(&self.client, PATH, question).await.ok()?;
            let name = response.body.pointer("/status/userInfo/username")?.as_str()?;
            Some(name.to_owned())
        })
    }
}

/// All objects of a kind, or why the server does not list them.
async fn objects(
    client: &Client,
    resource: &Resource,
    kind: &GroupKind,
    namespace: &str,
) -> Result<Result<Vec<Object>, String>, TransportError> {
    let path = resource.collection(namespace);
    let api_version = resource.api_version();
    let (mut found, mut query) = (Vec::new(), format!("?limit={PAGE}"));
    loop {
        let response =
            transport::fetch_within(client, format!("{path}{query}"), transport::TIMEOUT);
        let response = response.await?;
        match response.code {
            200 => {}
            404 => return Ok(Ok(Vec::new())),
            // The pages took too long: all at once.
            410 if query.contains("continue") => {
                (found, query) = (Vec::new(), String::new());
                continue;
            }
            _ => return Ok(Err(response.read().message())),
        }
        let mut body = serde_json::Deserializer::from_slice(&response.text);
        let keep = |item: Value| complete(item, &api_version, &kind.kind);
        let Ok(page) = ListPage::read(&mut body, keep) else {
            return Ok(Err("the server's list cannot be read".to_owned()));
        };
        found.extend(page.objects);
        if page.next.is_empty() {
            return Ok(Ok(found));
        }
        query = format!("?limit={PAGE}&continue={}", page.next);
    }
}

/// An item of a list with its kind, which servers leave out.
fn complete(mut item: Value, api_version: &str, kind: &str) -> Option<Object> {
    let fields = item.as_object_mut()?;
    fields.entry("apiVersion").or_insert_with(|| api_version.into());
    fields.entry("kind").or_insert_with(|| kind.into());
    Object::from_value(item).ok()
}
