//! One reconcile of a Deployment: what is read, what is decided in which order, and what the
//! step writes in the end. Each decision is a module of its own below.

pub(super) mod auto_rollback;
mod history;
pub(super) mod progress;
mod rank;
pub(super) mod recreate;
pub(super) mod replica_set;
mod revision;
pub(super) mod rollback;
mod rolling;
mod scaling;

use convoy_api::apps::REPLICA_SET;
use convoy_api::object::member::field;
use convoy_api::{Object, apps::POD};
use jiff::Timestamp;
use serde_json::Value;

use crate::dialect::apps::decide::rollback::Rollback;
use crate::dialect::apps::read::deployment::Deployment;
use crate::dialect::apps::read::owned_set::{Set, by_age};
use crate::dialect::apps::write::new_set::Created;
use crate::ownership::{Claim, claim};
use crate::snapshot::Snapshot;
use crate::step::{Event, EventType};

/// Everything one decision reads and writes.
#[derive(Debug)]
pub(crate) struct Pass<'o> {
    pub(crate) now: Timestamp,
    pub(crate) deployment: Deployment<'o>,
    /// The ReplicaSets that are ours, by age.
    pub(crate) sets: Vec<Set<'o>>,
    /// Which of `sets` has the Deployment's template.
    pub(crate) new: Option<usize>,
    /// The ReplicaSet that this step makes.
    pub(crate) created: Option<Created>,
    pub(crate) released: Vec<&'o Object>,
    /// Every ReplicaSet of the namespace, for names that are taken.
    pub(crate) neighbours: &'o [&'o Object],
    pub(crate) pods: &'o [&'o Object],
    /// `status.conditions` as this step leaves them.
    pub(crate) conditions: Vec<Value>,
    pub(crate) collision_count: Option<i64>,
    /// The revision annotation that the Deployment takes in this step.
    pub(crate) revision: Option<String>,
    pub(crate) rollback: Option<Rollback<'o>>,
    pub(crate) events: Vec<Event>,
}

/// How a pass ended, which decides what its status says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Counters and availability only: scaling, paused, under deletion.
    Plain,
    /// Progress is judged too.
    Rollout,
    /// The template or the name was the whole matter; the counters wait for the next pass.
    Aside,
}

impl<'o> Pass<'o> {
    pub(crate) fn new(
        deployment: Deployment<'o>,
        snapshot: &'o Snapshot<'o>,
        now: Timestamp,
    ) -> Self {
        let object = deployment.object;
        let neighbours = snapshot.of(&REPLICA_SET);
        let (mut sets, mut released) = (Vec::with_capacity(neighbours.len()), Vec::new());
        for neighbour in neighbours {
            match claim(object, &deployment.selector, neighbour) {
                Claim::Keep => sets.push(Set::new(neighbour, false)),
                Claim::Adopt => sets.push(Set::new(neighbour, true)),
                Claim::Release => released.push(*neighbour),
                Claim::Ignore => {}
            }
        }
        sets.sort_by(by_age);
        let new = sets.iter().position(|set| deployment.template.is_same(template_of(set.object)));
        let conditions = object.status().get("conditions").and_then(Value::as_array);
        Self {
            now,
            sets,
            new,
            created: None,
            released,
            neighbours,
            pods: snapshot.of(&POD),
            conditions: conditions.cloned().unwrap_or_default(),
            collision_count: deployment.collision_count(),
            revision: None,
            rollback: None,
            events: Vec::new(),
            deployment,
        }
    }

    /// Takes every decision of one pass. The order means something: scaling goes before
    /// rolling out, and a request to go back before both.
    pub(crate) fn decide(&mut self) -> Ending {
        if self.deployment.object.is_deleting() {
            return Ending::Plain;
        }
        self.note_pause();
        self.sync_new();
        if self.deployment.paused {
            self.scale();
            if self.deployment.rollback_request().is_none() {
                self.trim_history();
            }
            return Ending::Plain;
        }
        if let Some(revision) = self.deployment.rollback_request() {
            return self.answer_rollback(revision);
        }
        if self.is_scaling_event() && self.scale() {
            return Ending::Plain;
        }
        if self.deployment.recreate { self.recreate() } else { self.roll() }
    }

    /// The old sets, oldest first.
    pub(crate) fn old(&self) -> impl Iterator<Item = &Set<'o>> {
        let new = self.new;
        self.sets.iter().enumerate().filter(move |(at, _)| Some(*at) != new).map(|(_, set)| set)
    }

    pub(crate) fn old_mut(&mut self) -> impl Iterator<Item = &mut Set<'o>> {
        let new = self.new;
        self.sets.iter_mut().enumerate().filter(move |(at, _)| Some(*at) != new).map(|(_, set)| set)
    }

    pub(crate) fn new_set(&self) -> Option<&Set<'o>> {
        self.new.map(|at| &self.sets[at])
    }

    /// `spec.replicas` of the new set before and after this step; 0 where there is none.
    pub(crate) fn new_size(&self) -> i64 {
        let created = self.created.as_ref().map_or(0, |created| created.replicas);
        self.new_set().map_or(created, |set| set.wants)
    }

    /// What all sets ask for, as this step leaves it.
    pub(crate) fn total(&self) -> i64 {
        let created = self.created.as_ref().map_or(0, |created| created.replicas);
        self.sets.iter().map(|set| set.wants).sum::<i64>() + created
    }

    /// How many replicas may be added now. A size is what is asked for; the promise is about
    /// pods, so those that shrunk sets still have take their place until they are gone.
    ///
    /// | n | surge | sets: size (pods)   | room | because                                   |
    /// |--:|------:|---------------------|-----:|-------------------------------------------|
    /// | 4 |     1 | 4 (4)               |    1 | the surge                                 |
    /// | 4 |     1 | 3 (4), 1 (1)        |    0 | one was given up and is still there       |
    /// | 4 |     1 | 3 (3), 1 (1)        |    1 | it is gone                                |
    /// | 4 |     1 | 3 (unheard), 1 (1)  |    0 | nobody has said how many it has           |
    pub(crate) fn room(&self) -> i64 {
        let created = self.created.as_ref().map_or(0, |created| created.replicas);
        let taken: Option<i64> = self.sets.iter().map(Set::may_have).sum();
        taken.map_or(0, |taken| (self.deployment.most() - taken - created).max(0))
    }

    /// A set of which nobody has said how many pods it has at the size it has now.
    pub(crate) fn unheard(&self) -> Option<&Set<'o>> {
        self.sets.iter().find(|set| set.may_have().is_none())
    }

    /// The name of the new set, if it is there or made now.
    pub(crate) fn new_name(&self) -> Option<&str> {
        let created = self.created.as_ref().map(|created| created.name.as_str());
        self.new_set().map(|set| set.name().as_str()).or(created)
    }

    /// The stored status says that everything is done.
    pub(crate) fn was_complete(&self) -> bool {
        let (deployment, n) = (&self.deployment, self.deployment.replicas);
        let counts = ["updatedReplicas", "replicas", "availableReplicas"];
        counts.iter().all(|field| deployment.stored(field) == n)
            && deployment.stored("observedGeneration") >= deployment.object.generation()
    }

    pub(crate) fn resize(&mut self, at: usize, wants: i64) {
        let (desired, most) = (self.deployment.replicas, self.deployment.most());
        self.sets[at].resize(wants, desired, most);
    }

    pub(crate) fn tell(&mut self, kind: EventType, reason: &str, message: String) {
        let regarding = self.deployment.object.key().clone();
        let (reason, reports) = (reason.to_owned(), None);
        self.events.push(Event { regarding, kind, reason, message, reports });
    }
}

pub(crate) fn template_of(set: &Object) -> &Value {
    field(set.spec(), "template")
}
