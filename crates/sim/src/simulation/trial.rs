//! What is tried in a simulation, how long and under which faults, and how that ended.

use convoy_controllers::cache::Cache;
use convoy_controllers::request::Request;
use convoy_controllers::tenure::LeaseTiming;
use convoy_plan::{Dialect, Step};
use jiff::{SignedDuration, Timestamp};
use smol_str::SmolStr;

use super::EVENTS_MAX;
use super::cluster::{Cluster, ServerKind, WriteRecord};
use super::controller::LoopBehaviour;
use super::faults::Faults;
use super::random::Random;
use crate::scenario::{LinkState, Scenario};

/// A decision of a loop.
#[derive(Clone, Copy, Debug)]
pub struct Decision<'a> {
    /// The number of the loop. Loops with different homes give the same key to different objects.
    pub index: usize,
    pub step: &'a Step,
    pub now: Timestamp,
    /// What the loop knew.
    pub cache: &'a Cache,
}

/// A dialect under test.
pub trait Trial {
    /// The dialects of each control loop; each loop is a process of its own.
    fn loops(&self) -> Vec<Vec<&'static dyn Dialect>>;

    /// The member clusters to which a loop is connected, beside the home cluster.
    fn members(&self, _index: usize) -> Vec<SmolStr> {
        Vec::new()
    }

    /// The connection of a loop to one of its clusters, and when it may change next.
    fn link(
        &self,
        _index: usize,
        _cluster: &str,
        _now: Timestamp,
    ) -> (LinkState, Option<Timestamp>) {
        (LinkState::default(), None)
    }

    /// The cluster that a loop takes for its home.
    fn home(&self, _index: usize) -> SmolStr {
        SmolStr::default()
    }

    /// Whether a loop runs while the world is still being set up.
    fn starts_at_once(&self, _index: usize) -> bool {
        false
    }

    /// The scenario of the machines; no machines, unless it is given.
    fn scenario(&self) -> Scenario {
        Scenario::default()
    }

    /// The scenarios of the machines of member clusters.
    fn member_scenarios(&self) -> Vec<(SmolStr, Scenario)> {
        Vec::new()
    }

    /// The requests that create the initial objects.
    fn begin(&mut self) -> Vec<Request>;

    /// A random user action.
    fn act(&mut self, random: &mut Random, cluster: &mut Cluster) -> Vec<Request>;

    /// The last user action, after which the rollout can finish.
    fn end(&mut self, cluster: &mut Cluster) -> Vec<Request>;

    /// Checks one write. `Err` names the invariant that is violated.
    fn see(&mut self, record: &WriteRecord) -> Result<(), String>;

    /// Whether [`Trial::decided`] is to be called.
    fn observes_decisions(&self) -> bool {
        false
    }

    /// A loop has decided about a rollout; the writes follow.
    fn decided(&mut self, _decision: &Decision<'_>) {}

    /// What others do about a write, each after a delay: controllers that are not under test.
    fn react(
        &mut self,
        _record: &WriteRecord,
        _random: &mut Random,
    ) -> Vec<(SignedDuration, Request)> {
        Vec::new()
    }

    /// Whether a loop makes this write again and again, also when nothing is left to do.
    fn is_routine(&self, _record: &WriteRecord) -> bool {
        false
    }

    /// All loops have seen all writes and have nothing to do.
    fn rest(&mut self, now: Timestamp);

    /// Whether the desired state is reached. `Err` says what is missing.
    fn is_complete(&self) -> Result<(), String>;
}

/// Duration, failures and timing of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunSettings {
    pub server: ServerKind,
    pub faults: Faults,
    /// How long users act and requests fail.
    pub fault_phase: SignedDuration,
    /// The range of the interval between two user actions, in milliseconds.
    pub user_actions_every: (i64, i64),
    /// The range of the lifetime of a loop, in milliseconds; `None`: it is never stopped.
    pub lifetimes: Option<(i64, i64)>,
    /// The timing of the control loops.
    pub behaviour: LoopBehaviour,
    /// The time limit for reaching the desired state afterwards.
    pub settle_timeout: SignedDuration,
    /// A run with more events than this fails.
    pub events_max: u64,
    /// Drop records that every process has seen. A run with failures needs all of them, because
    /// an expired watch lists again.
    pub drops_old_records: bool,
    /// The range of the interval between two failures of a connection, and of how long one lasts,
    /// in milliseconds.
    pub outages: Option<((i64, i64), (i64, i64))>,
    /// Leader election among the loops, which are all alike then; `None`: all of them work.
    pub leadership: Option<Leadership>,
}

/// How long a fault phase is, in milliseconds. Most are short: many worlds meet more than a few
/// long ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct FaultPhases {
    pub(super) short: (i64, i64),
    pub(super) long: (i64, i64),
    /// The share of long ones, in thousandths.
    pub(super) long_ones: u32,
}

impl RunSettings {
    /// A run of a hub and its members in which everything may fail.
    pub(super) fn disturbed(random: &mut Random, phases: FaultPhases) -> Self {
        let faults = Faults::random(random);
        let (low, high) = if random.happens(phases.long_ones) { phases.long } else { phases.short };
        Self {
            server: ServerKind::Light,
            faults,
            fault_phase: random.millis(low, high),
            user_actions_every: (1_000, 15_000),
            lifetimes: random.happens(500).then_some((1_000, 40_000)),
            behaviour: LoopBehaviour {
                reaction_delay: SignedDuration::from_millis(
                    *random.pick(&[0, 20, 300]).unwrap_or(&0),
                ),
                batches_events: random.happens(300),
            },
            settle_timeout: SignedDuration::from_mins(20),
            events_max: EVENTS_MAX,
            drops_old_records: false,
            outages: random.happens(500).then_some(((2_000, 30_000), (500, 60_000))),
            leadership: None,
        }
    }

    /// A run in which nothing fails and nobody interferes, as a rehearsal of any size needs it:
    /// events are taken together, and old records go.
    pub fn undisturbed() -> Self {
        let behaviour =
            LoopBehaviour { reaction_delay: SignedDuration::from_secs(4), batches_events: true };
        Self {
            server: ServerKind::Light,
            faults: Faults::default(),
            fault_phase: SignedDuration::ZERO,
            user_actions_every: (1, 1),
            lifetimes: None,
            behaviour,
            settle_timeout: SignedDuration::from_hours(12),
            events_max: u64::MAX,
            drops_old_records: true,
            outages: None,
            leadership: None,
        }
    }
}

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunSummary {
    pub writes: usize,
    pub events: u64,
    pub took: SignedDuration,
}

/// A violated invariant, and the writes that led to it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("at +{after:?}: {message}\n{history}")]
pub struct Failure {
    pub after: SignedDuration,
    pub message: String,
    /// The last writes.
    pub history: String,
}

/// Leader election among the loops of a trial. Periods are ranges in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Leadership {
    pub timing: LeaseTiming,
    /// The time between two suspensions of a process, and how long they last.
    pub suspends_every: (i64, i64),
    pub suspended_for: (i64, i64),
    /// The time between two interventions in the lease: it is deleted, cleared or stolen.
    pub meddles_every: (i64, i64),
    /// The most that a clock is fast or slow, in thousandths.
    pub skew: i64,
    /// Writes that arrive late, in thousandths.
    pub late: u32,
    /// Whether a process looks at its tenure before it writes. Without it, the invariants fail.
    pub is_fenced: bool,
}

impl Leadership {
    pub fn random(random: &mut Random) -> Self {
        Self {
            timing: LeaseTiming::new(std::time::Duration::from_secs(15)),
            suspends_every: (2_000, 40_000),
            suspended_for: (500, 60_000),
            meddles_every: (10_000, 120_000),
            skew: *random.pick(&[0, 10, 50]).unwrap_or(&0),
            late: *random.pick(&[0, 20, 200]).unwrap_or(&0),
            is_fenced: true,
        }
    }
}
