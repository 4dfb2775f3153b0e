//! One kind, listed and then watched for as long as the loop runs: what to ask for next, and
//! what an answer means. A kind that the server does not serve has no objects, until it does.
//! Whoever follows asks.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use convoy_api::{GroupKind, Object};
use serde::de::Deserializer;
use serde_json::Value;

use crate::brain::News;
use crate::outcome::Answer;
use crate::page::Page;
use crate::projection::Projections;
use crate::request::Resource;

/// Objects asked for at once: a page that a server answers without holding up others, and that
/// takes little room until it is read.
const PAGE: usize = 100;
/// How often a kind that is not served is asked for.
const ABSENT: Duration = Duration::from_secs(5);
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Servers end watches by themselves; asking them to do so in time spreads the work.
pub(crate) const WATCH_SECS: u64 = 290;
/// How often a watch is taken up again where it broke off before everything is listed anew.
const RESUMES: u32 = 3;

/// Follows the objects of one kind.
#[derive(Debug)]
pub struct Follower {
    kind: GroupKind,
    projections: Arc<Projections>,
    place: Place,
    /// Lists that failed, one after the other.
    failures: u32,
    /// Watches that ended, one after the other, without telling anything.
    resumes: u32,
    pause: Duration,
}

#[derive(Debug)]
enum Place {
    /// How the server calls the kind is not known.
    Outside,
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

/// What to ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// How the server calls the kind.
    Resource,
    List {
        path: String,
    },
    Watch {
        path: String,
        version: String,
    },
}

/// What a watch tells.
#[derive(Clone, Debug)]
pub enum Seen<'s> {
    Changed(Cow<'s, Value>),
    Deleted(Cow<'s, Value>),
    /// Everything up to this version was told.
    Bookmark(String),
    /// What was asked for is not kept any more.
    Expired,
}

/// How a watch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    Properly,
    /// The version it was to go on from is not kept, or the kind is not served.
    Expired,
    Broken(String),
}

impl Follower {
    pub fn new(kind: GroupKind, projections: Arc<Projections>) -> Self {
        let (failures, resumes, pause) = (0, 0, Duration::ZERO);
        Self { kind, projections, place: Place::Outside, failures, resumes, pause }
    }

    pub fn kind(&self) -> &GroupKind {
        &self.kind
    }

    /// What to ask for next, and how long to wait before.
    pub fn wish(&self) -> (Wish, Duration) {
        let wish = match &self.place {
            Place::Outside => Wish::Resource,
            Place::Listing { resource, token, .. } => {
                Wish::List { path: format!("{}?limit={PAGE}{token}", resource.collection("")) }
            }
            Place::Watching { resource, version, .. } => {
                let path = format!(
                    "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECS}&resourceVersion={version}",
                    resource.collection("")
                );
                Wish::Watch { path, version: version.clone() }
            }
        };
        (wish, self.pause)
    }

    /// How the server calls the kind; none if it does not serve it.
    pub fn found(&mut self, resource: Option<Resource>) -> Option<News> {
        self.pause = Duration::ZERO;
        let Some(resource) = resource else {
            self.pause = ABSENT;
            return Some(self.all(None, Vec::new()));
        };
        self.begin(resource);
        None
    }

    /// A list could not be had, nor what comes before it.
    pub fn failed(&mut self) {
        self.pause = PAUSE_FIRST.saturating_mul(1 << self.failures.min(16)).min(PAUSE_MAX);
        self.failures = self.failures.saturating_add(1);
        self.place = Place::Outside;
    }

    /// The answer to a list. Err: why it is of no use.
    pub fn listed(&mut self, answer: Answer) -> Result<Option<News>, String> {
        let place = std::mem::replace(&mut self.place, Place::Outside);
        let Place::Listing { resource, objects, token } = place else { return Ok(None) };
        self.pause = Duration::ZERO;
        match answer.code {
            200 => self.read(resource, objects, answer.body),
            404 => Ok(None),
            // The pages asked for are too old by now: from the beginning.
            410 if !token.is_empty() => {
                self.begin(resource);
                Ok(None)
            }
            _ => Err(format!("could not list: {}", answer.message())),
        }
    }

    /// The text of a list, as which it takes the least room. Err: why it is of no use.
    pub(crate) fn listed_text(&mut self, text: &[u8]) -> Result<Option<News>, String> {
        let place = std::mem::replace(&mut self.place, Place::Outside);
        let Place::Listing { resource, objects, .. } = place else { return Ok(None) };
        self.pause = Duration::ZERO;
        self.read(resource, objects, &mut serde_json::Deserializer::from_slice(text))
    }

    fn read<'de>(
        &mut self,
        resource: Resource,
        mut objects: Vec<Object>,
        body: impl Deserializer<'de, Error = serde_json::Error>,
    ) -> Result<Option<News>, String> {
        let page = Page::read(body, |item| self.item(&resource, item))
            .map_err(|error| format!("could not read a list: {error}"))?;
        objects.extend(page.objects);
        if !page.next.is_empty() {
            let token = format!("&continue={}", page.next);
            self.place = Place::Listing { resource, objects, token };
            return Ok(None);
        }
        let version = page.version;
        self.failures = 0;
        let news = self.all(version.parse().ok(), objects);
        self.place = Place::Watching { resource, version, has_moved: false };
        Ok(Some(news))
    }

    /// What a watch tells.
    pub fn seen(&mut self, seen: Seen<'_>) -> Option<News> {
        let Place::Watching { resource, .. } = &self.place else { return None };
        let (raw, is_gone) = match seen {
            Seen::Changed(raw) => (raw, false),
            Seen::Deleted(raw) => (raw, true),
            Seen::Bookmark(at) => {
                self.move_to(&at);
                return None;
            }
            Seen::Expired => {
                let resource = resource.clone();
                self.begin(resource);
                return None;
            }
        };
        if let Some(newer) = raw.pointer("/metadata/resourceVersion").and_then(Value::as_str) {
            self.move_to(newer);
        }
        let object = self.projections.read(raw)?;
        Some(told(object, is_gone))
    }

    /// A watch has told everything up to this version.
    fn move_to(&mut self, newer: &str) {
        if let Place::Watching { version, has_moved, .. } = &mut self.place {
            *has_moved |= version != newer;
            newer.clone_into(version);
        }
    }

    /// Whether a watch that runs is still wanted.
    pub fn is_watching(&self) -> bool {
        matches!(self.place, Place::Watching { .. })
    }

    /// A watch has ended. Err: why everything is to be listed anew.
    pub fn closed(&mut self, closed: Closed) -> Result<(), String> {
        let Place::Watching { resource, has_moved, .. } = &mut self.place else { return Ok(()) };
        let moved = std::mem::take(has_moved);
        self.resumes = if moved { 0 } else { self.resumes + 1 };
        self.pause = Duration::ZERO;
        match closed {
            Closed::Expired => {
                let resource = resource.clone();
                self.begin(resource);
            }
            Closed::Properly if self.resumes <= RESUMES => {}
            // A quiet kind whose watches just end is followed all the same.
            Closed::Properly => self.pause = PAUSE_FIRST,
            Closed::Broken(_) if self.resumes <= RESUMES => {
                self.pause = PAUSE_FIRST.saturating_mul(1 << self.resumes);
            }
            Closed::Broken(message) => {
                self.failed();
                return Err(format!("the watch broke off: {message}"));
            }
        }
        Ok(())
    }

    fn begin(&mut self, resource: Resource) {
        self.place = Place::Listing { resource, objects: Vec::new(), token: String::new() };
    }

    /// Items of a list do not say what they are.
    fn item(&self, resource: &Resource, mut item: Value) -> Option<Object> {
        let fields = item.as_object_mut()?;
        fields.insert("apiVersion".to_owned(), resource.api_version().into());
        fields.insert("kind".to_owned(), self.kind.kind.as_str().into());
        self.projections.read(Cow::Owned(item))
    }

    fn all(&self, version: Option<u64>, objects: Vec<Object>) -> News {
        News::Listed { kind: self.kind.clone(), version, objects }
    }
}

fn told(object: Object, is_gone: bool) -> News {
    if is_gone { News::Deleted(object) } else { News::Changed(object) }
}

#[cfg(test)]
mod tests {
    use convoy_api::apps::POD;
    use convoy_plan::dialect::apps::ReplicaSets;
    use serde_json::json;

    use super::*;

    fn follower() -> Follower {
        let mut follower = Follower::new(POD, Arc::new(Projections::of(&[&ReplicaSets])));
        let (group, version, plural) = (String::new(), "v1".to_owned(), "pods".to_owned());
        let resource = Resource { group, version, plural, namespaced: true, has_status: true };
        assert!(follower.found(Some(resource)).is_none());
        follower
    }

    fn page(names: &[&str], version: &str, token: &str) -> Answer {
        let items: Vec<Value> = names
            .iter()
            .map(|name| json!({"metadata": {"name": name, "namespace": "shop"}}))
            .collect();
        let metadata = json!({"resourceVersion": version, "continue": token});
        let body = json!({"metadata": metadata, "items": items});
        Answer { code: 200, retry_after: None, body }
    }

    fn refused(code: u16) -> Answer {
        Answer { code, ..Answer::default() }
    }

    fn listed(news: Option<News>) -> (Option<u64>, usize) {
        let Some(News::Listed { version, objects, .. }) = news else { panic!("{news:?}") };
        (version, objects.len())
    }

    #[test]
    fn pages_are_told_as_one_list() {
        let mut follower = follower();
        assert_eq!(follower.wish().0, Wish::List { path: "/api/v1/pods?limit=100".to_owned() });
        assert!(follower.listed(page(&["a", "b"], "7", "more")).unwrap().is_none());
        let path = "/api/v1/pods?limit=100&continue=more".to_owned();
        assert_eq!(follower.wish().0, Wish::List { path });
        assert_eq!(listed(follower.listed(page(&["c"], "7", "")).unwrap()), (Some(7), 3));
        let (Wish::Watch { version, .. }, _) = follower.wish() else { panic!() };
        assert_eq!(version, "7");
    }

    #[test]
    fn a_page_reads_the_same_as_text() {
        let answer = page(&["a", "b"], "7", "");
        let (mut one, mut other) = (follower(), follower());
        let told = other.listed_text(answer.body.to_string().as_bytes()).unwrap();
        assert_eq!(format!("{told:?}"), format!("{:?}", one.listed(answer).unwrap()));
        let cut = follower().listed_text(br#"{"metadata": {"resourceVersion": "7"}, "items": [{"#);
        assert!(cut.unwrap_err().starts_with("could not read a list: EOF"));
        assert!(follower().listed_text(br#"{"items": []}"#).is_err());
    }

    #[test]
    fn pages_that_are_too_old_are_asked_for_from_the_beginning() {
        let mut follower = follower();
        follower.listed(page(&["a"], "7", "more")).unwrap();
        assert!(follower.listed(refused(410)).unwrap().is_none());
        assert_eq!(follower.wish().0, Wish::List { path: "/api/v1/pods?limit=100".to_owned() });
        assert_eq!(listed(follower.listed(page(&["b"], "9", "")).unwrap()), (Some(9), 1));
    }

    #[test]
    fn a_watch_whose_place_is_gone_lists_anew() {
        let watching = || {
            let mut follower = follower();
            follower.listed(page(&[], "7", "")).unwrap();
            follower
        };
        let mut told = watching();
        assert!(told.seen(Seen::Expired).is_none() && !told.is_watching());
        assert!(matches!(told.wish().0, Wish::List { .. }));
        let mut refused = watching();
        refused.closed(Closed::Expired).unwrap();
        assert!(matches!(refused.wish().0, Wish::List { .. }));
    }

    #[test]
    fn a_watch_goes_on_where_it_ended_and_gives_up_after_a_while() {
        let mut follower = follower();
        follower.listed(page(&[], "7", "")).unwrap();
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "namespace": "shop", "resourceVersion": "9"}});
        assert!(matches!(follower.seen(Seen::Changed(Cow::Owned(pod))), Some(News::Changed(_))));
        follower.closed(Closed::Properly).unwrap();
        let (Wish::Watch { version, .. }, pause) = follower.wish() else { panic!() };
        assert_eq!((version.as_str(), pause), ("9", Duration::ZERO));
        for resume in 1..=RESUMES {
            follower.closed(Closed::Broken("reset".to_owned())).unwrap();
            assert_eq!(follower.wish().1, PAUSE_FIRST * (1 << resume));
        }
        follower.closed(Closed::Broken("reset".to_owned())).unwrap_err();
        assert_eq!(follower.wish(), (Wish::Resource, PAUSE_FIRST));
    }

    #[test]
    fn a_kind_that_is_not_served_has_no_objects() {
        let mut follower = Follower::new(POD, Arc::new(Projections::of(&[&ReplicaSets])));
        assert_eq!(listed(follower.found(None)), (None, 0));
        assert_eq!(follower.wish(), (Wish::Resource, ABSENT));
        let mut served = self::follower();
        assert!(served.listed(refused(404)).unwrap().is_none());
        assert_eq!(served.wish().0, Wish::Resource);
        served.failed();
        served.failed();
        assert_eq!(served.wish().1, PAUSE_FIRST * 2);
    }
}
