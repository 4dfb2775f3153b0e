//! Deterministic simulation in virtual time: control loops, an API server, machines and users in
//! one thread. One seed determines the order of all events and all failures.
//!
//! A [`Trial`] defines the control loops, the user actions and the invariants that are checked
//! after every write. The rest is the same for all dialects.

pub mod apps;
pub mod cluster;
mod controller;
pub mod disruptions;
mod elector;
mod ending;
mod environment;
pub mod faults;
pub mod fleets;
mod given;
mod history;
pub mod leading;
mod light;
mod machines;
pub mod ocm;
mod outages;
pub mod placements;
pub mod pools;
pub mod random;
mod real;
pub mod rehearsal;
pub mod replica_sets;
mod server;
pub mod skyhooks;
mod timeline;
pub mod together;
mod trial;

use std::collections::{BTreeMap, BTreeSet};

use convoy_controllers::request::Request;
use jiff::{SignedDuration, Timestamp};
use smol_str::SmolStr;

use self::cluster::{Author, Cluster, WriteRecord};
pub use self::controller::LoopBehaviour;
use self::controller::{Controller, Links, Program};
use self::elector::Elector;
use self::environment::environment;
use self::faults::Faults;
use self::history::{HISTORY, line};
use self::machines::{MachineEvent, Machines};
use self::random::Random;
use self::timeline::Timeline;
pub use self::trial::{Decision, Failure, RunSettings, RunSummary, Trial};
use crate::seed::Seed;

/// The start of simulated time.
const START: Timestamp = Timestamp::constant(1_767_225_600, 0);
/// More events than a small simulation ever needs.
const EVENTS_MAX: u64 = 200_000;

/// A scheduled event.
#[derive(Debug)]
enum Event {
    /// An event of a loop, with the number of its process.
    Loop(usize, u32, controller::ControllerEvent),
    /// An event of the machines of a cluster.
    Machines(usize, MachineEvent),
    CollectGarbage,
    UserAction,
    Stop(usize),
    Start(usize),
    Elector(usize, u32, elector::ElectorEvent),
    Suspend(usize),
    Resume(usize),
    MeddleWithLease,
    /// A controller that is not under test writes.
    Reaction(Request),
    Outage,
    EndOutage(usize, SmolStr),
    /// A connection may change as the trial has it.
    Link(usize, SmolStr),
}

/// A simulation of one trial.
#[derive(Debug)]
pub struct Simulation<T> {
    trial: T,
    /// The start of simulated time.
    start: Timestamp,
    settings: RunSettings,
    faults: Faults,
    random: Random,
    cluster: Cluster,
    timeline: Timeline<Event>,
    loops: Vec<ControllerSlot>,
    /// Of the home cluster, and of member clusters.
    machines: Vec<Machines>,
    /// The number of records that were checked.
    checked: usize,
    is_collecting: bool,
    /// Reactions that are still to come.
    reactions: usize,
    are_faults_on: bool,
    events: u64,
    /// How often the leader changed.
    terms: u64,
    /// The latest leader that wrote.
    last_term: u64,
    /// Processes that ended, with their term: their requests may be on their way.
    former: BTreeMap<(usize, u32), (u64, Controller)>,
    /// Requests that were held up once.
    extended: BTreeSet<(usize, u32, u64)>,
    deposed: leading::Deposed,
}

/// A control loop, and the number of its current process.
#[derive(Debug, Default)]
struct ControllerSlot {
    number: u32,
    process: Option<Controller>,
    /// With leader election, until the process ends.
    elector: Option<Elector>,
    term: u64,
    is_suspended: bool,
    links: Links,
    /// What the process does when it is resumed.
    deferred: Vec<Event>,
}

impl<T: Trial> Simulation<T> {
    pub fn new(seed: Seed, settings: RunSettings, trial: T) -> Self {
        Self::on(Cluster::new(settings.server, seed, START), seed, settings, trial)
    }

    fn on(mut cluster: Cluster, seed: Seed, settings: RunSettings, trial: T) -> Self {
        let loops = trial.loops().iter().map(|_| ControllerSlot::default()).collect();
        let home = (SmolStr::default(), trial.scenario());
        let members = trial.member_scenarios();
        for (member, _) in &members {
            cluster.set_up(member);
        }
        let machines = std::iter::once(home)
            .chain(members)
            .map(|(cluster, scenario)| Machines::new(cluster, scenario))
            .collect();
        Self {
            start: cluster.now(),
            settings,
            faults: settings.faults,
            random: Random::new(seed.child("order", "")),
            cluster,
            timeline: Timeline::default(),
            loops,
            machines,
            checked: 0,
            is_collecting: false,
            reactions: 0,
            are_faults_on: true,
            events: 0,
            terms: 0,
            last_term: 0,
            former: BTreeMap::new(),
            extended: BTreeSet::new(),
            deposed: None,
            trial,
        }
    }

    /// Runs with failures, then without: the desired state must be reached, and after that nothing
    /// is written any more, not even by restarted loops.
    pub fn run(mut self) -> Result<RunSummary, Failure> {
        let summary = self.roll_out()?;
        self.restart()?;
        Ok(RunSummary { events: self.events, ..summary })
    }

    /// Runs with failures, then without, until the desired state is reached.
    pub fn roll_out(&mut self) -> Result<RunSummary, Failure> {
        for request in self.trial.begin() {
            self.must_send(request)?;
        }
        self.wake_machines();
        for index in 0..self.loops.len() {
            let delay = self.random.millis(0, 500);
            self.after(delay, Event::Start(index));
            self.schedule_stop(index);
            self.schedule_suspension(index);
        }
        self.schedule_meddling();
        self.schedule_user_action();
        self.schedule_outage();
        let unrest_ends =
            self.start.checked_add(self.settings.fault_phase).unwrap_or(Timestamp::MAX);
        self.run_until(unrest_ends, |_| false)?;
        self.end_faults()?;
        self.settle("come to rest")?;
        let (writes, events, took) = (self.cluster.written(), self.events, self.elapsed());
        Ok(RunSummary { writes, events, took })
    }

    /// Starts all loops again in the state that is reached: nothing is written any more.
    pub fn restart(&mut self) -> Result<(), Failure> {
        let written = self.cluster.written();
        self.restart_all();
        self.settle("come to rest after a new start")?;
        let mut records = self.cluster.records(written).iter();
        let is_surplus = |record: &&WriteRecord| {
            record.by == Author::Controller && !self.trial.is_routine(record)
        };
        if let Some(record) = records.find(is_surplus) {
            return Err(self.failure(format!("written at rest: {}", line(record, self.start))));
        }
        Ok(())
    }

    fn elapsed(&self) -> SignedDuration {
        self.cluster.now().duration_since(self.start)
    }

    /// Ends failures, user actions and restarts.
    fn end_faults(&mut self) -> Result<(), Failure> {
        (self.are_faults_on, self.faults) = (false, Faults::default());
        for index in 0..self.loops.len() {
            self.resume(index);
            let clusters: Vec<SmolStr> = self.loops[index].links.keys().cloned().collect();
            for cluster in clusters {
                self.set_link(index, cluster, None);
            }
        }
        for request in self.trial.end(&mut self.cluster) {
            self.must_send(request)?;
        }
        self.notify();
        Ok(())
    }

    fn settle(&mut self, what: &str) -> Result<(), Failure> {
        let until =
            self.cluster.now().checked_add(self.settings.settle_timeout).unwrap_or(Timestamp::MAX);
        let done = |world: &mut Self| world.is_quiet() && world.trial.is_complete().is_ok();
        if self.run_until(until, done)? {
            return Ok(());
        }
        let why = self.trial.is_complete().err().unwrap_or_default();
        let loops = if self.is_quiet() { "the loops rest" } else { "the loops are busy" };
        Err(self.failure(format!("does not {what}, {loops}: {why}")))
    }

    /// Restarts all loops with empty caches.
    fn restart_all(&mut self) {
        for index in 0..self.loops.len() {
            self.stop_controller(index);
            self.start_controller(index);
        }
    }

    /// Handles events until an instant, or until `done`; returns whether it was `done`.
    fn run_until(
        &mut self,
        until: Timestamp,
        done: impl Fn(&mut Self) -> bool,
    ) -> Result<bool, Failure> {
        while self.timeline.next_at().is_some_and(|at| at <= until) {
            let Some((at, event)) = self.timeline.next() else { break };
            self.cluster.set_clock(at.max(self.cluster.now()));
            self.events += 1;
            if self.events > self.settings.events_max {
                return Err(self.failure("does not end".to_owned()));
            }
            self.handle(event);
            self.check_writes()?;
            if self.is_quiet() {
                self.trial.rest(self.cluster.now());
            }
            if done(self) {
                return Ok(true);
            }
        }
        self.cluster.set_clock(until.max(self.cluster.now()));
        Ok(false)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Loop(index, number, event) => self.handle_loop(index, number, event),
            Event::Elector(index, number, event) => self.handle_elector(index, number, event),
            Event::Machines(index, event) => {
                let mut environment =
                    environment(&mut self.cluster, &mut self.random, &self.faults);
                let scheduled = self.machines[index].handle(event, &mut environment);
                self.schedule_machines(index, scheduled);
            }
            Event::CollectGarbage => {
                self.is_collecting = false;
                self.cluster.collect_garbage();
            }
            Event::UserAction if self.are_faults_on => {
                for request in self.trial.act(&mut self.random, &mut self.cluster) {
                    // Users may act on objects that no longer exist.
                    self.cluster.send(&request, Author::Person);
                }
                self.schedule_user_action();
            }
            Event::Stop(index) if self.are_faults_on => {
                self.stop_controller(index);
                let delay = self.random.millis(0, 5_000);
                self.after(delay, Event::Start(index));
            }
            Event::Start(index) => self.start_controller(index),
            Event::Suspend(index) if self.are_faults_on => self.suspend(index),
            Event::Resume(index) => self.resume(index),
            Event::MeddleWithLease if self.are_faults_on => self.meddle(),
            Event::Reaction(request) => {
                self.reactions -= 1;
                self.cluster.send(&request, Author::Machines);
            }
            Event::Outage if self.are_faults_on => self.fail_connection(),
            Event::EndOutage(index, cluster) => self.set_link(index, cluster, None),
            Event::Link(index, cluster) => self.follow_link(index, cluster),
            Event::Outage
            | Event::UserAction
            | Event::Stop(_)
            | Event::Suspend(_)
            | Event::MeddleWithLease => {}
        }
    }

    /// Checks the new writes, and notifies all processes.
    fn check_writes(&mut self) -> Result<(), Failure> {
        self.tell_decisions();
        if let Some(message) = self.deposed.take() {
            return Err(self.failure(message));
        }
        let mut reactions = Vec::new();
        for record in self.cluster.records(self.checked) {
            if let Err(message) = self.trial.see(record) {
                return Err(self.failure(message));
            }
            reactions.extend(self.trial.react(record, &mut self.random));
        }
        self.reactions += reactions.len();
        for (delay, request) in reactions {
            self.after(delay, Event::Reaction(request));
        }
        if self.checked < self.cluster.written() {
            self.notify();
            self.forget();
        }
        Ok(())
    }

    /// Drops records that no process needs and no failure message shows.
    fn forget(&mut self) {
        let needs = |slot: &ControllerSlot| slot.process.as_ref().and_then(Controller::needs_from);
        let from = self.loops.iter().map(needs).min().flatten();
        if let Some(from) = from.filter(|_| self.settings.drops_old_records) {
            let from = self
                .machines
                .iter()
                .map(Machines::needs_from)
                .fold(from.min(self.checked), usize::min);
            self.cluster.forget(from.saturating_sub(HISTORY));
        }
    }

    fn notify(&mut self) {
        self.checked = self.cluster.written();
        for index in 0..self.loops.len() {
            let mut environment = environment(&mut self.cluster, &mut self.random, &self.faults);
            if let Some(process) = &mut self.loops[index].process {
                let scheduled = process.notify(&mut environment);
                self.schedule_loop(index, scheduled);
            }
        }
        for index in 0..self.machines.len() {
            let mut environment = environment(&mut self.cluster, &mut self.random, &self.faults);
            let scheduled = self.machines[index].notify(&mut environment);
            self.schedule_machines(index, scheduled);
        }
        if !self.is_collecting {
            self.is_collecting = true;
            let delay = self.random.millis(0, 20);
            self.after(delay, Event::CollectGarbage);
        }
    }

    fn is_quiet(&self) -> bool {
        // What the garbage collector removes, a loop may wait for.
        if self.reactions > 0 || self.is_collecting {
            return false;
        }
        let quiet = |slot: &ControllerSlot| {
            slot.process.as_ref().is_some_and(|process| process.is_quiet(&self.cluster))
        };
        if self.settings.leadership.is_none() {
            return self.loops.iter().all(quiet);
        }
        let leads = |index: &usize| self.loops[*index].term == self.terms && self.may_write(*index);
        (0..self.loops.len()).find(leads).is_some_and(|leader| quiet(&self.loops[leader]))
    }

    fn start_controller(&mut self, index: usize) {
        let slot = &mut self.loops[index];
        if slot.process.is_some() || slot.elector.is_some() {
            return;
        }
        if let Some(leadership) = self.settings.leadership {
            self.start_elector(index, leadership);
        } else {
            slot.number += 1;
            self.launch(index);
        }
        self.schedule_stop(index);
    }

    /// Runs the control loop.
    fn launch(&mut self, index: usize) {
        let mut environment = environment(&mut self.cluster, &mut self.random, &self.faults);
        let (dialects, members) =
            (self.trial.loops().swap_remove(index), self.trial.members(index));
        let (behaviour, keeps_steps) = (self.settings.behaviour, self.trial.observes_decisions());
        let home = self.trial.home(index);
        let program = Program { dialects, home, members, behaviour, keeps_steps };
        let links = self.loops[index].links.clone();
        let (process, scheduled) = Controller::start(program, links, &mut environment);
        self.loops[index].process = Some(process);
        self.schedule_loop(index, scheduled);
    }

    fn stop_controller(&mut self, index: usize) {
        if self.settings.leadership.is_some() {
            return self.depose(index);
        }
        let mut environment = environment(&mut self.cluster, &mut self.random, &self.faults);
        if let Some(process) = self.loops[index].process.take() {
            process.kill(&mut environment);
        }
    }

    fn schedule_loop(&mut self, index: usize, scheduled: controller::Scheduled) {
        let number = self.loops[index].number;
        for (delay, event) in scheduled {
            self.after(delay, Event::Loop(index, number, event));
        }
    }

    fn wake_machines(&mut self) {
        for index in 0..self.machines.len() {
            self.after(SignedDuration::ZERO, Event::Machines(index, MachineEvent::Wake));
        }
    }

    fn schedule_machines(&mut self, index: usize, scheduled: machines::Scheduled) {
        for (delay, event) in scheduled {
            self.after(delay, Event::Machines(index, event));
        }
    }

    fn schedule_user_action(&mut self) {
        let (low, high) = self.settings.user_actions_every;
        let delay = self.random.millis(low, high);
        self.after(delay, Event::UserAction);
    }

    fn schedule_stop(&mut self, index: usize) {
        if let Some((low, high)) = self.settings.lifetimes {
            let delay = self.random.millis(low, high);
            self.after(delay, Event::Stop(index));
        }
    }

    fn after(&mut self, delay: SignedDuration, event: Event) {
        let at = self.cluster.now().checked_add(delay).unwrap_or(Timestamp::MAX);
        self.timeline.add(at, self.random.number(), event);
    }

    /// Sends a user request that must succeed.
    fn must_send(&mut self, request: Request) -> Result<(), Failure> {
        let path = request.path.clone();
        let answer = self.cluster.send(&request, Author::Person);
        if answer.is_success() || answer.code == 404 {
            return self.check_writes();
        }
        Err(self.failure(format!("{path}: {}", answer.message())))
    }
}
