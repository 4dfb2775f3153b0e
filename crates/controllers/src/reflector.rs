//! A reflector lists one kind and then watches it for as long as the process runs. This module
//! decides which request comes next and what a response means; the caller sends the requests.
//! A kind that the server does not serve has no objects until the server serves it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use convoy_api::{CollectionKey, GroupKind, Object};
use serde::de::Deserializer;
use serde_json::Value;

use crate::cache::CacheEvent;
use crate::list_page::ListPage;
use crate::projection::Projections;
use crate::request::Resource;
use crate::response::Response;

/// Objects per page of a list. A page of this size neither holds up other clients of the server
/// nor takes much memory before it is read.
const PAGE: usize = 100;
/// The interval at which discovery is repeated for a kind that is not served.
const ABSENT: Duration = Duration::from_secs(5);
const BACKOFF_FIRST: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// The server is asked to end each watch after this time, which spreads the reconnects.
pub(crate) const WATCH_SECS: u64 = 290;
/// How many times in a row a watch is resumed without an event before the kind is listed again.
const RESUMES: u32 = 3;

/// Lists and watches the objects of one kind in one cluster.
#[derive(Debug)]
pub struct Reflector {
    collection: CollectionKey,
    scope: Scope,
    projections: Arc<Projections>,
    phase: Phase,
    /// Consecutive failures of discovery and lists.
    failures: u32,
    /// Consecutive watches that ended without an event.
    resumes: u32,
    /// Consecutive versions that the server no longer had, without an event in between.
    expirations: u32,
    delay: Duration,
}

/// The part of a collection that is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    #[default]
    All,
    /// The objects of one namespace.
    Namespace(String),
    /// The one object of this name, of a kind of cluster scope.
    Name(String),
}

#[derive(Debug)]
enum Phase {
    /// The resource of the kind is not known.
    Discovering,
    Listing {
        resource: Resource,
        objects: Vec<Object>,
        token: String,
    },
    Watching {
        resource: Resource,
        version: String,
        has_moved: bool,
    },
}

/// The next request of a reflector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReflectorRequest {
    /// Discover the resource of the kind.
    Discover,
    List {
        path: String,
    },
    Watch {
        path: String,
        version: String,
    },
}

/// An event of a watch.
#[derive(Clone, Debug)]
pub enum StreamEvent<'s> {
    /// Added or modified.
    Applied(Cow<'s, Value>),
    Deleted(Cow<'s, Value>),
    /// All events up to this version were sent.
    Bookmark(String),
    /// The server no longer has the version that was asked for.
    Expired,
}

/// How a watch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEnd {
    /// The server closed it in the regular way.
    Closed,
    /// The server no longer has the version to resume from, or no longer serves the kind.
    Expired,
    Broken(String),
}

impl Reflector {
    pub fn new(collection: CollectionKey, projections: Arc<Projections>) -> Self {
        Self {
            collection,
            scope: Scope::All,
            projections,
            phase: Phase::Discovering,
            failures: 0,
            resumes: 0,
            expirations: 0,
            delay: Duration::ZERO,
        }
    }

    /// The same, restricted to a part of the collection.
    #[must_use]
    pub fn within(self, scope: Scope) -> Self {
        Self { scope, ..self }
    }

    pub fn kind(&self) -> &GroupKind {
        &self.collection.kind
    }

    pub fn collection(&self) -> &CollectionKey {
        &self.collection
    }

    /// The next request, and how long to wait before sending it.
    pub fn next_request(&self) -> (ReflectorRequest, Duration) {
        let request = match &self.phase {
            Phase::Discovering => ReflectorRequest::Discover,
            Phase::Listing { resource, token, .. } => ReflectorRequest::List {
                path: format!("{}limit={PAGE}{token}", self.query(resource)),
            },
            Phase::Watching { resource, version, .. } => {
                let path = format!(
                    "{}watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECS}&resourceVersion={version}",
                    self.query(resource)
                );
                ReflectorRequest::Watch { path, version: version.clone() }
            }
        };
        (request, self.delay)
    }

    /// The path of the collection and the beginning of its query. Names of objects need no
    /// escapes.
    fn query(&self, resource: &Resource) -> String {
        match &self.scope {
            Scope::All => format!("{}?", resource.collection("")),
            Scope::Namespace(namespace) => format!("{}?", resource.collection(namespace)),
            Scope::Name(name) => {
                format!("{}?fieldSelector=metadata.name%3D{name}&", resource.collection(""))
            }
        }
    }

    /// Discovery has finished; `None` if the server does not serve the kind.
    pub fn discovered(&mut self, resource: Option<Resource>) -> Option<CacheEvent> {
        self.delay = Duration::ZERO;
        let Some(resource) = resource else {
            self.delay = ABSENT;
            return Some(CacheEvent::NotServed { collection: self.collection.clone() });
        };
        self.begin_list(resource);
        None
    }

    /// Discovery or a list has failed.
    pub fn failed(&mut self) {
        self.delay = backoff(self.failures);
        self.failures = self.failures.saturating_add(1);
        self.phase = Phase::Discovering;
    }

    /// The response to a list. `Err` says why it cannot be used.
    pub fn listed(&mut self, response: Response) -> Result<Option<CacheEvent>, String> {
        let phase = std::mem::replace(&mut self.phase, Phase::Discovering);
        let Phase::Listing { resource, objects, token } = phase else { return Ok(None) };
        self.delay = Duration::ZERO;
        match response.code {
            200 => self.read_page(resource, objects, response.body),
            404 => Ok(None),
            // The continue token has expired: list from the beginning.
            410 if !token.is_empty() => {
                self.delay = self.expired();
                self.begin_list(resource);
                Ok(None)
            }
            _ => Err(format!("could not list: {}", response.message())),
        }
    }

    /// The text of a successful list; reading it directly takes less memory than a parsed body.
    /// `Err` says why it cannot be used.
    pub(crate) fn listed_text(&mut self, text: &[u8]) -> Result<Option<CacheEvent>, String> {
        let phase = std::mem::replace(&mut self.phase, Phase::Discovering);
        let Phase::Listing { resource, objects, .. } = phase else { return Ok(None) };
        self.delay = Duration::ZERO;
        self.read_page(resource, objects, &mut serde_json::Deserializer::from_slice(text))
    }

    fn read_page<'de>(
        &mut self,
        resource: Resource,
        mut objects: Vec<Object>,
        body: impl Deserializer<'de, Error = serde_json::Error>,
    ) -> Result<Option<CacheEvent>, String> {
        let page = ListPage::read(body, |item| self.item(&resource, item))
            .map_err(|error| format!("could not read a list: {error}"))?;
        objects.extend(page.objects);
        if !page.next.is_empty() {
            let token = format!("&continue={}", page.next);
            self.phase = Phase::Listing { resource, objects, token };
            return Ok(None);
        }
        let version = page.version;
        self.failures = 0;
        let event = self.list_event(version.parse().ok(), objects);
        self.phase = Phase::Watching { resource, version, has_moved: false };
        Ok(Some(event))
    }

    /// An event of the watch.
    pub fn observed(&mut self, event: StreamEvent<'_>) -> Option<CacheEvent> {
        if !self.is_watching() {
            return None;
        }
        let (raw, is_deleted) = match event {
            StreamEvent::Applied(raw) => (raw, false),
            StreamEvent::Deleted(raw) => (raw, true),
            StreamEvent::Bookmark(at) => {
                self.move_to(&at);
                return None;
            }
            StreamEvent::Expired => {
                self.expire();
                return None;
            }
        };
        if let Some(newer) = raw.pointer("/metadata/resourceVersion").and_then(Value::as_str) {
            self.move_to(newer);
        }
        let object = self.projections.read(&self.collection.cluster, raw)?;
        Some(if is_deleted { CacheEvent::Deleted(object) } else { CacheEvent::Applied(object) })
    }

    /// The watch has delivered everything up to this version.
    fn move_to(&mut self, newer: &str) {
        if let Phase::Watching { version, has_moved, .. } = &mut self.phase {
            if version != newer {
                *has_moved = true;
                self.expirations = 0;
            }
            newer.clone_into(version);
        }
    }

    /// Whether a running watch should go on.
    pub fn is_watching(&self) -> bool {
        matches!(self.phase, Phase::Watching { .. })
    }

    /// The watch has ended. `Err` says why the kind has to be listed again.
    pub fn watch_ended(&mut self, end: WatchEnd) -> Result<(), String> {
        let Phase::Watching { has_moved, .. } = &mut self.phase else { return Ok(()) };
        let moved = std::mem::take(has_moved);
        self.resumes = if moved { 0 } else { self.resumes + 1 };
        self.delay = Duration::ZERO;
        match end {
            WatchEnd::Expired => self.expire(),
            WatchEnd::Closed if self.resumes <= RESUMES => {}
            // A kind without changes whose watches are closed early is still up to date.
            WatchEnd::Closed => self.delay = BACKOFF_FIRST,
            WatchEnd::Broken(_) if self.resumes <= RESUMES => {
                self.delay = BACKOFF_FIRST.saturating_mul(1 << self.resumes);
            }
            WatchEnd::Broken(message) => {
                self.failed();
                return Err(format!("the watch failed: {message}"));
            }
        }
        Ok(())
    }

    /// The server no longer has the version of the watch: the kind is listed again.
    fn expire(&mut self) {
        let Phase::Watching { resource, .. } = &self.phase else { return };
        let resource = resource.clone();
        self.delay = self.expired();
        self.begin_list(resource);
    }

    /// Counts an expired version; how long to wait before the next list, which is not at all the
    /// first time. A server that forgets one version after the other is not asked for all objects
    /// each time.
    fn expired(&mut self) -> Duration {
        let delay = self.expirations.checked_sub(1).map_or(Duration::ZERO, backoff);
        self.expirations = self.expirations.saturating_add(1);
        delay
    }

    fn begin_list(&mut self, resource: Resource) {
        self.phase = Phase::Listing { resource, objects: Vec::new(), token: String::new() };
    }

    /// Items of a list carry neither apiVersion nor kind.
    fn item(&self, resource: &Resource, mut item: Value) -> Option<Object> {
        let fields = item.as_object_mut()?;
        fields.insert("apiVersion".to_owned(), resource.api_version().into());
        fields.insert("kind".to_owned(), self.collection.kind.kind.as_str().into());
        self.projections.read(&self.collection.cluster, Cow::Owned(item))
    }

    fn list_event(&self, version: Option<u64>, objects: Vec<Object>) -> CacheEvent {
        CacheEvent::Listed { collection: self.collection.clone(), version, objects }
    }
}

/// The delay after so many failures in a row, from 0.
fn backoff(failures: u32) -> Duration {
    BACKOFF_FIRST.saturating_mul(1 << failures.min(16)).min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests {
    use convoy_api::apps::POD;
    use convoy_plan::dialect::apps::ReplicaSets;
    use serde_json::json;

    use super::*;

    fn reflector() -> Reflector {
        let mut reflector =
            Reflector::new(POD.in_cluster(""), Arc::new(Projections::of(&[&ReplicaSets])));
        let (group, version, plural) = (String::new(), "v1".to_owned(), "pods".to_owned());
        let resource = Resource { group, version, plural, namespaced: true, has_status: true };
        assert!(reflector.discovered(Some(resource)).is_none());
        reflector
    }

    #[test]
    fn a_part_of_a_collection_is_asked_for_by_namespace_or_by_name() {
        let path = |scope: Scope, namespaced: bool| {
            let mut reflector = Reflector::new(POD.in_cluster(""), Arc::default()).within(scope);
            let (group, version, plural) = (String::new(), "v1".to_owned(), "pods".to_owned());
            let resource = Resource { group, version, plural, namespaced, has_status: true };
            assert!(reflector.discovered(Some(resource)).is_none());
            match reflector.next_request().0 {
                ReflectorRequest::List { path } => path,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(path(Scope::All, true), "/api/v1/pods?limit=100");
        let shop = Scope::Namespace("shop".to_owned());
        assert_eq!(path(shop.clone(), true), "/api/v1/namespaces/shop/pods?limit=100");
        assert_eq!(path(shop, false), "/api/v1/pods?limit=100");
        let one = "/api/v1/pods?fieldSelector=metadata.name%3Deu&limit=100";
        assert_eq!(path(Scope::Name("eu".to_owned()), false), one);
    }

    fn page(names: &[&str], version: &str, token: &str) -> Response {
        let items: Vec<Value> = names
            .iter()
            .map(|name| json!({"metadata": {"name": name, "namespace": "shop"}}))
            .collect();
        let metadata = json!({"resourceVersion": version, "continue": token});
        let body = json!({"metadata": metadata, "items": items});
        Response { code: 200, retry_after: None, body }
    }

    fn refused(code: u16) -> Response {
        Response { code, ..Response::default() }
    }

    fn listed(event: Option<CacheEvent>) -> (Option<u64>, usize) {
        let Some(CacheEvent::Listed { version, objects, .. }) = event else { panic!("{event:?}") };
        (version, objects.len())
    }

    #[test]
    fn all_pages_make_one_list() {
        let mut reflector = reflector();
        assert_eq!(
            reflector.next_request().0,
            ReflectorRequest::List { path: "/api/v1/pods?limit=100".to_owned() }
        );
        assert!(reflector.listed(page(&["a", "b"], "7", "more")).unwrap().is_none());
        let path = "/api/v1/pods?limit=100&continue=more".to_owned();
        assert_eq!(reflector.next_request().0, ReflectorRequest::List { path });
        assert_eq!(listed(reflector.listed(page(&["c"], "7", "")).unwrap()), (Some(7), 3));
        let (ReflectorRequest::Watch { version, .. }, _) = reflector.next_request() else {
            panic!()
        };
        assert_eq!(version, "7");
    }

    #[test]
    fn a_page_reads_the_same_from_text() {
        let response = page(&["a", "b"], "7", "");
        let (mut one, mut other) = (reflector(), reflector());
        let event = other.listed_text(response.body.to_string().as_bytes()).unwrap();
        assert_eq!(format!("{event:?}"), format!("{:?}", one.listed(response).unwrap()));
        let cut = reflector().listed_text(br#"{"metadata": {"resourceVersion": "7"}, "items": [{"#);
        assert!(cut.unwrap_err().starts_with("could not read a list: EOF"));
        assert!(reflector().listed_text(br#"{"items": []}"#).is_err());
    }

    #[test]
    fn an_expired_continue_token_restarts_the_list() {
        let mut reflector = reflector();
        reflector.listed(page(&["a"], "7", "more")).unwrap();
        assert!(reflector.listed(refused(410)).unwrap().is_none());
        assert_eq!(
            reflector.next_request().0,
            ReflectorRequest::List { path: "/api/v1/pods?limit=100".to_owned() }
        );
        assert_eq!(listed(reflector.listed(page(&["b"], "9", "")).unwrap()), (Some(9), 1));
    }

    #[test]
    fn an_expired_watch_lists_again() {
        let watching = || {
            let mut reflector = reflector();
            reflector.listed(page(&[], "7", "")).unwrap();
            reflector
        };
        let mut event = watching();
        assert!(event.observed(StreamEvent::Expired).is_none() && !event.is_watching());
        assert!(matches!(event.next_request().0, ReflectorRequest::List { .. }));
        let mut refused = watching();
        refused.watch_ended(WatchEnd::Expired).unwrap();
        assert!(matches!(refused.next_request().0, ReflectorRequest::List { .. }));
    }

    #[test]
    fn watches_that_expire_one_after_the_other_are_no_storm_of_lists() {
        let mut reflector = reflector();
        let expire = |reflector: &mut Reflector| {
            reflector.listed(page(&[], "7", "")).unwrap();
            reflector.watch_ended(WatchEnd::Expired).unwrap();
            reflector.next_request().1.as_millis()
        };
        let delays: Vec<_> = (0..12).map(|_| expire(&mut reflector)).collect();
        let want = [0, 100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000];
        assert_eq!(delays, want);
        reflector.listed(page(&[], "7", "")).unwrap();
        assert!(reflector.observed(StreamEvent::Bookmark("8".to_owned())).is_none());
        reflector.watch_ended(WatchEnd::Expired).unwrap();
        assert_eq!(reflector.next_request().1, Duration::ZERO, "it had moved on");
    }

    #[test]
    fn a_watch_resumes_where_it_ended_and_lists_again_after_three_failures() {
        let mut reflector = reflector();
        reflector.listed(page(&[], "7", "")).unwrap();
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "namespace": "shop", "resourceVersion": "9"}});
        assert!(matches!(
            reflector.observed(StreamEvent::Applied(Cow::Owned(pod))),
            Some(CacheEvent::Applied(_))
        ));
        reflector.watch_ended(WatchEnd::Closed).unwrap();
        let (ReflectorRequest::Watch { version, .. }, delay) = reflector.next_request() else {
            panic!()
        };
        assert_eq!((version.as_str(), delay), ("9", Duration::ZERO));
        for resume in 1..=RESUMES {
            reflector.watch_ended(WatchEnd::Broken("reset".to_owned())).unwrap();
            assert_eq!(reflector.next_request().1, BACKOFF_FIRST * (1 << resume));
        }
        reflector.watch_ended(WatchEnd::Broken("reset".to_owned())).unwrap_err();
        assert_eq!(reflector.next_request(), (ReflectorRequest::Discover, BACKOFF_FIRST));
    }

    #[test]
    fn a_kind_that_is_not_served_has_no_objects() {
        let mut reflector =
            Reflector::new(POD.in_cluster(""), Arc::new(Projections::of(&[&ReplicaSets])));
        assert!(matches!(reflector.discovered(None), Some(CacheEvent::NotServed { .. })));
        assert_eq!(reflector.next_request(), (ReflectorRequest::Discover, ABSENT));
        let mut served = self::reflector();
        assert!(served.listed(refused(404)).unwrap().is_none());
        assert_eq!(served.next_request().0, ReflectorRequest::Discover);
        served.failed();
        served.failed();
        assert_eq!(served.next_request().1, BACKOFF_FIRST * 2);
    }
}
