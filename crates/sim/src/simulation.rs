//! Rollouts in virtual time: the control loop itself, an API server, machines and people in one
//! thread, where one seed decides the order of everything and everything that goes wrong.
//!
//! What is tried is a [`Trial`]: which loops run, what people do, and what must hold after every
//! write. The rest is the same for all dialects.

mod agenda;
pub mod apps;
pub mod chance;
pub mod cluster;
mod controller;
pub mod faults;
mod light;
mod machines;
mod real;
pub mod rehearsal;
pub mod skyhooks;

use convoy_controllers::request::Request;
use convoy_plan::Dialect;
use jiff::{SignedDuration, Timestamp};

use self::agenda::Agenda;
use self::chance::Chance;
use self::cluster::{Author, Cluster, Fact, Home};
pub use self::controller::Manner;
use self::controller::{Controller, Scene};
use self::faults::Faults;
use self::machines::Machines;
use crate::scenario::Scenario;
use crate::seed::Seed;

/// A dialect under trial.
pub trait Trial {
    /// The loops that run, each a process of its own.
    fn loops(&self) -> Vec<Vec<&'static dyn Dialect>>;

    /// The machines.
    fn scenario(&self) -> Scenario;

    /// What is there at the beginning.
    fn begin(&mut self) -> Vec<Request>;

    /// Something that somebody does.
    fn act(&mut self, chance: &mut Chance, cluster: &mut Cluster) -> Vec<Request>;

    /// What people do last, so that everything can come to rest.
    fn end(&mut self, cluster: &mut Cluster) -> Vec<Request>;

    /// A write was carried out. Err: what must hold does not.
    fn see(&mut self, fact: &Fact) -> Result<(), String>;

    /// Every loop has seen everything and has nothing to do.
    fn rest(&mut self, now: Timestamp);

    /// Whether everything is where it should be in the end. Err: what is not.
    fn is_complete(&self) -> Result<(), String>;
}

/// How long and how badly.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub home: Home,
    pub faults: Faults,
    /// How long people and faults are at work.
    pub unrest: SignedDuration,
    /// The pauses between two deeds of people, in milliseconds.
    pub deeds_every: (i64, i64),
    /// The lives of a loop, in milliseconds; none: it never dies.
    pub lives: Option<(i64, i64)>,
    /// How loops go about their work.
    pub manner: Manner,
    /// How long it may take to come to rest afterwards.
    pub patience: SignedDuration,
    /// A run in which more happens than this does not end.
    pub events_max: u64,
    /// Facts are forgotten once everybody knows them, which a world with faults cannot have.
    pub forgets: bool,
}

/// What a run came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub writes: usize,
    pub events: u64,
    pub took: SignedDuration,
}

/// What did not hold, and what led there.
#[derive(Clone, Debug, thiserror::Error)]
#[error("at +{after:?}: {message}\n{history}")]
pub struct Failure {
    pub after: SignedDuration,
    pub message: String,
    /// The last writes.
    pub history: String,
}

/// When simulated worlds begin.
const START: Timestamp = Timestamp::constant(1_767_225_600, 0);
/// Writes shown with a failure.
const SHOWN: usize = 40;
/// More than small worlds ever need.
const EVENTS_MAX: u64 = 200_000;

/// What happens next.
#[derive(Debug)]
enum Event {
    /// To a loop, in one of its lives.
    Loop(usize, u32, controller::Moment),
    Machines(machines::Moment),
    /// The server does its chores.
    Tend,
    /// Somebody does something.
    Deed,
    Death(usize),
    Birth(usize),
}

/// A world under trial.
#[derive(Debug)]
pub struct Simulation<T> {
    trial: T,
    plan: Plan,
    faults: Faults,
    chance: Chance,
    cluster: Cluster,
    agenda: Agenda<Event>,
    loops: Vec<Life>,
    machines: Machines,
    /// Facts that everybody was told to look for.
    stirred: usize,
    is_tending: bool,
    is_unrest: bool,
    events: u64,
}

/// A loop, and which of its lives it is in.
#[derive(Debug)]
struct Life {
    number: u32,
    process: Option<Controller>,
}

impl<T: Trial> Simulation<T> {
    pub fn new(seed: Seed, plan: Plan, trial: T) -> Self {
        let loops = trial.loops().iter().map(|_| Life { number: 0, process: None }).collect();
        let machines = Machines::new(trial.scenario());
        Self {
            plan,
            faults: plan.faults,
            chance: Chance::new(seed.child("order", "")),
            cluster: Cluster::new(plan.home, seed, START),
            agenda: Agenda::default(),
            loops,
            machines,
            stirred: 0,
            is_tending: false,
            is_unrest: true,
            events: 0,
            trial,
        }
    }

    /// Unrest, then rest: everything must come to where it should be, and then nothing more is
    /// written, not even by loops that begin anew.
    pub fn run(mut self) -> Result<Outcome, Failure> {
        for request in self.trial.begin() {
            self.demand(request)?;
        }
        self.after(SignedDuration::ZERO, Event::Machines(machines::Moment::Wake));
        for index in 0..self.loops.len() {
            let delay = self.chance.millis(0, 500);
            self.after(delay, Event::Birth(index));
            self.plan_death(index);
        }
        self.plan_deed();
        let unrest_ends = START.checked_add(self.plan.unrest).unwrap_or(Timestamp::MAX);
        self.run_until(unrest_ends, |_| false)?;
        self.calm()?;
        self.settle("come to rest")?;
        let took = self.elapsed();
        let written = self.cluster.written();
        self.begin_anew();
        self.settle("come to rest after a new start")?;
        let mut facts = self.cluster.facts(written).iter();
        if let Some(fact) = facts.find(|fact| fact.by == Author::Controller) {
            return Err(self.failure(format!("written at rest: {}", line(fact))));
        }
        Ok(Outcome { writes: written, events: self.events, took })
    }

    fn elapsed(&self) -> SignedDuration {
        self.cluster.now().duration_since(START)
    }

    /// Ends faults and deeds, and lets those live on who are alive.
    fn calm(&mut self) -> Result<(), Failure> {
        (self.is_unrest, self.faults) = (false, Faults::default());
        for request in self.trial.end(&mut self.cluster) {
            self.demand(request)?;
        }
        self.stir();
        Ok(())
    }

    fn settle(&mut self, what: &str) -> Result<(), Failure> {
        let until = self.cluster.now().checked_add(self.plan.patience).unwrap_or(Timestamp::MAX);
        let done = |world: &mut Self| world.is_quiet() && world.trial.is_complete().is_ok();
        if self.run_until(until, done)? {
            return Ok(());
        }
        let why = self.trial.is_complete().err().unwrap_or_default();
        let loops = if self.is_quiet() { "the loops rest" } else { "the loops are busy" };
        Err(self.failure(format!("does not {what}, {loops}: {why}")))
    }

    /// All loops die and begin with nothing.
    fn begin_anew(&mut self) {
        for index in 0..self.loops.len() {
            self.die(index);
            self.bear(index);
        }
    }

    /// Lets things happen until an instant, or until `done`; which of the two.
    fn run_until(
        &mut self,
        until: Timestamp,
        done: impl Fn(&mut Self) -> bool,
    ) -> Result<bool, Failure> {
        while self.agenda.next_at().is_some_and(|at| at <= until) {
            let Some((at, event)) = self.agenda.next() else { break };
            self.cluster.set_clock(at.max(self.cluster.now()));
            self.events += 1;
            if self.events > self.plan.events_max {
                return Err(self.failure("does not end".to_owned()));
            }
            self.happen(event);
            self.look()?;
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

    fn happen(&mut self, event: Event) {
        match event {
            Event::Loop(index, number, moment) => {
                let life = &mut self.loops[index];
                let Some(process) = life.process.as_mut().filter(|_| life.number == number) else {
                    return;
                };
                let mut scene = scene(&mut self.cluster, &mut self.chance, &self.faults);
                let later = process.happen(moment, &mut scene);
                self.plan_loop(index, later);
            }
            Event::Machines(moment) => {
                let mut scene = scene(&mut self.cluster, &mut self.chance, &self.faults);
                let later = self.machines.happen(moment, &mut scene);
                self.plan_machines(later);
            }
            Event::Tend => {
                self.is_tending = false;
                self.cluster.tend();
            }
            Event::Deed if self.is_unrest => {
                for request in self.trial.act(&mut self.chance, &mut self.cluster) {
                    // What is not there any more cannot be touched: people live with that.
                    self.cluster.send(&request, Author::Person);
                }
                self.plan_deed();
            }
            Event::Death(index) if self.is_unrest => {
                self.die(index);
                let delay = self.chance.millis(0, 5_000);
                self.after(delay, Event::Birth(index));
            }
            Event::Birth(index) => self.bear(index),
            Event::Deed | Event::Death(_) => {}
        }
    }

    /// Looks at everything that was written, and lets everybody hear of it.
    fn look(&mut self) -> Result<(), Failure> {
        for fact in self.cluster.facts(self.stirred) {
            if let Err(message) = self.trial.see(fact) {
                return Err(self.failure(message));
            }
        }
        if self.stirred < self.cluster.written() {
            self.stir();
            self.forget();
        }
        Ok(())
    }

    /// Lets go of facts that nobody needs any more, and nobody is shown.
    fn forget(&mut self) {
        let needs = |life: &Life| life.process.as_ref().and_then(Controller::needs_from);
        let from = self.loops.iter().map(needs).min().flatten();
        if let Some(from) = from.filter(|_| self.plan.forgets) {
            let from = from.min(self.machines.needs_from()).min(self.stirred);
            self.cluster.forget(from.saturating_sub(SHOWN));
        }
    }

    fn stir(&mut self) {
        self.stirred = self.cluster.written();
        for index in 0..self.loops.len() {
            let mut scene = scene(&mut self.cluster, &mut self.chance, &self.faults);
            if let Some(process) = &mut self.loops[index].process {
                let later = process.stir(&mut scene);
                self.plan_loop(index, later);
            }
        }
        let mut scene = scene(&mut self.cluster, &mut self.chance, &self.faults);
        let later = self.machines.stir(&mut scene);
        self.plan_machines(later);
        if !self.is_tending {
            self.is_tending = true;
            let delay = self.chance.millis(0, 20);
            self.after(delay, Event::Tend);
        }
    }

    fn is_quiet(&self) -> bool {
        let quiet = |life: &Life| {
            life.process.as_ref().is_some_and(|process| process.is_quiet(&self.cluster))
        };
        self.loops.iter().all(quiet)
    }

    fn bear(&mut self, index: usize) {
        if self.loops[index].process.is_some() {
            return;
        }
        let mut scene = scene(&mut self.cluster, &mut self.chance, &self.faults);
        let dialects = &self.trial.loops()[index];
        let (process, later) = Controller::start(dialects, self.plan.manner, &mut scene);
        let life = &mut self.loops[index];
        life.number += 1;
        life.process = Some(process);
        self.plan_loop(index, later);
        self.plan_death(index);
    }

    fn die(&mut self, index: usize) {
        let mut scene = scene(&mut self.cluster, &mut self.chance, &self.faults);
        if let Some(process) = self.loops[index].process.take() {
            process.die(&mut scene);
        }
    }

    fn plan_loop(&mut self, index: usize, later: controller::Later) {
        let number = self.loops[index].number;
        for (delay, moment) in later {
            self.after(delay, Event::Loop(index, number, moment));
        }
    }

    fn plan_machines(&mut self, later: machines::Later) {
        for (delay, moment) in later {
            self.after(delay, Event::Machines(moment));
        }
    }

    fn plan_deed(&mut self) {
        let (low, high) = self.plan.deeds_every;
        let delay = self.chance.millis(low, high);
        self.after(delay, Event::Deed);
    }

    fn plan_death(&mut self, index: usize) {
        if let Some((low, high)) = self.plan.lives {
            let delay = self.chance.millis(low, high);
            self.after(delay, Event::Death(index));
        }
    }

    fn after(&mut self, delay: SignedDuration, event: Event) {
        let at = self.cluster.now().checked_add(delay).unwrap_or(Timestamp::MAX);
        self.agenda.add(at, self.chance.number(), event);
    }

    /// Sends something of a person that must not be refused.
    fn demand(&mut self, request: Request) -> Result<(), Failure> {
        let path = request.path.clone();
        let answer = self.cluster.send(&request, Author::Person);
        if answer.is_success() || answer.code == 404 {
            return self.look();
        }
        Err(self.failure(format!("{path}: {}", answer.message())))
    }

    fn failure(&self, message: String) -> Failure {
        let last = self.cluster.facts(self.cluster.written().saturating_sub(SHOWN));
        let lines: Vec<String> = last.iter().map(line).collect();
        Failure { after: self.elapsed(), message, history: lines.join("\n") }
    }
}

fn scene<'s>(cluster: &'s mut Cluster, chance: &'s mut Chance, faults: &'s Faults) -> Scene<'s> {
    Scene { cluster, chance, faults }
}

/// A write, for people.
fn line(fact: &Fact) -> String {
    let object = &fact.object;
    let after = fact.at.duration_since(START);
    let what = apps::summary(object);
    let (change, by, revision) = (fact.change, fact.by, fact.revision);
    format!("+{after:?} #{revision} {by:?} {change:?} {}{what}", object.key())
}
