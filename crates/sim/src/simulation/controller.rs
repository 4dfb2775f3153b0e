//! A simulated process that runs the control loop: its reconciler, its reflectors and its requests
//! in flight. Every exchange takes time, may fail, and is lost when the process stops.

mod streams;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use convoy_controllers::Settings;
use convoy_controllers::cache::{Cache, CacheEvent};
use convoy_controllers::execution::{PendingRequest, RequestId, RequestResult, StepExecution};
use convoy_controllers::reconciler::{DecisionObserver, Reconciler, Reconciliation};
use convoy_controllers::reflector::Reflector;
use convoy_controllers::request::Request;
use convoy_controllers::response::Response;
use convoy_controllers::rollout::Rollout;
use convoy_controllers::watches::WatchChange;
use convoy_plan::{Denial, Dialect, Step};
use jiff::{SignedDuration, Timestamp};
use smol_str::SmolStr;

use super::cluster::{Author, Cluster, http_parts, path_in};
use super::environment::Environment;
use super::faults::RequestFault;
use crate::scenario::LinkState;

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
    /// It finds out which kinds a cluster serves.
    Discover(SmolStr),
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

/// The connections that are not as they should be.
pub(crate) type Links = BTreeMap<SmolStr, LinkState>;

/// What a process runs.
pub(crate) struct Program {
    pub(crate) dialects: Vec<&'static dyn Dialect>,
    /// The cluster that it takes for its home.
    pub(crate) home: SmolStr,
    /// The member clusters to which it is connected.
    pub(crate) members: Vec<SmolStr>,
    pub(crate) behaviour: LoopBehaviour,
    /// Whether its decisions are kept.
    pub(crate) keeps_steps: bool,
}

/// The time between two attempts to find out what a cluster serves.
const DISCOVERY_RETRY: SignedDuration = SignedDuration::from_secs(5);

/// One process, from start to stop.
pub(crate) struct Controller {
    reconciler: Reconciler,
    /// The decisions since somebody asked, where they are kept.
    steps: Arc<Mutex<Vec<Step>>>,
    home: SmolStr,
    streams: Vec<Stream>,
    executions: BTreeMap<u64, (Rollout, StepExecution)>,
    /// Requests in flight.
    sent: BTreeMap<u64, Sent>,
    numbers: u64,
    alarm: Option<Timestamp>,
    behaviour: LoopBehaviour,
    /// A reconciliation is scheduled.
    is_reacting: bool,
    /// As many steps were in flight as may be, and more rollouts were due.
    is_behind: bool,
    links: Links,
    /// The clusters of which it does not know yet which kinds they serve.
    discovering: BTreeSet<SmolStr>,
}

struct Stream {
    reflector: Reflector,
    /// The cluster of the world that it watches.
    cluster: SmolStr,
    /// Nobody needs it any more.
    is_stopped: bool,
    /// The position of the watch in the records of the cluster.
    at: Option<usize>,
    is_scheduled: bool,
}

#[derive(Clone, Debug)]
struct Sent {
    execution: u64,
    id: RequestId,
    cluster: SmolStr,
    request: Request,
    has_arrived: bool,
}

impl Controller {
    pub(crate) fn start(
        program: Program,
        links: Links,
        environment: &mut Environment<'_>,
    ) -> (Self, Scheduled) {
        let Program { dialects, home, members, behaviour, keeps_steps } = program;
        let steps = Arc::<Mutex<Vec<Step>>>::default();
        let kept = Arc::clone(&steps);
        let keep: DecisionObserver = Box::new(move |step, _, _| {
            kept.lock().unwrap_or_else(PoisonError::into_inner).push(step.clone());
        });
        let observer = keeps_steps.then_some(keep);
        let settings = Settings { observer, ..Settings::new(dialects) };
        let mut controller = Self {
            reconciler: Reconciler::new(settings),
            steps,
            home,
            streams: Vec::new(),
            executions: BTreeMap::new(),
            sent: BTreeMap::new(),
            numbers: 0,
            alarm: None,
            behaviour,
            is_reacting: false,
            is_behind: false,
            links,
            discovering: BTreeSet::new(),
        };
        for cluster in members {
            controller.reconciler.handle(CacheEvent::Joined { cluster });
        }
        let mut scheduled = Scheduled::new();
        controller.change_watches(environment, &mut scheduled);
        (controller, scheduled)
    }

    /// A connection fails, becomes slow or is as it should be.
    pub(crate) fn set_link(&mut self, cluster: &SmolStr, state: Option<LinkState>) {
        match state {
            Some(state) => _ = self.links.insert(cluster.clone(), state),
            None => _ = self.links.remove(cluster),
        }
    }

    fn is_down(&self, cluster: &str) -> bool {
        self.links.get(cluster).is_some_and(|link| link.is_silent)
    }

    /// What a slow connection adds to an exchange.
    fn lag(&self, cluster: &str, environment: &mut Environment<'_>) -> SignedDuration {
        let millis = |length: SignedDuration| i64::try_from(length.as_millis()).unwrap_or(0);
        match self.links.get(cluster).and_then(|link| link.delay) {
            Some(delay) => {
                environment.random.millis(millis(delay.shortest()), millis(delay.longest()))
            }
            None => SignedDuration::ZERO,
        }
    }

    /// The cluster of the world that it calls so.
    fn real<'n>(&'n self, cluster: &'n SmolStr) -> &'n SmolStr {
        if cluster.is_empty() { &self.home } else { cluster }
    }

    /// Begins and ends the watches that rollouts need now.
    fn change_watches(&mut self, environment: &mut Environment<'_>, scheduled: &mut Scheduled) {
        for change in self.reconciler.take_watch_changes() {
            let delay = environment.random.millis(0, 50);
            match change {
                WatchChange::Start { collection, .. } => {
                    let projections = Arc::clone(self.reconciler.projections());
                    let reflector = Reflector::new(collection, projections);
                    let cluster = self.real(&reflector.collection().cluster).clone();
                    let (at, is_stopped, is_scheduled) = (None, false, false);
                    let stream = Stream { reflector, cluster, is_stopped, at, is_scheduled };
                    self.streams.push(stream);
                    scheduled.push((delay, ControllerEvent::Follow(self.streams.len() - 1)));
                }
                WatchChange::Stop { collection } => {
                    let is_it = |stream: &&mut Stream| {
                        !stream.is_stopped && *stream.reflector.collection() == collection
                    };
                    if let Some(stream) = self.streams.iter_mut().find(is_it) {
                        stream.is_stopped = true;
                    }
                }
                WatchChange::StartDiscovery { cluster } => {
                    self.discovering.insert(cluster.clone());
                    scheduled.push((delay, ControllerEvent::Discover(cluster)));
                }
                WatchChange::StopDiscovery { cluster } => _ = self.discovering.remove(&cluster),
            }
        }
    }

    fn discover(
        &mut self,
        cluster: SmolStr,
        environment: &mut Environment<'_>,
        scheduled: &mut Scheduled,
    ) {
        if !self.discovering.contains(&cluster) {
            return;
        }
        let fault = environment.faults.of_read(environment.random);
        let kinds = if self.is_down(&cluster) || fault != RequestFault::None {
            scheduled.push((DISCOVERY_RETRY, ControllerEvent::Discover(cluster.clone())));
            Err("no response".to_owned())
        } else {
            self.discovering.remove(&cluster);
            Ok(environment.cluster.namespaced_kinds(self.real(&cluster)))
        };
        self.reconciler.handle(CacheEvent::Served { cluster, kinds });
    }

    /// Whether nothing is due, in flight or undelivered.
    pub(crate) fn is_quiet(&self, cluster: &Cluster) -> bool {
        let rests = self.executions.is_empty()
            && self.sent.is_empty()
            && self.discovering.is_empty()
            && !self.reconciler.has_failures()
            && self.reconciler.idle_for(cluster.now()) != Some(Duration::ZERO);
        // A process that has just started watches nothing yet.
        rests
            && !self.streams.is_empty()
            && self
                .streams
                .iter()
                .filter(|stream| !stream.is_stopped)
                .all(|stream| stream.at.is_some_and(|at| stream.next(cluster, at).is_none()))
    }

    /// The decisions since the last call, if they are kept.
    pub(crate) fn take_steps(&mut self) -> Vec<Step> {
        std::mem::take(&mut *self.steps.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What it knows.
    pub(crate) fn cache(&self) -> &Cache {
        self.reconciler.cache()
    }

    /// Whether it waits for responses.
    pub(crate) fn is_busy(&self) -> bool {
        !self.sent.is_empty()
    }

    /// The index before which it needs no records; `None` if a watch has no position.
    pub(crate) fn needs_from(&self) -> Option<usize> {
        let streams = self.streams.iter().filter(|stream| !stream.is_stopped);
        let places = streams.map(|stream| stream.at);
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
            ControllerEvent::Discover(cluster) => {
                self.discover(cluster, environment, &mut scheduled);
            }
        }
        self.react(environment, &mut scheduled, is_time);
        self.change_watches(environment, &mut scheduled);
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

    /// Reconciles what is due, at once or after the reaction delay. That is over for rollouts that
    /// only wait for steps in flight to end, as it is in a control loop that is busy.
    fn react(
        &mut self,
        environment: &mut Environment<'_>,
        scheduled: &mut Scheduled,
        is_time: bool,
    ) {
        let now = environment.cluster.now();
        if self.behaviour.reaction_delay.is_zero() || is_time || self.is_behind {
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
        self.is_behind = self.reconciler.is_behind();
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
            let cluster = execution.cluster(id).clone();
            let real = self.real(&cluster);
            let resource = environment.cluster.resource(&execution.kind(id).in_cluster(real));
            let mut request = match &resource {
                Some(known) => execution.request(id, known),
                None => Request::get(""),
            };
            request.path = path_in(real, &request.path);
            let unknown = resource.is_none().then(|| Denial::of_unknown_kind(execution.kind(id)));
            self.numbers += 1;
            let lag = self.lag(&cluster, environment);
            let has_arrived = unknown.is_some();
            let sent = Sent { execution: number, id, cluster, request, has_arrived };
            self.sent.insert(self.numbers, sent);
            let is_over = matches!(id, RequestId::Write(_)) && !environment.may_write;
            let unsent = is_over.then(|| RequestResult::Unsent("the tenure is over".to_owned()));
            if let Some(result) = unknown.map(RequestResult::Unsupported).or(unsent) {
                let event = ControllerEvent::Return(self.numbers, result);
                scheduled.push((SignedDuration::ZERO, event));
                continue;
            }
            let transit = match id {
                RequestId::Write(_) => environment.transit(),
                RequestId::Read(_) => environment.random.millis(0, 10),
            };
            let delay = SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX);
            let delay = delay.saturating_add(transit).saturating_add(lag);
            scheduled.push((delay, ControllerEvent::Arrive(self.numbers)));
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
        let link = self.links.get(&sent.cluster);
        if link.is_some_and(|link| link.is_silent) {
            // It arrives and its response is lost, or it never arrives.
            if environment.random.happens(200) {
                environment.cluster.send(&sent.request, Author::Controller);
            }
            let result = RequestResult::Lost("no response".to_owned());
            let transit = environment.random.millis(0, 10_000);
            return scheduled.push((transit, ControllerEvent::Return(number, result)));
        }
        let Request { method, path, .. } = &sent.request;
        let fault = match sent.id {
            _ if link.is_some_and(|link| link.forbids(method, path).is_some()) => {
                RequestFault::Refused(403)
            }
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
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("executions", &self.executions.len())
            .field("sent", &self.sent.len())
            .finish_non_exhaustive()
    }
}
