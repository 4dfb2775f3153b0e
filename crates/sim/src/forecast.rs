//! Forecasts: what becomes of the rollouts among given objects, by the real controllers in virtual
//! time. The objects of a cluster, or manifests, are the initial state; the machines are simulated.
//!
//! A [`Premise`] is what a forecast starts from, a [`Course`] what happened under one seed.

mod controllers;
mod course;
mod implied;
mod members;
mod objects;
mod observer;
mod outlook;
mod placed;
mod pods;
mod readiness;
mod review;
mod scope;

use std::collections::BTreeSet;

use convoy_api::{Object, ObjectKey};
use convoy_plan::{Dialect, World};
use jiff::{SignedDuration, Timestamp};
use smol_str::SmolStr;

pub use controllers::recorded_kinds;
pub use course::{Course, Ending, Entry, GroupPeak, Happening, RolloutCourse, Sample};
pub use outlook::{Outlook, Range};

use self::controllers::Home;
use self::members::Member;
use self::observer::Observer;
use crate::scenario::{Latency, Scenario};
use crate::seed::Seed;
use crate::simulation::{LoopBehaviour, RunSettings, Simulation};

/// Nodes that are simulated where neither the objects nor the scenario have any.
const NODES: u32 = 10;
/// Worlds of more nodes take events together, as a busy controller does, to be done sooner.
const LARGE: usize = 2_000;
/// The machines run for so long before the controllers start: by then nodes have registered, and
/// pods that are bound to them run.
const LEAD: SignedDuration = SignedDuration::from_mins(1);
/// Member clusters run for so long before their hub starts: by then what was placed on them runs.
const MEMBER_LEAD: SignedDuration = SignedDuration::from_mins(10);
/// The longest forecast.
const LONGEST: SignedDuration = SignedDuration::from_hours(24 * LONGEST_DAYS);
const LONGEST_DAYS: i64 = 90;
/// The pause between renewals of leases while nothing can happen to nodes: the first ends after a
/// tenth of it at the earliest, so that no forecast sees one. Ten thousand nodes that renew every
/// hour would write more in three days than a rollout does.
const CALM_HEARTBEAT: Latency = {
    let millis = 10 * LONGEST_DAYS * 24 * 3_600_000;
    Latency::from_millis(millis, millis)
};

/// Why there is no forecast.
#[derive(Debug, thiserror::Error)]
pub enum ForecastError {
    #[error(
        "no rollouts among {objects} objects; a simulation needs a Deployment, DaemonSet, \
         StatefulSet, Skyhook, NodePool, or a placement of KubeFleet or Open Cluster Management"
    )]
    NoRollouts { objects: usize },
    #[error("the API server would refuse {object}: {message}")]
    Refused { object: String, message: String },
    #[error("the simulation failed")]
    Failed(#[from] Box<crate::simulation::Failure>),
}

/// When a forecast ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Once every rollout is done, or will never be.
    Done,
    After(SignedDuration),
}

/// The initial state: objects, the controllers for them, and the machines.
#[derive(Clone)]
pub struct Premise {
    objects: Vec<Object>,
    dialects: Vec<&'static dyn Dialect>,
    rollouts: Vec<ObjectKey>,
    scenario: Scenario,
    members: Vec<Member>,
    start: Timestamp,
    /// How many nodes there are, in the home cluster and in its members, and whether they were
    /// made up.
    pub nodes: usize,
    pub has_invented_nodes: bool,
    /// Whether the member clusters were made up.
    pub has_invented_members: bool,
    /// Pods that ReplicaSets have by their status, and that were not among the objects.
    pub invented_pods: usize,
}

impl Premise {
    /// The objects of `given`, after those of `applied` were applied to them.
    pub fn new(
        given: &World,
        applied: &World,
        mut scenario: Scenario,
        start: Timestamp,
    ) -> Result<Self, ForecastError> {
        let home = controllers::of(given, applied)?;
        let invented = members::invented(given, applied, &scenario, start);
        let has_invented_members = !invented.is_empty();
        let definition = members::set_definition(given, applied);
        let mut given = given.clone();
        for object in invented.into_iter().chain(definition) {
            given.insert(object);
        }
        for request in implied::requests_to_agents(&given, applied) {
            given.insert(request);
        }
        let mut objects = objects::prepared(&given, applied, &home, start)?;
        let pods = pods::missing(&objects, start)?;
        let invented_pods = pods.len();
        objects.extend(pods);
        let members = members::of(&objects, &scenario);
        objects.extend(implied::definitions_of_members(&objects));
        if scenario.node_events.is_empty() {
            scenario.heartbeat = CALM_HEARTBEAT;
        }
        let is_node = |object: &&Object| *object.kind() == convoy_api::kinds::NODE;
        let own: BTreeSet<SmolStr> =
            objects.iter().filter(is_node).map(|node| node.name().clone()).collect();
        let mut nodes =
            own.len() + members.iter().map(|member| member.nodes as usize).sum::<usize>();
        // Beside members, a scenario describes their machines.
        let mut has_invented_nodes = false;
        if members.is_empty() {
            has_invented_nodes = own.is_empty() && scenario.node_count() == 0;
            if has_invented_nodes {
                scenario = scenario.with_nodes(NODES);
            }
            // A node that is given already is not made a second time.
            nodes += scenario.node_names().filter(|name| !own.contains(name.as_str())).count();
        }
        let Home { dialects, rollouts, .. } = home;
        Ok(Self {
            objects,
            dialects,
            rollouts,
            scenario,
            members,
            start,
            nodes,
            has_invented_nodes,
            has_invented_members,
            invented_pods,
        })
    }

    /// How many member clusters there are.
    pub fn member_clusters(&self) -> usize {
        self.members.len()
    }

    /// The names of the controllers that run.
    pub fn controllers(&self) -> Vec<&'static str> {
        self.dialects.iter().map(|dialect| dialect.name()).collect()
    }

    pub fn start(&self) -> Timestamp {
        self.start
    }

    /// What happens under a seed.
    pub fn play(&self, seed: u64, until: Until) -> Result<Course, ForecastError> {
        let observer = Observer::new(self, seed);
        let lead = if self.members.is_empty() { LEAD } else { MEMBER_LEAD };
        let world = Simulation::holding(
            self.objects.clone(),
            self.start.checked_sub(lead).unwrap_or(self.start),
            Seed::new(seed),
            self.settings(),
            observer,
        );
        let longest = match until {
            Until::Done => LONGEST,
            Until::After(length) => length,
        };
        let end = self.start.checked_add(longest).unwrap_or(Timestamp::MAX);
        let is_over = |observer: &Observer, now: Timestamp, is_quiet: bool| {
            until == Until::Done && observer.is_over(now, is_quiet)
        };
        let observer = world.play(lead, end, is_over).map_err(Box::new)?;
        Ok(observer.course(end))
    }

    fn settings(&self) -> RunSettings {
        let is_large = self.nodes > LARGE;
        let delay = if is_large { SignedDuration::from_secs(4) } else { SignedDuration::ZERO };
        let behaviour = LoopBehaviour { reaction_delay: delay, batches_events: true };
        RunSettings { behaviour, ..RunSettings::undisturbed() }
    }
}

impl std::fmt::Debug for Premise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Premise")
            .field("objects", &self.objects.len())
            .field("controllers", &self.controllers())
            .field("members", &self.members.len())
            .field("nodes", &self.nodes)
            .finish_non_exhaustive()
    }
}
