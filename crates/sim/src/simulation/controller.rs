//! A simulated process that runs the control loop: its reconciler, its reflectors and its requests
//! in flight. Every exchange takes time, may fail, and is lost when the process stops.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use convoy_controllers::Settings;
use convoy_controllers::execution::{PendingRequest, RequestId, RequestResult, StepExecution};
use convoy_controllers::reconciler::{Reconciler, Reconciliation};
use convoy_controllers::reflector::{Reflector, ReflectorRequest, StreamEvent, WatchEnd};
use convoy_controllers::request::Request;
use convoy_controllers::response::Response;
use convoy_controllers::rollout::Rollout;
use convoy_controllers::watches::WatchChange;
use convoy_plan::Dialect;
use jiff::{SignedDuration, Timestamp};

use super::cluster::{Author, Cluster, WriteRecord, http_parts};
use super::environment::Environment;
use super::faults::{RequestFault, WatchFault};

/// An event of a process.
#[derive(Debug)]
pub(crate) enum ControllerEvent {
    /// Its own timer.
    Wake,
    /// It reconciles what is due.
    React,
    /// It sends the next request of a reflector.
    Follow(usize),
    Listed(usize, Option<Response>),
    /// The next event of a kind arrives.
    Deliver(usize),
    /// A request arrives at the server.
    Arrive(u64),
    /// Its response comes back.
    Return(u64, RequestResult),
}

/// Events to schedule, with their delays.
pub(crate) type Scheduled = Vec<(SignedDuration, ControllerEvent)>;

/// The timing of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopBehaviour {
    /// The longest delay between an event and the reconciliation; zero means none.
    pub reaction_delay: SignedDuration,
    /// Whether a watch delivers all pending events at once instead of one by one.
    pub batches_events: bool,
}

/// One process, from start to stop.
pub(crate) struct Controller {
    reconciler: Reconciler,
    streams: Vec<Stream>,
    executions: BTreeMap<u64, (Rollout, StepExecution)>,
    /// Requests in flight.
    sent: BTreeMap<u64, Sent>,
    numbers: u64,
    alarm: Option<Timestamp>,
    behaviour: LoopBehaviour,
    /// A reconciliation is scheduled.
    is_reacting: bool,
}

struct Stream {
    reflector: Reflector,
    /// The position of the watch in the records of the cluster.
    at: Option<usize>,
    is_scheduled: bool,
}

#[derive(Clone, Debug)]
struct Sent {
    execution: u64,
    id: RequestId,
    request: Request,
    has_arrived: bool,
}

impl Controller {
    pub(crate) fn start(
        dialects: &[&'static dyn Dialect],
        behaviour: LoopBehaviour,
        environment: &mut Environment<'_>,
    ) -> (Self, Scheduled) {
        let mut reconciler = Reconciler::new(Settings::new(dialects.to_vec()));
        let changes = reconciler.take_watch_changes().into_iter();
        let streams = changes.filter_map(|change| match change {
            WatchChange::Start { collection, .. } => Some(Stream {
                reflector: Reflector::new(collection, Arc::clone(reconciler.projections())),
                at: None,
                is_scheduled: false,
            }),
            _ => None,
        });
        let streams: Vec<Stream> = streams.collect();
        let scheduled = (0..streams.len())
            .map(|stream| (environment.random.millis(0, 50), ControllerEvent::Follow(stream)))
            .collect();
        let (executions, sent) = (BTreeMap::new(), BTreeMap::new());
        let controller = Self {
            reconciler,
            streams,
            executions,
            sent,
            numbers: 0,
            alarm: None,
            behaviour,
            is_reacting: false,
        };
        (controller, scheduled)
    }

    /// Whether nothing is due, in flight or undelivered.
    pub(crate) fn is_quiet(&self, cluster: &Cluster) -> bool {
        let rests = self.executions.is_empty()
            && self.sent.is_empty()
            && !self.reconciler.has_failures()
            && self.reconciler.idle_for(cluster.now()) != Some(Duration::ZERO);
        rests
            && self
                .streams
                .iter()
                .all(|stream| stream.at.is_some_and(|at| stream.next(cluster, at).is_none()))
    }

    /// Whether it waits for responses.
    pub(crate) fn is_busy(&self) -> bool {
        !self.sent.is_empty()
    }

    /// The index before which it needs no records; `None` if a watch has no position.
    pub(crate) fn needs_from(&self) -> Option<usize> {
        let places = self.streams.iter().map(|stream| stream.at);
        places.min_by_key(|at| at.unwrap_or(0)).flatten()
    }

    pub(crate) fn handle(
        &mut self,
        event: ControllerEvent,
        environment: &mut Environment<'_>,
    ) -> Scheduled {
        let mut scheduled = Scheduled::new();
        let is_time = matches!(event, ControllerEvent::React);
        match event {
            // A timer that was moved forward still fires at its former instant.
            ControllerEvent::Wake => {
                self.alarm = self.alarm.filter(|alarm| *alarm > environment.cluster.now());
            }
            ControllerEvent::React => self.is_reacting = false,
            ControllerEvent::Follow(stream) => self.follow(stream, environment, &mut scheduled),
            ControllerEvent::Listed(stream, response) => {
                self.listed(stream, response, environment, &mut scheduled);
            }
            ControllerEvent::Deliver(stream) => self.deliver(stream, environment, &mut scheduled),
            ControllerEvent::Arrive(number) => self.arrive(number, environment, &mut scheduled),
            ControllerEvent::Return(number, result) => {
                self.returned(number, result, environment, &mut scheduled);
            }
        }
        self.react(environment, &mut scheduled, is_time);
        scheduled
    }

    /// There are new records: idle watches deliver them.
    pub(crate) fn notify(&mut self, environment: &mut Environment<'_>) -> Scheduled {
        let mut scheduled = Scheduled::new();
        for index in 0..self.streams.len() {
            self.schedule_delivery(index, environment, &mut scheduled);
        }
        scheduled
    }

    /// The process stops. Requests in flight arrive or are lost.
    pub(crate) fn kill(self, environment: &mut Environment<'_>) {
        for sent in self.sent.into_values().filter(|sent| !sent.has_arrived) {
            if environment.random.happens(500) {
                environment.cluster.send(&sent.request, Author::Controller);
            }
        }
    }

    /// Reconciles what is due, at once or after the reaction delay.
    fn react(
        &mut self,
        environment: &mut Environment<'_>,
        scheduled: &mut Scheduled,
        is_time: bool,
    ) {
        let now = environment.cluster.now();
        if self.behaviour.reaction_delay.is_zero() || is_time {
            return self.reconcile_all(environment, scheduled);
        }
        if self.reconciler.idle_for(now) != Some(Duration::ZERO) {
            self.set_alarm(now, scheduled);
        } else if !self.is_reacting {
            self.is_reacting = true;
            let longest =
                i64::try_from(self.behaviour.reaction_delay.as_millis()).unwrap_or(i64::MAX);
            scheduled.push((environment.random.millis(0, longest), ControllerEvent::React));
        }
    }

    fn reconcile_all(&mut self, environment: &mut Environment<'_>, scheduled: &mut Scheduled) {
        if !environment.may_write {
            return;
        }
        let now = environment.cluster.now();
        while let Some(Reconciliation { rollout, execution, .. }) = self.reconciler.reconcile(now) {
            if let Some(execution) = execution {
                self.numbers += 1;
                let number = self.numbers;
                self.executions.insert(number, (rollout, execution));
                self.advance(number, environment, scheduled);
            }
        }
        drop(self.reconciler.take_events());
        self.set_alarm(now, scheduled);
    }

    fn set_alarm(&mut self, now: Timestamp, scheduled: &mut Scheduled) {
        let Some(pause) = self.reconciler.idle_for(now) else { return };
        let at = now.checked_add(pause).unwrap_or(Timestamp::MAX);
        if self.alarm.is_none_or(|alarm| at < alarm) {
            self.alarm = Some(at);
            scheduled.push((
                SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX),
                ControllerEvent::Wake,
            ));
        }
    }

    /// Sends the next requests of an execution, or finishes it.
    fn advance(
        &mut self,
        number: u64,
        environment: &mut Environment<'_>,
        scheduled: &mut Scheduled,
    ) {
        let Some((rollout, execution)) = self.executions.get_mut(&number) else { return };
        let requests = execution.next_requests();
        if let Some(finished) = execution.finished() {
            let rollout = rollout.clone();
            self.executions.remove(&number);
            self.reconciler.finish(&rollout, finished, environment.cluster.now());
            return;
        }
        for PendingRequest { id, delay } in requests {
            let Some((_, execution)) = self.executions.get(&number) else { return };
            let kind = execution.kind(id).clone();
            let resource = environment.cluster.resource(&kind);
            // A kind that is not served gets a 404.
            let path = || Request::get(format!("/unserved/{}", execution.kind(id)));
            let request = resource.as_ref().map_or_else(path, |known| execution.request(id, known));
            self.numbers += 1;
            let sent = Sent { execution: number, id, request, has_arrived: false };
            self.sent.insert(self.numbers, sent);
            let transit = match id {
                RequestId::Write(_) if !environment.may_write => {
                    let unsent = RequestResult::Unsent("the tenure is over".to_owned());
                    let event = ControllerEvent::Return(self.numbers, unsent);
                    scheduled.push((SignedDuration::ZERO, event));
                    continue;
                }
                RequestId::Write(_) => environment.transit(),
                RequestId::Read(_) => environment.random.millis(0, 10),
            };
            let delay = SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX);
            scheduled.push((delay.saturating_add(transit), ControllerEvent::Arrive(self.numbers)));
        }
    }

    /// A request arrives at the server, whether or not the process runs.
    pub(crate) fn arrive(
        &mut self,
        number: u64,
        environment: &mut Environment<'_>,
        scheduled: &mut Scheduled,
    ) {
        let Some(sent) = self.sent.get_mut(&number) else { return };
        sent.has_arrived = true;
        let fault = match sent.id {
            RequestId::Write(_) => environment.faults.of_write(environment.random),
            RequestId::Read(_) => environment.faults.of_read(environment.random),
        };
        let mut carry_out =
            || environment.cluster.respond(&http_parts(&sent.request), Author::Controller);
        let result = match fault {
            RequestFault::None => RequestResult::Response(carry_out().into()),
            RequestFault::Refused(code) => {
                RequestResult::Response(Response { code, ..Response::default() })
            }
            RequestFault::Failed => {
                carry_out();
                RequestResult::Response(Response { code: 500, ..Response::default() })
            }
            RequestFault::Lost => {
                carry_out();
                RequestResult::Lost("no response".to_owned())
            }
        };
        let transit = match fault {
            RequestFault::Lost => environment.random.millis(0, 5_000),
            _ => environment.random.millis(0, 10),
        };
        scheduled.push((transit, ControllerEvent::Return(number, result)));
    }

    fn returned(
        &mut self,
        number: u64,
        result: RequestResult,
        environment: &mut Environment<'_>,
        scheduled: &mut Scheduled,
    ) {
        let Some(Sent { execution: number, id, .. }) = self.sent.remove(&number) else { return };
        let Some((_, execution)) = self.executions.get_mut(&number) else { return };
        if let Some(event) = execution.handle(id, result) {
            self.reconciler.handle(event);
        }
        self.advance(number, environment, scheduled);
    }

    fn follow(
        &mut self,
        index: usize,
        environment: &mut Environment<'_>,
        scheduled: &mut Scheduled,
    ) {
        let stream = &mut self.streams[index];
        stream.at = None;
        match stream.reflector.next_request().0 {
            ReflectorRequest::Discover => {
                let resource = environment.cluster.resource(stream.reflector.kind());
                if let Some(event) = stream.reflector.discovered(resource) {
                    self.reconciler.handle(event);
                }
                self.follow_on(index, environment, scheduled);
            }
            ReflectorRequest::List { path } => {
                let response = match environment.faults.of_read(environment.random) {
                    RequestFault::None => {
                        Some(environment.cluster.send(&Request::get(path), Author::Controller))
                    }
                    RequestFault::Refused(code) => Some(Response { code, ..Response::default() }),
                    RequestFault::Failed | RequestFault::Lost => None,
                };
                scheduled.push((
                    environment.random.millis(0, 20),
                    ControllerEvent::Listed(index, response),
                ));
            }
            ReflectorRequest::Watch { version, .. } => {
                let version = version.parse().unwrap_or(0);
                stream.at = Some(environment.cluster.index_after(version));
                self.schedule_delivery(index, environment, scheduled);
            }
        }
    }

    fn follow_on(
        &mut self,
        index: usize,
        environment: &mut Environment<'_>,
        scheduled: &mut Scheduled,
    ) {
        let (_, pause) = self.streams[index].reflector.next_request();
        self.streams[index].at = None;
        let pause = SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX);
        scheduled.push((
            pause.saturating_add(environment.random.millis(0, 10)),
            ControllerEvent::Follow(index),
        ));
    }

    fn listed(
        &mut self,
        index: usize,
        response: Option<Response>,
        environment: &mut Environment<'_>,
        scheduled: &mut Scheduled,
    ) {
        let reflector = &mut self.streams[index].reflector;
        let listed =
            response.ok_or_else(String::new).and_then(|response| reflector.listed(response));
        match listed {
            Ok(event) => {
                if let Some(event) = event {
                    self.reconciler.handle(event);
                }
            }
            Err(_) => reflector.failed(),
        }
        self.follow_on(index, environment, scheduled);
    }

    /// Delivers one event, or all pending ones, unless the watch fails.
    fn deliver(
        &mut self,
        index: usize,
        environment: &mut Environment<'_>,
        scheduled: &mut Scheduled,
    ) {
        let stream = &mut self.streams[index];
        stream.is_scheduled = false;
        let Some(at) = stream.at else { return };
        let end = match environment.faults.of_watch(environment.random) {
            WatchFault::None => None,
            WatchFault::Ended => Some(WatchEnd::Closed),
            WatchFault::Broken => Some(WatchEnd::Broken("broken".to_owned())),
            WatchFault::Expired => Some(WatchEnd::Expired),
        };
        if let Some(end) = end {
            // The reason for listing again does not matter here.
            drop(stream.reflector.watch_ended(end));
            return self.follow_on(index, environment, scheduled);
        }
        let mut from = at;
        while let Some((place, record)) = stream.next(environment.cluster, from) {
            from = place + 1;
            let raw = Cow::Borrowed(record.object.raw());
            let event = if record.is_deletion() {
                StreamEvent::Deleted(raw)
            } else {
                StreamEvent::Applied(raw)
            };
            if let Some(event) = stream.reflector.observed(event) {
                self.reconciler.handle(event);
            }
            if !self.behaviour.batches_events {
                break;
            }
        }
        stream.at = Some(from);
        self.schedule_delivery(index, environment, scheduled);
    }

    fn schedule_delivery(
        &mut self,
        index: usize,
        environment: &mut Environment<'_>,
        scheduled: &mut Scheduled,
    ) {
        let stream = &mut self.streams[index];
        let Some(at) = stream.at.filter(|_| !stream.is_scheduled) else { return };
        if stream.next(environment.cluster, at).is_some() {
            stream.is_scheduled = true;
            scheduled.push((
                environment.faults.delay(environment.random),
                ControllerEvent::Deliver(index),
            ));
        } else {
            stream.at = Some(environment.cluster.written());
        }
    }
}

impl Stream {
    /// The next record of its kind.
    fn next<'c>(&self, cluster: &'c Cluster, at: usize) -> Option<(usize, &'c WriteRecord)> {
        let mut records = cluster.records(at).iter().enumerate();
        let (found, record) =
            records.find(|(_, record)| record.object.kind() == self.reflector.kind())?;
        Some((at + found, record))
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("executions", &self.executions.len())
            .field("sent", &self.sent.len())
            .finish_non_exhaustive()
    }
}
