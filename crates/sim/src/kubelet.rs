//! What a kubelet reports about a pod, as a pure function of the pod, its behaviour and the
//! instant: nothing is remembered that is not in the arguments, so a simulator that starts
//! again goes on where it was.

mod container;
mod status;

#[cfg(test)]
mod tests;

use convoy_api::object::member::{field, list, text};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::component::hash_of;
use crate::scenario::{Behaviour, Scenario};
use crate::seed::Seed;
use container::{Course, Restarts, Standing, State};

pub(crate) use status::generation;
pub use status::stamp;

/// What the message of a pod begins with that its kubelet has not taken.
pub(crate) const REJECTED: &str = "Pod was rejected: ";

/// The instants that decide a pod's life on its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// When the kubelet first saw it.
    pub begun: Timestamp,
    /// When it was asked to end.
    pub ending: Option<Timestamp>,
    /// When the machine under it started anew.
    pub reboots: Vec<Timestamp>,
}

/// Where a pod can be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    pub host: String,
    pub pod: String,
}

/// How far a pod has come by an instant.
#[derive(Debug)]
pub struct Progress {
    parts: PodContainers,
    /// Every container has ended after it was asked to: the object may go.
    pub is_over: bool,
    /// When there is something new to say, should nothing change before.
    pub next: Option<Timestamp>,
    /// One of its containers takes the machine down, for so long.
    pub reboots: Option<SignedDuration>,
}

impl Progress {
    /// The fields of `status` that a kubelet owns.
    pub fn status(
        &self,
        pod: &Value,
        lifetime: &Lifetime,
        addresses: &Addresses,
        now: Timestamp,
    ) -> Value {
        status::status(pod, &self.parts, lifetime, addresses, now)
    }

    /// What stands for everything that a status would say of the containers: as long as neither
    /// this nor the pod changes, there is nothing new to say.
    pub fn digest(&self) -> u64 {
        hash_of(&self.parts)
    }
}

/// Whether a pod has ended for good: its status never changes again.
pub fn is_terminal(pod: &Value) -> bool {
    matches!(text(field(pod, "status"), "phase"), "Succeeded" | "Failed")
}

/// How far `pod`, which is bound to `node`, has come by `now`.
pub fn progress(
    scenario: &Scenario,
    pod: &Value,
    node: &Value,
    lifetime: &Lifetime,
    now: Timestamp,
) -> Progress {
    let spec = field(pod, "spec");
    let stop = lifetime.ending.map(|ending| Stop::of(scenario, pod, node, ending));
    let overdue = overdue(pod, lifetime);
    let instant = stop.map_or(now, |stop| stop.ended.min(now));
    let instant = overdue.map_or(instant, |overdue| overdue.min(instant));
    let life = Life { scenario, pod, node, lifetime, instant };
    let (init, ready_to_run) = life.init_containers(list(spec, "initContainers"));
    let containers = match ready_to_run {
        Some(begin) => life.containers(list(spec, "containers"), begin),
        None => {
            list(spec, "containers").iter().map(|_| Standing::waiting("PodInitializing")).collect()
        }
    };
    let is_over = stop.is_some_and(|stop| now >= stop.ended);
    let is_initialized = ready_to_run.is_some();
    let mut parts = PodContainers { init, containers, is_initialized, is_overdue: false };
    parts.name_waits();
    if let Some(overdue) = overdue.filter(|overdue| *overdue <= now) {
        parts.expire(overdue);
    }
    let next = match stop {
        Some(stop) if is_over => {
            parts.end(stop);
            None
        }
        Some(stop) => parts.next().into_iter().chain([stop.ended]).min(),
        None if parts.is_overdue => None,
        None => parts.next().into_iter().chain(overdue.filter(|overdue| *overdue > now)).min(),
    };
    let reboots = if is_over { None } else { parts.all().find_map(|part| part.reboots) };
    Progress { parts, is_over, next, reboots }
}

/// The containers of a pod, in the order of its specification.
#[derive(Debug, Hash)]
struct PodContainers {
    init: Vec<Standing>,
    containers: Vec<Standing>,
    is_initialized: bool,
    /// It was stopped because it ran for longer than it may.
    is_overdue: bool,
}

impl PodContainers {
    fn next(&self) -> Option<Timestamp> {
        self.all().filter_map(|standing| standing.next).min()
    }

    fn all(&self) -> impl Iterator<Item = &Standing> {
        self.init.iter().chain(&self.containers)
    }

    /// Containers of a pod with init containers wait for the initialization of the pod, however
    /// far that is.
    fn name_waits(&mut self) {
        if self.init.is_empty() {
            return;
        }
        for standing in self.init.iter_mut().chain(&mut self.containers) {
            if let State::Waiting { reason, .. } = &mut standing.state
                && *reason == "ContainerCreating"
            {
                *reason = "PodInitializing";
            }
        }
    }

    /// Ends a pod that has not ended by its deadline.
    fn expire(&mut self, deadline: Timestamp) {
        self.is_overdue = !matches!(status::phase(self), "Succeeded" | "Failed");
        if self.is_overdue {
            self.end(Stop { ended: deadline, is_killed: true });
        }
    }

    /// Ends what still runs.
    fn end(&mut self, stop: Stop) {
        for standing in self.init.iter_mut().chain(&mut self.containers) {
            standing.end(stop.ended, if stop.is_killed { 137 } else { 0 });
        }
    }
}

/// How a pod ends that was asked to.
#[derive(Clone, Copy, Debug)]
struct Stop {
    ended: Timestamp,
    /// It took longer than it was given.
    is_killed: bool,
}

impl Stop {
    fn of(scenario: &Scenario, pod: &Value, node: &Value, ending: Timestamp) -> Self {
        if is_terminal(pod) {
            return Self { ended: ending, is_killed: false };
        }
        let metadata = field(pod, "metadata");
        let seconds = field(metadata, "deletionGracePeriodSeconds").as_i64().unwrap_or(0).max(0);
        let grace = SignedDuration::from_secs(seconds);
        let seed = Seed::new(scenario.seed).child("stop", text(metadata, "uid"));
        let containers = list(field(pod, "spec"), "containers").iter();
        let takes = containers
            .map(|container| scenario.behaviour(pod, container, node).stop.draw(seed))
            .max()
            .unwrap_or_default();
        Self { ended: after(ending, takes.min(grace)), is_killed: takes > grace }
    }
}

/// When a pod has run for as long as it may, counted from its start.
fn overdue(pod: &Value, lifetime: &Lifetime) -> Option<Timestamp> {
    let most = field(field(pod, "spec"), "activeDeadlineSeconds").as_i64()?;
    let started = text(field(pod, "status"), "startTime").parse().unwrap_or(lifetime.begun);
    let overdue = after(started, SignedDuration::from_secs(most));
    lifetime.ending.is_none_or(|ending| overdue < ending).then_some(overdue)
}

struct Life<'a> {
    scenario: &'a Scenario,
    pod: &'a Value,
    node: &'a Value,
    lifetime: &'a Lifetime,
    instant: Timestamp,
}

impl Life<'_> {
    /// One after the other; also when the containers proper begin, if they do.
    fn init_containers(&self, containers: &[Value]) -> (Vec<Standing>, Option<Timestamp>) {
        let mut begin = Some(self.lifetime.begun);
        let mut found = Vec::new();
        for container in containers {
            let Some(since) = begin else {
                found.push(Standing::waiting("PodInitializing"));
                continue;
            };
            let is_sidecar = text(container, "restartPolicy") == "Always";
            let behaviour = self.behaviour(container, !is_sidecar);
            let restarts = match self.policy() {
                _ if is_sidecar => Restarts::Always,
                Restarts::Never => Restarts::Never,
                Restarts::Always | Restarts::OnFailure => Restarts::OnFailure,
            };
            let course = self.course(container, &behaviour, since, restarts);
            let standing = Course { is_probed: is_sidecar, ..course }.follow(self.instant);
            begin = match &standing.state {
                State::Ended(ended) if ended.code == 0 => Some(ended.finished),
                _ if is_sidecar => standing.first_started,
                _ => None,
            };
            found.push(standing);
        }
        (found, begin)
    }

    fn containers(&self, containers: &[Value], begin: Timestamp) -> Vec<Standing> {
        let follow = |container: &Value| {
            let behaviour = self.behaviour(container, false);
            self.course(container, &behaviour, begin, self.policy()).follow(self.instant)
        };
        containers.iter().map(follow).collect()
    }

    fn behaviour(&self, container: &Value, is_init: bool) -> Behaviour {
        let mut behaviour = self.scenario.behaviour(self.pod, container, self.node);
        if is_init {
            behaviour.completes = Some(behaviour.init);
        }
        behaviour
    }

    fn course<'b>(
        &'b self,
        container: &'b Value,
        behaviour: &'b Behaviour,
        begin: Timestamp,
        restarts: Restarts,
    ) -> Course<'b> {
        let uid = text(field(self.pod, "metadata"), "uid");
        let name = text(container, "name");
        let seed = Seed::new(self.scenario.seed).child("pod", uid).child("container", name);
        Course {
            pod: self.pod,
            container,
            behaviour,
            begin,
            restarts,
            is_probed: true,
            reboots: &self.lifetime.reboots,
            seed,
        }
    }

    fn policy(&self) -> Restarts {
        match text(field(self.pod, "spec"), "restartPolicy") {
            "Never" => Restarts::Never,
            "OnFailure" => Restarts::OnFailure,
            _ => Restarts::Always,
        }
    }
}

/// A later instant; the end of time stays what it is.
fn after(instant: Timestamp, duration: SignedDuration) -> Timestamp {
    instant.checked_add(duration).unwrap_or(Timestamp::MAX)
}
