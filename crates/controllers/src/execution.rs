//! The execution of one step: its writes in order, each fenced by the version observed, up to the
//! first that does not succeed. This module decides which request is sent when and what a
//! response means; the caller sends the requests.
//!
//! A write without a clear response may have been applied. Its target is read until the server
//! answers, and nothing else of the rollout is decided before that, so that no decision is made
//! from a cache older than our own write (G2).

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use convoy_api::{GroupKind, ObjectKey};
use convoy_plan::{Action, Denial, Write};
use serde_json::Value;
use smol_str::SmolStr;

use crate::cache::CacheEvent;
use crate::metrics::Metrics;
use crate::projection::Projections;
use crate::request::{OwnVersions, Request, Resource, precondition, request};
use crate::response::Response;
use crate::write_result::{Effect, WriteResult};

/// The most writes of one step that are in flight at once. A step begins with one and doubles,
/// so that a server that rejects them is not sent five hundred.
const WIDTH_MAX: usize = 32;

/// The manager of fields that were set before a server kept account of managers.
const UNKNOWN_MANAGER: &str = "before-first-apply";

/// The delays between reads of the target of an uncertain write.
const READ_BACKOFF_FIRST: Duration = Duration::from_millis(100);
const READ_BACKOFF_MAX: Duration = Duration::from_secs(30);

/// How the execution of a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepResult {
    /// Every write succeeded.
    Done,
    /// An object is not as it was observed: plan again.
    Conflict,
    /// Plan again, after a while.
    Retry {
        at_least: Duration,
        message: String,
    },
    Denied(Denial),
}

/// A step whose execution has ended, and which of its actions were applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedStep {
    pub result: StepResult,
    /// The targets of the actions that were applied.
    applied: BTreeSet<ObjectKey>,
    /// Whether all actions of the step were applied, its status aside.
    is_complete: bool,
}

/// A request to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingRequest {
    pub id: RequestId,
    /// Send it after this delay.
    pub delay: Duration,
}

/// Identifies a request by the index of its action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestId {
    Write(usize),
    /// Reads the target of an uncertain write.
    Read(usize),
}

/// The result of sending a request.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestResult {
    Response(Response),
    /// No response: whether the server applied the write is not known.
    Lost(String),
    /// It was not sent, and may be sent later.
    Unsent(String),
    /// It cannot be sent, e.g. because the kind is not served.
    Unsupported(String),
    /// There is no connection to the cluster.
    NoCluster(String),
}

/// The writes of one step.
#[derive(Debug)]
pub struct StepExecution {
    actions: Vec<Action>,
    /// How many of the actions are decisions; the one after them, if any, writes the status.
    decided: usize,
    own: OwnVersions,
    /// The field manager of the writes.
    manager: &'static str,
    /// The writes in flight, which come after the `completed` ones.
    batch: Vec<WriteState>,
    completed: usize,
    width: usize,
    applied: BTreeSet<usize>,
    result: Option<StepResult>,
    projections: Arc<Projections>,
    metrics: Arc<Metrics>,
}

#[derive(Clone, Debug)]
enum WriteState {
    Unsent,
    Sent,
    /// The target has to be read before `result` counts.
    Uncertain {
        result: WriteResult,
        reads: u32,
        is_requested: bool,
    },
    /// With the version at which the write left its target.
    Finished {
        result: WriteResult,
        version: Option<String>,
    },
}

impl StepExecution {
    pub(crate) fn new(
        mut actions: Vec<Action>,
        status: Option<Action>,
        manager: &'static str,
        projections: Arc<Projections>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let decided = actions.len();
        actions.extend(status);
        Self {
            actions,
            decided,
            own: OwnVersions::default(),
            manager,
            batch: Vec::new(),
            completed: 0,
            width: 1,
            applied: BTreeSet::new(),
            result: None,
            projections,
            metrics,
        }
    }

    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// How the execution ended; `None` while it goes on.
    pub fn finished(&self) -> Option<FinishedStep> {
        let target = |index: &usize| self.actions[*index].target.clone();
        Some(FinishedStep {
            result: self.result.clone()?,
            applied: self.applied.iter().map(target).collect(),
            is_complete: (0..self.decided).all(|index| self.applied.contains(&index)),
        })
    }

    /// The requests to send now; none while responses are pending and after the end.
    pub fn next_requests(&mut self) -> Vec<PendingRequest> {
        while self.result.is_none() {
            if self.batch.is_empty() {
                self.begin_batch();
                continue;
            }
            if self.batch.iter().all(|state| matches!(state, WriteState::Finished { .. })) {
                self.end_batch();
                continue;
            }
            let completed = self.completed;
            let states = self.batch.iter_mut().enumerate();
            return states.filter_map(|(at, state)| state.next_request(completed + at)).collect();
        }
        Vec::new()
    }

    /// The kind whose resource has to be known to send a request.
    pub fn kind(&self, id: RequestId) -> &GroupKind {
        &self.action(id).target.kind
    }

    /// The cluster that a request goes to; empty for the home cluster.
    pub fn cluster(&self, id: RequestId) -> &SmolStr {
        &self.action(id).target.cluster
    }

    pub fn request(&self, id: RequestId, resource: &Resource) -> Request {
        let action = self.action(id);
        match id {
            RequestId::Write(_) => request(action, resource, &self.own, self.manager),
            RequestId::Read(_) => Request::get(resource.object(&action.target)),
        }
    }

    /// Takes the result of a request; gives back the event for the cache.
    pub fn handle(&mut self, id: RequestId, result: RequestResult) -> Option<CacheEvent> {
        let (RequestId::Write(index) | RequestId::Read(index)) = id;
        let at = index.checked_sub(self.completed).filter(|at| *at < self.batch.len())?;
        match id {
            RequestId::Write(_) => self.handle_write(index, at, result),
            RequestId::Read(_) => self.handle_read(index, at, result),
        }
    }

    fn action(&self, id: RequestId) -> &Action {
        let (RequestId::Write(index) | RequestId::Read(index)) = id;
        &self.actions[index]
    }

    fn handle_write(
        &mut self,
        index: usize,
        at: usize,
        received: RequestResult,
    ) -> Option<CacheEvent> {
        let action = &self.actions[index];
        let code = match &received {
            RequestResult::Response(response) => Some(response.code),
            RequestResult::Lost(_) => Some(0),
            RequestResult::Unsent(_)
            | RequestResult::Unsupported(_)
            | RequestResult::NoCluster(_) => None,
        };
        if let Some(code) = code {
            self.metrics.count_write(verb(&action.write), code);
        }
        if self.conflicts_with_itself(index, &received) {
            if let Write::Apply { force, .. } = &mut self.actions[index].write {
                *force = true;
            }
            self.batch[at] = WriteState::Unsent;
            return None;
        }
        let action = &self.actions[index];
        let is_uncertain = code.is_some_and(|code| code >= 500 || code == 408 || code == 0);
        let result = match &received {
            RequestResult::Response(response) => WriteResult::of(&action.write, response),
            RequestResult::Lost(message)
            | RequestResult::Unsent(message)
            | RequestResult::NoCluster(message) => {
                WriteResult::Retry { at_least: Duration::ZERO, message: message.clone() }
            }
            RequestResult::Unsupported(message) => {
                WriteResult::Rejected { message: message.clone() }
            }
        };
        if result == WriteResult::Conflict {
            self.metrics.count_conflict();
        }
        if is_uncertain || result == WriteResult::Conflict {
            self.batch[at] = WriteState::Uncertain { result, reads: 0, is_requested: false };
            return None;
        }
        let (event, version) = match (&result, received) {
            (
                WriteResult::Done(Effect::Returned),
                RequestResult::Response(Response { body, .. }),
            ) => {
                let version = body.pointer("/metadata/resourceVersion").and_then(Value::as_str);
                let version = version.map(str::to_owned);
                let object = self.projections.read(&action.target.cluster, Cow::Owned(body));
                (object.map(CacheEvent::Responded), version)
            }
            (WriteResult::Done(Effect::Gone), _) => {
                let uid = observed_uid(&action.write).map(str::to_owned);
                (Some(CacheEvent::Gone { key: action.target.clone(), uid }), None)
            }
            _ => (None, None),
        };
        self.batch[at] = WriteState::Finished { result, version };
        event
    }

    /// Whether an apply found only fields that its own manager has set by other writes, or that
    /// nobody is known to have set. A server takes these for others'. The apply is sent again
    /// with force, fenced by the same version, so that it takes nothing else.
    fn conflicts_with_itself(&self, index: usize, received: &RequestResult) -> bool {
        let (
            Write::Apply { force: false, manager, precondition, .. },
            RequestResult::Response(response),
        ) = (&self.actions[index].write, received)
        else {
            return false;
        };
        let own = manager.as_deref().unwrap_or(self.manager);
        let mut managers = response.conflicting_managers().peekable();
        managers.peek().is_some()
            && precondition.resource_version.is_some()
            && managers.all(|manager| [own, UNKNOWN_MANAGER].contains(&manager))
    }

    /// Updates the cache with the state that a conflict or an uncertain write left, so that the
    /// next decision is made from that state and not from the same one again.
    fn handle_read(
        &mut self,
        index: usize,
        at: usize,
        received: RequestResult,
    ) -> Option<CacheEvent> {
        let WriteState::Uncertain { result, reads, .. } = &self.batch[at] else { return None };
        let (result, reads) = (result.clone(), *reads);
        let target = &self.actions[index].target;
        let event = match received {
            RequestResult::Response(response) if response.is_success() => {
                let object = self.projections.read(&target.cluster, Cow::Owned(response.body));
                Some(object.map(CacheEvent::Responded))
            }
            // Only what was observed is known to be gone: another of our writes may have created
            // an object of that name since.
            RequestResult::Response(response) if response.code == 404 => {
                let observed = observed_uid(&self.actions[index].write).map(str::to_owned);
                Some(observed.map(|uid| CacheEvent::Gone { key: target.clone(), uid: Some(uid) }))
            }
            // The cluster has left. Should it come back, everything in it is listed anew.
            RequestResult::NoCluster(_) => Some(None),
            // After a conflict the watch delivers the newer state.
            _ if result == WriteResult::Conflict => Some(None),
            _ => None,
        };
        self.batch[at] = if event.is_some() {
            WriteState::Finished { result, version: None }
        } else {
            let reads = reads.saturating_add(1);
            WriteState::Uncertain { result, reads, is_requested: false }
        };
        event.flatten()
    }

    /// Begins the next writes that may overtake each other.
    fn begin_batch(&mut self) {
        let rest = &self.actions[self.completed..];
        let Some(first) = rest.first() else {
            self.result = Some(StepResult::Done);
            return;
        };
        let mut targets = BTreeSet::new();
        let alike = rest
            .iter()
            .take(self.width + 1)
            .take_while(|other| may_overtake(first, other) && targets.insert(&other.target))
            .count()
            .max(1);
        self.batch = vec![WriteState::Unsent; alike.min(self.width)];
        let is_more = alike > self.batch.len();
        self.width = if is_more { (self.width * 2).min(WIDTH_MAX) } else { 1 };
    }

    fn end_batch(&mut self) {
        let mut end = None;
        for state in std::mem::take(&mut self.batch) {
            let WriteState::Finished { result, version } = state else { continue };
            let index = self.completed;
            self.completed += 1;
            let action = &self.actions[index];
            let before = precondition(&action.write)
                .and_then(|fence| self.own.fence(&action.target, fence).resource_version);
            self.own.note(&action.target, before.as_deref(), version.as_deref());
            if matches!(result, WriteResult::Done(_)) {
                self.applied.insert(index);
            }
            end = end.or_else(|| step_result(action, result));
        }
        self.result = end;
    }
}

impl FinishedStep {
    /// Whether the actions about an object were applied. For an object that no action is about,
    /// whether all actions were.
    pub(crate) fn applied(&self, key: &ObjectKey) -> bool {
        self.is_complete || self.applied.contains(key)
    }

    /// The execution failed because of a defect of ours.
    pub(crate) fn aborted(message: &str) -> Self {
        let message = message.to_owned();
        Self {
            result: StepResult::Retry { at_least: Duration::ZERO, message },
            applied: BTreeSet::new(),
            is_complete: false,
        }
    }
}

impl WriteState {
    fn next_request(&mut self, index: usize) -> Option<PendingRequest> {
        match self {
            Self::Unsent => {
                *self = Self::Sent;
                Some(PendingRequest { id: RequestId::Write(index), delay: Duration::ZERO })
            }
            Self::Uncertain { reads, is_requested, .. } if !*is_requested => {
                *is_requested = true;
                let delay = reads.checked_sub(1).map_or(Duration::ZERO, |failures| {
                    READ_BACKOFF_FIRST.saturating_mul(1 << failures.min(16)).min(READ_BACKOFF_MAX)
                });
                Some(PendingRequest { id: RequestId::Read(index), delay })
            }
            Self::Sent | Self::Uncertain { .. } | Self::Finished { .. } => None,
        }
    }
}

/// Whether two writes may overtake each other: their decision allows it, and both create, both
/// delete, or both patch objects of one kind in one namespace of one cluster.
fn may_overtake(one: &Action, other: &Action) -> bool {
    let same = one.target.cluster == other.target.cluster
        && one.target.kind == other.target.kind
        && one.target.namespace == other.target.namespace
        && one.verb == other.verb;
    let alike = match (&one.write, &other.write) {
        (Write::Create { .. }, Write::Create { .. })
        | (Write::Delete { .. }, Write::Delete { .. }) => true,
        (Write::Patch { subresource, .. }, Write::Patch { subresource: others, .. }) => {
            subresource == others
        }
        _ => false,
    };
    one.concurrent && other.concurrent && same && alike
}

/// The object that a write was decided for; none for one that creates it.
fn observed_uid(write: &Write) -> Option<&str> {
    match write {
        Write::Create { .. } => None,
        Write::Patch { precondition, .. }
        | Write::Apply { precondition, .. }
        | Write::Delete { precondition, .. }
        | Write::Evict { precondition, .. } => precondition.uid.as_deref(),
    }
}

/// How a write that did not succeed ends its step.
fn step_result(action: &Action, result: WriteResult) -> Option<StepResult> {
    match result {
        WriteResult::Done(_) => None,
        WriteResult::Conflict => Some(StepResult::Conflict),
        WriteResult::Retry { at_least, message } => Some(StepResult::Retry { at_least, message }),
        WriteResult::Rejected { message } => {
            let target = action.target.clone();
            Some(StepResult::Denied(Denial { target, verb: verb(&action.write), message }))
        }
    }
}

/// The verb of a write in metrics and events.
fn verb(write: &Write) -> &'static str {
    match write {
        Write::Create { .. } => "create",
        Write::Patch { .. } => "patch",
        Write::Apply { .. } => "apply",
        Write::Delete { .. } => "delete",
        Write::Evict { .. } => "evict",
    }
}

#[cfg(test)]
mod tests;
