//! The audit log: one JSON event per line, written by a thread of its own. Requests never wait for
//! it; events that do not fit into its queue are counted and dropped.

mod event;
mod policy;
mod sink;

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use jiff::Timestamp;

use crate::body::Body;
use crate::caller::Caller;
use crate::request_info::RequestInfo;
use crate::surroundings::Surroundings;

pub use policy::{Level, Policy, PolicyError, Stage};
pub use sink::Counts;

use event::Event;
use policy::Chosen;
use sink::Sink;

/// A running audit log.
#[derive(Debug)]
pub struct Auditor {
    policy: Policy,
    sink: Sink,
}

/// One request on its way into the log. Whatever is told to it late is simply missing from the
/// lines before.
#[derive(Debug)]
pub struct Record {
    auditor: Arc<Auditor>,
    chosen: Chosen,
    event: Event,
}

/// The properties of a request that are known before it is handled.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    pub id: &'r str,
    pub uri: &'r str,
    pub user_agent: &'r str,
    pub address: &'r str,
    pub received: Timestamp,
}

/// The record of a request as it is handled, from before its caller is known.
#[derive(Debug)]
pub struct Log<'r> {
    request: Request<'r>,
    record: Option<Record>,
}

/// Annotations of the audit event, by key; an extension of the response.
#[derive(Clone, Debug)]
pub(crate) struct Notes(pub(crate) Vec<(String, String)>);

/// Completes the audit event when the last of the response is sent.
#[derive(Debug)]
pub(crate) struct Finish {
    record: Option<Record>,
    code: u16,
    surroundings: Arc<dyn Surroundings>,
}

impl Drop for Finish {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            record.completed(self.code, None, self.surroundings.now());
        }
    }
}

impl Auditor {
    /// Begins to write lines to `out`, of at most `queue_max` requests at a time.
    pub fn start(
        policy: Policy,
        out: Box<dyn std::io::Write + Send>,
        queue_max: usize,
    ) -> std::io::Result<Arc<Self>> {
        Ok(Arc::new(Self { policy, sink: Sink::start(out, queue_max)? }))
    }

    /// How many lines were written, and how many were lost.
    pub fn counts(&self) -> Counts {
        self.sink.counts()
    }

    /// Waits until everything handed over before is written.
    pub fn flush(&self) {
        self.sink.flush();
    }

    /// Opens the record of a request; none if the policy wants none.
    fn record(
        self: &Arc<Self>,
        request: Request<'_>,
        caller: &Caller,
        info: &RequestInfo,
    ) -> Option<Record> {
        let chosen = self.policy.choose(caller, info);
        if chosen.level == Level::None {
            return None;
        }
        let mut event = Event::new(chosen.level, request, caller, info);
        event.omit_managed_fields = chosen.omit_managed_fields;
        let record = Record { auditor: Arc::clone(self), chosen, event };
        record.log(Stage::RequestReceived, request.received);
        Some(record)
    }
}

impl<'r> Log<'r> {
    pub fn new(request: Request<'r>) -> Self {
        Self { request, record: None }
    }

    pub(crate) fn open(
        &mut self,
        auditor: Option<&Arc<Auditor>>,
        caller: &Caller,
        info: &RequestInfo,
    ) {
        self.record = auditor.and_then(|auditor| auditor.record(self.request, caller, info));
    }

    /// The request impersonates another user.
    pub(crate) fn impersonating(&mut self, caller: &Caller) {
        if let Some(record) = &mut self.record {
            record.event.impersonated = Some(caller.user_info());
        }
    }

    /// What the rules of access said, and why.
    pub(crate) fn decided(&mut self, is_allowed: bool, reason: impl FnOnce() -> String) {
        let Some(record) = &mut self.record else { return };
        let verdict = if is_allowed { "allow" } else { "forbid" };
        record.event.annotate("authorization.k8s.io/decision", verdict.to_owned());
        record.event.annotate("authorization.k8s.io/reason", reason());
    }

    pub(crate) fn request_body(&mut self, body: &Bytes) {
        if let Some(record) = self.record.as_mut().filter(|record| record.wants_bodies().0) {
            record.event.request_object = event::object(body);
        }
    }

    /// The handler panicked.
    pub(crate) fn panicked(self, now: Timestamp) {
        if let Some(record) = self.record {
            record.panicked(now);
        }
    }

    /// The answer is decided. One that is followed goes on from here, and takes the record with
    /// it, to be completed when it ends.
    pub(crate) fn answered(
        self,
        response: &mut Response<Body>,
        surroundings: &Arc<dyn Surroundings>,
    ) {
        let Some(mut record) = self.record else { return };
        for (key, value) in response.extensions_mut().remove().map_or(Vec::new(), |Notes(all)| all)
        {
            record.event.annotate(&key, value);
        }
        let code = response.status().as_u16();
        match response.body_mut() {
            Body::Watch(follow) => {
                record.started(code, surroundings.now());
                let surroundings = Arc::clone(surroundings);
                follow.keep(Box::new(Finish { record: Some(record), code, surroundings }));
            }
            Body::Whole(Some(bytes)) => record.completed(code, Some(bytes), surroundings.now()),
            _ => record.completed(code, None, surroundings.now()),
        }
    }
}

impl Record {
    /// Whether bodies of requests and of responses are logged.
    pub fn wants_bodies(&self) -> (bool, bool) {
        (self.chosen.level >= Level::Request, self.chosen.level >= Level::RequestResponse)
    }

    /// The headers of a long-running response were sent.
    pub fn started(&mut self, code: u16, now: Timestamp) {
        self.event.code = code;
        self.log(Stage::ResponseStarted, now);
    }

    /// The response is complete. `body` if it was at hand.
    pub fn completed(mut self, code: u16, body: Option<&Bytes>, now: Timestamp) {
        self.event.code = code;
        if let (true, Some(body)) = (self.wants_bodies().1, body) {
            self.event.response_object = event::object(body);
        }
        self.log(Stage::ResponseComplete, now);
    }

    /// The handler panicked.
    pub fn panicked(mut self, now: Timestamp) {
        self.event.code = 500;
        self.log(Stage::Panic, now);
    }

    fn log(&self, stage: Stage, now: Timestamp) {
        if !self.chosen.omits(stage) {
            self.auditor.sink.send(self.event.at(stage, now));
        }
    }
}

#[cfg(test)]
mod tests;
