//! One decision about a Deployment. Sizes change only as the gate lets them; these are the lists
//! of limits, in order of precedence:
//!
//! | decision                    | limits                                                       |
//! |-----------------------------|--------------------------------------------------------------|
//! | the rollout moves at all    | deletion, pause                                              |
//! | a ReplicaSet grows          | sizes not observed yet, maxSurge                             |
//! | old ReplicaSets shrink      | maxUnavailable, the new one changes size, a status that lags |
//! | Recreate: the new one grows | old pods are there, sizes not observed yet                   |
//! | a new size is shared out: sets shrink | maxUnavailable                                     |
//! | a new size is shared out: sets grow   | those of a growing ReplicaSet, others shrink first |
//! | the Deployment is made smaller, or Recreate stops the old pods | none                      |
//!
//! Pods of a ReplicaSet are decided in [`replica_set`]: its creates and deletes have one limit,
//! the burst of a step.

pub(crate) mod auto_rollback;
mod history;
pub(crate) mod new_set;
pub(crate) mod progress;
mod recreate;
pub(crate) mod replica_set;
mod revision;
pub(crate) mod rollback;
mod rolling;
mod scaling;

use convoy_api::Object;
use convoy_api::apps::{POD, REPLICA_SET};
use jiff::Timestamp;

use self::new_set::NewSet;
use self::progress::Counters;
use self::rollback::Rollback;
use super::read::deployment::Deployment;
use super::read::owned_set::{OwnedSet, by_age};
use super::read::template;
use crate::condition::dated::Conditions;
use crate::gate::{self, Grant, Limit};
use crate::hold::{Hold, HoldReason, Names};
use crate::ownership::{Claim, claim};
use crate::snapshot::Snapshot;
use crate::step::{Event, EventType};

/// A Deployment and its ReplicaSets, as this step finds and leaves them.
#[derive(Debug)]
pub(crate) struct DeploymentDecision<'o> {
    pub(crate) now: Timestamp,
    pub(crate) deployment: Deployment<'o>,
    /// The ReplicaSets that are ours, by age.
    pub(crate) sets: Vec<OwnedSet<'o>>,
    /// Which of `sets` has the Deployment's template.
    pub(crate) new: Option<usize>,
    /// The ReplicaSet that this step creates.
    pub(crate) created: Option<NewSet>,
    pub(crate) released: Vec<&'o Object>,
    /// Every ReplicaSet of the namespace, for names that are taken.
    neighbours: &'o [&'o Object],
    pub(crate) pods: &'o [&'o Object],
    /// `status.conditions` as this step leaves them.
    pub(crate) conditions: Conditions,
    pub(crate) collision_count: Option<i64>,
    /// The revision annotation that the Deployment takes in this step.
    pub(crate) revision: Option<String>,
    pub(crate) rollback: Option<Rollback<'o>>,
    pub(crate) events: Vec<Event>,
    /// What the gate says about replicas that are not scaled now, and about the rollout itself.
    pub(crate) holds: Vec<Hold>,
    /// Why the whole rollout stands still.
    pub(crate) standstill: Option<HoldReason>,
    /// Why the new set does not get all its replicas now.
    pub(crate) new_waits_for: Option<HoldReason>,
    pub(crate) counters: Counters,
    pub(crate) scope: StatusScope,
}

/// How much of the status a step brings up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusScope {
    /// Counters and availability: scaling, paused, under deletion.
    Counters,
    /// Progress is judged too.
    Progress,
    /// Conditions alone; the counters follow in the next step.
    Conditions,
}

/// Takes every decision of one step.
pub(crate) fn decide<'o>(
    deployment: Deployment<'o>,
    snapshot: &'o Snapshot<'o>,
    now: Timestamp,
) -> DeploymentDecision<'o> {
    let mut decision = DeploymentDecision::new(deployment, snapshot, now);
    decision.scope = decision.scale_sets();
    decision.count();
    if decision.scope != StatusScope::Conditions {
        decision.note_availability();
    }
    if decision.scope == StatusScope::Progress {
        decision.note_progress();
        decision.note_replica_failure();
        decision.roll_back_if_failed();
    }
    decision
}

/// The limits.
impl DeploymentDecision<'_> {
    /// What keeps the whole rollout from moving.
    fn rollout_limits(&self) -> Vec<Limit> {
        let on = || "the garbage collector: it is being deleted".to_owned();
        let deleted = self.deployment.object.is_deleting();
        let deletion = deleted.then(|| Limit::closed(HoldReason::Depends { on: on() }));
        let pause = self.deployment.paused.then(|| Limit::closed(HoldReason::Paused));
        deletion.into_iter().chain(pause).collect()
    }

    /// What limits replicas that are added.
    fn growth_limits(&self) -> Vec<Limit> {
        let unobserved = self.unobserved().map(Limit::closed);
        unobserved.into_iter().chain([self.surge_limit()]).collect()
    }

    /// What limits old replicas that are removed. One set changes its size in a step, so that a
    /// new set that is `resized` now comes first.
    fn removal_limits(&self, resized: bool) -> Vec<Limit> {
        let mut limits = vec![self.unavailable_limit()];
        if resized {
            let name = self.new_name().unwrap_or_default();
            let (size, n) = (self.new_size(), self.deployment.replicas);
            let on = format!("{name}, which has {size} of {n} replicas");
            limits.push(Limit::closed(HoldReason::Depends { on }));
        }
        limits.extend(self.lagging_limit());
        limits
    }

    /// `Recreate`: nothing new starts beside old pods.
    fn recreate_limits(&self, shrank: bool) -> Vec<Limit> {
        let left = self.old_replicas_left();
        let draining = HoldReason::Draining { pods: number(left) };
        let old_pods = (shrank || left > 0).then(|| Limit::closed(draining));
        let old = self.old().find(|set| set.may_have().is_none());
        old_pods.into_iter().chain(old.map(not_observed).map(Limit::closed)).collect()
    }

    /// What limits sets that grow where a new size is shared out, beside [`Self::growth_limits`]:
    /// the sets that shrink go first, or all together would be too many on the way.
    fn share_limits(&self, shrinking: Option<usize>) -> Option<Limit> {
        shrinking.map(|at| {
            let on = format!("{}, which shrinks first", self.sets[at].name());
            Limit::closed(HoldReason::Depends { on })
        })
    }

    /// maxUnavailable, where a new size is shared out: so many available replicas have to stay.
    fn serving_limit(&self) -> Limit {
        let required = self.deployment.replicas - self.deployment.may_be_missing();
        let available: i64 = self.sets.iter().map(OwnedSet::wanted_available).sum();
        let missing = number(self.deployment.replicas - available);
        Limit::floor("maxUnavailable", number(available), number(required), missing, [""; 0])
    }

    /// maxSurge. A size is what is asked for; the promise is about pods, so those that shrunk
    /// sets still have keep their slot until they are gone.
    ///
    /// | n | surge | sets: size (pods) | room | because                             |
    /// |--:|------:|-------------------|-----:|-------------------------------------|
    /// | 4 |     1 | 4 (4)             |    1 | the surge                           |
    /// | 4 |     1 | 3 (4), 1 (1)      |    0 | one was given up and is still there |
    /// | 4 |     1 | 3 (3), 1 (1)      |    1 | it is gone                          |
    /// | 4 |     1 | 2 (2)             |    3 | two are missing, and the surge      |
    fn surge_limit(&self) -> Limit {
        let created = self.created.as_ref().map_or(0, |created| created.replicas);
        let pods: i64 = self.sets.iter().filter_map(OwnedSet::may_have).sum::<i64>() + created;
        let (n, surge) = (self.deployment.replicas, self.deployment.surge);
        budget("maxSurge", n + surge - pods, pods - n, surge)
    }

    /// maxUnavailable. Replicas that are not available count like missing ones, and old ones of
    /// them can go without cost: what remains bounds both.
    ///
    /// | n  | may be missing | new (available) | old (available) | room | because                  |
    /// |---:|---------------:|-----------------|-----------------|-----:|--------------------------|
    /// | 10 |              2 | 5 (0)           | 8 (8)           |    0 | 8 have to stay available |
    /// | 10 |              2 | 5 (2)           | 8 (8)           |    2 | two new ones took over   |
    /// | 10 |              2 | 3 (0)           | 10 (7)          |    2 | broken ones, of three    |
    fn unavailable_limit(&self) -> Limit {
        let (n, ceiling) = (self.deployment.replicas, self.deployment.may_be_missing());
        let new_available = self.new_set().map_or(0, OwnedSet::wanted_available);
        let new_missing = self.new_size() - new_available;
        let available = new_available + self.old().map(OwnedSet::wanted_available).sum::<i64>();
        let room = self.total() - new_missing - (n - ceiling);
        budget("maxUnavailable", room, n - available, ceiling)
    }

    /// Until a controller has observed the size of its set, it may make pods for another one.
    pub(crate) fn unobserved(&self) -> Option<HoldReason> {
        self.sets.iter().find(|set| set.may_have().is_none()).map(not_observed)
    }

    /// An old set that reports more available replicas than it wants was shrunk before: which of
    /// its pods serve is not known, and neither is what the sets behind it may give up.
    fn lagging_limit(&self) -> Option<Limit> {
        let mut idle = 0;
        for set in self.old().filter(|set| set.is_active()) {
            let (available, size) = (set.counts.available, set.had);
            if available > size {
                let name = set.name();
                let on = format!("the status of {name}: {available} available of {size} replicas");
                return Some(Limit::of(number(idle), HoldReason::Depends { on }));
            }
            idle += size - available;
        }
        None
    }
}

fn not_observed(set: &OwnedSet<'_>) -> HoldReason {
    let on = format!("the controller of {}, which has not observed its size", set.name());
    HoldReason::Depends { on }
}

/// A budget of `ceiling` with so much `room`, of which `in_use` is taken. With replicas missing
/// there is more room than the ceiling, and then `in_use` is negative: once the room is taken,
/// exactly the ceiling is in use.
fn budget(limit: &'static str, room: i64, in_use: i64, ceiling: i64) -> Limit {
    let (in_flight, ceiling) = (number(in_use.max(ceiling)), number(ceiling));
    Limit::of(
        number(room),
        HoldReason::BudgetSpent { limit, in_flight, ceiling, by: Names::default() },
    )
}

/// A number of replicas as the gate counts them.
pub(crate) fn number(count: i64) -> u32 {
    u32::try_from(count.max(0)).unwrap_or(u32::MAX)
}

impl<'o> DeploymentDecision<'o> {
    fn new(deployment: Deployment<'o>, snapshot: &'o Snapshot<'o>, now: Timestamp) -> Self {
        let object = deployment.object;
        let neighbours = snapshot.of(&REPLICA_SET);
        let (mut sets, mut released) = (Vec::with_capacity(neighbours.len()), Vec::new());
        for neighbour in neighbours {
            match claim(object, &deployment.selector, neighbour) {
                Claim::Keep => sets.push(OwnedSet::new(neighbour, false)),
                Claim::Adopt => sets.push(OwnedSet::new(neighbour, true)),
                Claim::Release => released.push(*neighbour),
                Claim::Ignore => {}
            }
        }
        sets.sort_by(by_age);
        let new = sets.iter().position(|set| deployment.template.is_same(template(set.object)));
        Self {
            now,
            sets,
            new,
            created: None,
            released,
            neighbours,
            pods: snapshot.of(&POD),
            conditions: Conditions::of(object),
            collision_count: deployment.stored.collision_count,
            revision: None,
            rollback: None,
            events: Vec::new(),
            holds: Vec::new(),
            standstill: None,
            new_waits_for: None,
            counters: Counters::default(),
            scope: StatusScope::Counters,
            deployment,
        }
    }

    /// Decides the sizes. The order means something: scaling goes before rolling out, and a
    /// request to go back before both.
    fn scale_sets(&mut self) -> StatusScope {
        // The rollout as a whole is one candidate.
        self.standstill = gate::grant(1, &self.rollout_limits()).hold;
        if self.deployment.object.is_deleting() {
            return StatusScope::Counters;
        }
        self.note_pause();
        self.sync_new();
        if self.standstill.is_some() {
            self.scale();
            if self.deployment.rollback_request().is_none() {
                self.trim_history();
            }
            return StatusScope::Counters;
        }
        if let Some(revision) = self.deployment.rollback_request() {
            return self.answer_rollback(revision);
        }
        if self.is_scaling_event() && self.scale() {
            return StatusScope::Counters;
        }
        if self.deployment.recreate { self.recreate() } else { self.roll() }
    }

    /// The old sets, oldest first.
    pub(crate) fn old(&self) -> impl Iterator<Item = &OwnedSet<'o>> {
        let new = self.new;
        self.sets.iter().enumerate().filter(move |(at, _)| Some(*at) != new).map(|(_, set)| set)
    }

    fn old_mut(&mut self) -> impl Iterator<Item = &mut OwnedSet<'o>> {
        let new = self.new;
        self.sets.iter_mut().enumerate().filter(move |(at, _)| Some(*at) != new).map(|(_, set)| set)
    }

    pub(crate) fn new_set(&self) -> Option<&OwnedSet<'o>> {
        self.new.map(|at| &self.sets[at])
    }

    /// `spec.replicas` of the new set as this step leaves it; 0 where there is none.
    pub(crate) fn new_size(&self) -> i64 {
        let created = self.created.as_ref().map_or(0, |created| created.replicas);
        self.new_set().map_or(created, |set| set.wants)
    }

    /// The sizes of all sets together, as this step leaves them.
    fn total(&self) -> i64 {
        let created = self.created.as_ref().map_or(0, |created| created.replicas);
        self.sets.iter().map(|set| set.wants).sum::<i64>() + created
    }

    /// How many replicas the new set still lacks.
    fn new_lacks(&self) -> u32 {
        number(self.deployment.replicas - self.new_size())
    }

    /// The name of the new set, if it is there or created now.
    pub(crate) fn new_name(&self) -> Option<&str> {
        let created = self.created.as_ref().map(|created| created.name.as_str());
        self.new_set().map(|set| set.name().as_str()).or(created)
    }

    /// The stored status says that everything is done.
    fn was_complete(&self) -> bool {
        let (stored, n) = (&self.deployment.stored, self.deployment.replicas);
        [stored.updated, stored.replicas, stored.available].iter().all(|count| *count == n)
            && stored.observed_generation >= self.deployment.object.generation()
    }

    /// Whether the new set changes its size: up by what `growth` grants, or down to what the
    /// Deployment asks for.
    fn resize_new(&mut self, growth: &Grant) -> bool {
        let Some(at) = self.new else { return false }; // created in this step, at its size
        let (n, most) = (self.deployment.replicas, self.deployment.most());
        let set = &mut self.sets[at];
        // Fewer replicas than it has were asked for: nothing limits that.
        let shrink = gate::grant(number(set.had - n), &[]);
        let size = set.had + i64::from(growth.count) - i64::from(shrink.count);
        let Some(permit) = growth.permit().or(shrink.permit()) else { return false };
        set.resize(size, permit);
        set.record_size(n, most);
        true
    }

    /// Tells why the new set lacks replicas.
    fn hold_new(&mut self, growth: &Grant) {
        let Some(reason) = growth.hold.clone() else { return };
        let name = self.new_name().unwrap_or("(new)").to_owned();
        self.holds.push(Hold::of_rollout(reason.clone()).in_group(name));
        self.new_waits_for = Some(reason);
    }

    fn tell(&mut self, kind: EventType, reason: &str, message: String) {
        self.events.push(Event::new(self.deployment.object.key(), kind, reason, message));
    }
}
