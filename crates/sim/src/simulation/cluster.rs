//! An API server in virtual time. Every write becomes a [`Fact`], in order.

use std::collections::BTreeMap;
use std::fmt;

use convoy_api::{GroupKind, Object};
use convoy_controllers::discovery;
use convoy_controllers::outcome::Answer;
use convoy_controllers::request::{Request, Resource};
use convoy_store::Change;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::light::Light;
use super::real::Real;
use crate::fleet::send::Form;
use crate::known::Known;
use crate::seed::Seed;

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// Convoy's own, with everything it does.
    Real,
    /// A small one that does the same to versions, conflicts and deletions, ten times faster.
    Light,
}

/// Who wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    Person,
    /// A control loop that is under trial.
    Controller,
    /// Kubelets, the scheduler, the node controller.
    Machines,
    /// The server's own chores.
    Server,
}

/// One write that was carried out.
#[derive(Clone, Debug)]
pub struct Fact {
    pub revision: u64,
    pub at: Timestamp,
    pub by: Author,
    pub change: Change,
    /// As it stands now; of a deletion, as it stood last.
    pub object: Object,
}

impl Fact {
    pub fn is_deletion(&self) -> bool {
        self.change == Change::Deleted
    }
}

/// A write as a server tells it.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) revision: u64,
    pub(super) change: Change,
    pub(super) object: Object,
}

/// What a server says to a request.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) code: u16,
    pub(crate) body: Known,
}

impl From<Response> for Answer {
    fn from(Response { code, body }: Response) -> Self {
        Self { code, retry_after: None, body: body.into() }
    }
}

/// A request of a loop, as it is sent.
pub(crate) fn form(request: &Request) -> Form<'_> {
    let Request { method, path, content_type, body } = request;
    Form { method: method.clone(), uri: path.clone(), content_type, body }
}

/// Facts are forgotten in pieces of so many at least.
const FORGOTTEN_MIN: usize = 1_000;

/// What answers.
pub(super) trait Server: fmt::Debug {
    fn send(&mut self, form: &Form<'_>, now: Timestamp) -> Response;

    /// Does what the server does of itself: collects garbage.
    fn tend(&mut self, now: Timestamp);

    /// What was written since this was last asked, in order.
    fn written(&mut self) -> Vec<Written>;
}

/// A server, its clock, and everything that was written.
#[derive(Debug)]
pub struct Cluster {
    server: Box<dyn Server>,
    now: Timestamp,
    facts: Vec<Fact>,
    /// How many facts before those were forgotten.
    forgotten: usize,
    /// How kinds are called, as far as anybody asked.
    resources: BTreeMap<GroupKind, Resource>,
}

impl Cluster {
    /// An empty cluster with the namespaces `default` and `kube-node-lease`.
    pub fn new(home: Home, seed: Seed, now: Timestamp) -> Self {
        let server: Box<dyn Server> = match home {
            Home::Real => Box::new(Real::new(seed)),
            Home::Light => Box::new(Light::new()),
        };
        let mut cluster =
            Self { server, now, facts: Vec::new(), forgotten: 0, resources: BTreeMap::new() };
        for name in ["default", "kube-node-lease"] {
            let body = json!({"metadata": {"name": name}});
            cluster.send(&Request::create("/api/v1/namespaces", body), Author::Server);
        }
        cluster.tend();
        cluster
    }

    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// How many facts there have been.
    pub fn written(&self) -> usize {
        self.forgotten + self.facts.len()
    }

    /// The facts from a place on, in order, as far as they are kept.
    pub fn facts(&self, from: usize) -> &[Fact] {
        let from = from.saturating_sub(self.forgotten).min(self.facts.len());
        &self.facts[from..]
    }

    /// The place from which on facts are after `version`.
    pub fn place_after(&self, version: u64) -> usize {
        self.forgotten + self.facts.partition_point(|fact| fact.revision <= version)
    }

    /// Lets go of the facts before a place, once there are many of them.
    pub(crate) fn forget(&mut self, before: usize) {
        let count = before.saturating_sub(self.forgotten).min(self.facts.len());
        if count >= FORGOTTEN_MIN {
            self.facts.drain(..count);
            self.forgotten += count;
        }
    }

    pub(crate) fn set_clock(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// Sends a request and reads the answer, at this very instant.
    pub fn send(&mut self, request: &Request, by: Author) -> Answer {
        self.answer(&form(request), by).into()
    }

    /// The answer as the server has it.
    pub(crate) fn answer(&mut self, form: &Form<'_>, by: Author) -> Response {
        let response = self.server.send(form, self.now);
        self.take_in(by);
        response
    }

    /// What stands at a path; null if nothing does.
    pub fn get(&mut self, path: &str) -> Value {
        let answer = self.send(&Request::get(path), Author::Person);
        if answer.is_success() { answer.body } else { Value::Null }
    }

    /// Lets the server do its chores.
    pub(crate) fn tend(&mut self) {
        self.server.tend(self.now);
        self.take_in(Author::Server);
    }

    /// How the server calls a kind.
    pub(crate) fn resource(&mut self, kind: &GroupKind) -> Option<Resource> {
        if let Some(known) = self.resources.get(kind) {
            return Some(known.clone());
        }
        let found = self.ask_resource(kind)?;
        self.resources.insert(kind.clone(), found.clone());
        Some(found)
    }

    fn ask_resource(&mut self, kind: &GroupKind) -> Option<Resource> {
        if kind.group.is_empty() {
            return discovery::among(&self.get("/api/v1"), kind, "v1");
        }
        let group = self.get(&format!("/apis/{}", kind.group));
        discovery::versions(&group).into_iter().find_map(|version| {
            let list = self.get(&format!("/apis/{}/{version}", kind.group));
            discovery::among(&list, kind, &version)
        })
    }

    fn take_in(&mut self, by: Author) {
        let at = self.now;
        for Written { revision, change, object } in self.server.written() {
            self.facts.push(Fact { revision, at, by, change, object });
        }
    }
}
