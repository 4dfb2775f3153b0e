//! What the loop knows and decides: what is told goes into the cache, who is affected into the
//! queue, and whose turn it is gets a decision and with it an [`Errand`].
//!
//! There is no clock here, no task and no connection: `run` carries this on an API server in
//! real time, and a simulation in virtual time, in whatever order it likes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_plan::{Action, Denial, Dialect, Event, Step, series};
use jiff::Timestamp;

use crate::cache::{Cache, Rollout};
use crate::errand::{Ended, Ending, Errand};
use crate::events::Note;
use crate::log::DecisionLog;
use crate::metrics::{self, Holds, Metrics};
use crate::projection::Projections;
use crate::queue::Queue;
use crate::request;

/// What runs, and how.
pub struct Settings {
    pub dialects: Vec<&'static dyn Dialect>,
    /// Decide and report, but write nothing.
    pub observe: bool,
    /// Rollouts whose writes are on their way at once.
    pub concurrency: usize,
    pub decision_log: Option<DecisionLog>,
    pub metrics: Arc<Metrics>,
}

impl Settings {
    pub fn new(dialects: Vec<&'static dyn Dialect>) -> Self {
        let metrics = Arc::new(Metrics::default());
        Self { dialects, observe: false, concurrency: 32, decision_log: None, metrics }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dialects: Vec<&str> = self.dialects.iter().map(|dialect| dialect.name()).collect();
        f.debug_struct("Settings")
            .field("dialects", &dialects)
            .field("observe", &self.observe)
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}

/// What is told about objects.
#[derive(Clone, Debug)]
pub enum News {
    /// All objects of a kind.
    Listed { kind: GroupKind, version: Option<u64>, objects: Vec<Object> },
    /// By a watch.
    Changed(Object),
    /// In answer to a request of our own, which watches may have overtaken.
    Answered(Object),
    /// By a watch; this is the last state.
    Deleted(Object),
    /// By an own write.
    Forgotten(ObjectKey),
}

/// A turn of a rollout.
#[derive(Debug)]
pub struct Turn {
    pub rollout: Rollout,
    /// None if it is gone, or if it only says what was denied.
    pub step: Option<Decided>,
    /// The writes to carry out; the turn lasts until [`Brain::finish`] then.
    pub errand: Option<Errand>,
}

/// What a turn decided, for whoever keeps a record.
#[derive(Debug)]
pub struct Decided {
    pub dialect: &'static str,
    pub verdict: convoy_plan::Verdict,
}

/// Everything that is known and under way.
#[derive(Debug)]
pub struct Brain {
    cache: Cache,
    queue: Queue<Rollout>,
    projections: Arc<Projections>,
    /// Kinds whose first list is still to come: nothing is decided before.
    unlisted: BTreeSet<GroupKind>,
    under_way: BTreeMap<Rollout, UnderWay>,
    holds: BTreeMap<Rollout, Holds>,
    /// What the server denied in a rollout's last turn.
    denials: BTreeMap<Rollout, Denial>,
    /// Rollouts that had only a status to write while others waited, and let them go first.
    yielded: BTreeSet<Rollout>,
    /// What people are to be told.
    notes: Vec<Note>,
    observe: bool,
    concurrency: usize,
    log: Option<DecisionLog>,
    metrics: Arc<Metrics>,
}

/// What follows on the writes of a step.
#[derive(Debug)]
struct UnderWay {
    wake_at: Option<Timestamp>,
    events: Vec<Event>,
    /// It says that a write was denied.
    complains: bool,
}

impl Brain {
    pub fn new(settings: Settings) -> Self {
        let Settings { dialects, observe, concurrency, decision_log, metrics } = settings;
        let projections = Arc::new(Projections::of(&dialects));
        Self {
            cache: Cache::new(dialects),
            queue: Queue::default(),
            unlisted: projections.kinds().cloned().collect(),
            projections,
            under_way: BTreeMap::new(),
            holds: BTreeMap::new(),
            denials: BTreeMap::new(),
            yielded: BTreeSet::new(),
            notes: Vec::new(),
            observe,
            concurrency: concurrency.max(1),
            log: decision_log,
            metrics,
        }
    }

    /// What is kept of which kinds: those to follow.
    pub fn projections(&self) -> &Arc<Projections> {
        &self.projections
    }

    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Takes in what is new.
    pub fn tell(&mut self, news: News) {
        let affected = match news {
            News::Listed { kind, version, objects } => {
                let affected = self.cache.replace(&kind, version, objects);
                if self.unlisted.remove(&kind) && self.unlisted.is_empty() {
                    tracing::info!(objects = self.cache.world().len(), "everything is listed");
                    self.metrics.set_ready(true);
                    for rollout in self.cache.rollouts() {
                        self.queue.add(rollout);
                    }
                }
                affected
            }
            News::Changed(object) => self.cache.put(object),
            News::Answered(object) => self.cache.put_answer(object),
            News::Deleted(last) => self.cache.remove(&last),
            News::Forgotten(key) => self.cache.forget(&key),
        };
        if self.unlisted.is_empty() {
            for rollout in affected {
                self.queue.add(rollout);
            }
        }
    }

    /// The next turn that may begin now.
    pub fn turn(&mut self, now: Timestamp) -> Option<Turn> {
        if !self.may_start() {
            return None;
        }
        let rollout = self.queue.take(now)?;
        let turn = self.pass(rollout, now);
        self.metrics.queue(self.queue.depth());
        Some(turn)
    }

    /// How long there is nothing to do unless something is told; none: for ever.
    pub fn pause(&self, now: Timestamp) -> Option<Duration> {
        if !self.may_start() {
            return None;
        }
        if self.queue.depth() > 0 {
            return Some(Duration::ZERO);
        }
        let wait = self.queue.next_wake()?.duration_since(now);
        // One that lies behind is due.
        Some(Duration::try_from(wait).unwrap_or(Duration::ZERO))
    }

    /// How many errands are out.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Whether a turn that failed is to be repeated.
    pub fn is_troubled(&self) -> bool {
        self.queue.failing() > 0
    }

    /// The writes of a turn have ended.
    pub fn finish(&mut self, rollout: &Rollout, ended: Ended, now: Timestamp) {
        let Some(UnderWay { wake_at, events, complains }) = self.under_way.remove(rollout) else {
            return;
        };
        let told: Vec<Event> =
            events.into_iter().filter(|event| ended.did(event_target(event))).collect();
        self.note(&told);
        match ended.ending {
            // However the complaint was taken: what led to it is tried again.
            _ if complains => self.queue.retry(rollout, now, Duration::ZERO),
            Ending::Done => self.queue.done(rollout, wake_at),
            Ending::Conflict => {
                tracing::debug!(rollout = %rollout.key, "not as observed; planning afresh");
                self.queue.retry(rollout, now, Duration::ZERO);
            }
            Ending::Later { at_least, message } => {
                tracing::warn!(rollout = %rollout.key, why = message, "the server cannot now");
                self.queue.retry(rollout, now, at_least);
            }
            Ending::Denied(denial) => {
                let Denial { target, verb, message } = &denial;
                tracing::warn!(rollout = %rollout.key, %target, verb, why = message, "denied");
                if let Some(complaint) = self.cache.complain(rollout, &denial, now) {
                    self.note(&[complaint.event]);
                    self.denials.insert(rollout.clone(), denial);
                }
                self.queue.retry(rollout, now, Duration::ZERO);
            }
        }
    }

    /// What people are to be told since this was last asked.
    pub fn notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    fn may_start(&self) -> bool {
        self.unlisted.is_empty() && self.under_way.len() < self.concurrency
    }

    /// One pass over a rollout: observe, decide, and say what is to be written.
    fn pass(&mut self, rollout: Rollout, now: Timestamp) -> Turn {
        if let Some(action) = self.complaint(&rollout, now) {
            let under_way = UnderWay { wake_at: None, events: Vec::new(), complains: true };
            self.under_way.insert(rollout.clone(), under_way);
            let errand = Some(self.errand(Vec::new(), Some(action)));
            return Turn { rollout, step: None, errand };
        }
        let Some(mut step) = self.cache.decide(&rollout, now) else {
            self.queue.done(&rollout, None);
            self.note_holds(&rollout, Holds::new());
            self.yielded.remove(&rollout);
            self.metrics.forget(&rollout);
            if let Some(log) = &mut self.log {
                log.forget(&rollout);
            }
            return Turn { rollout, step: None, errand: None };
        };
        self.metrics.passed(&step);
        self.note_holds(&rollout, metrics::holds(&step));
        self.metrics.tell(&rollout, series::of_step(&step));
        self.write_down(&rollout, &step, now);
        let object = self.cache.world().get(&rollout.key);
        let status = object.and_then(|object| request::status(step.status.as_ref(), object));
        let actions = std::mem::take(&mut step.actions);
        let decided = Some(Decided { dialect: step.dialect, verdict: step.verdict });
        if self.observe || actions.is_empty() && status.is_none() {
            self.note(&step.events);
            self.queue.done(&rollout, step.wake_at);
            return Turn { rollout, step: decided, errand: None };
        }
        if actions.is_empty() && self.yields(&rollout) {
            self.queue.done(&rollout, step.wake_at);
            self.queue.add(rollout.clone());
            return Turn { rollout, step: decided, errand: None };
        }
        let Step { wake_at, events, .. } = step;
        self.under_way.insert(rollout.clone(), UnderWay { wake_at, events, complains: false });
        let errand = Some(self.errand(actions, status));
        Turn { rollout, step: decided, errand }
    }

    /// Whether a rollout that only has to say where it stands lets others go first, once: where
    /// many wait, more will have happened by then that is said with the same write.
    fn yields(&mut self, rollout: &Rollout) -> bool {
        let crowded = self.queue.depth() >= self.concurrency;
        !self.yielded.remove(rollout) && crowded && self.yielded.insert(rollout.clone())
    }

    fn errand(&self, actions: Vec<Action>, status: Option<Action>) -> Errand {
        let (projections, metrics) = (Arc::clone(&self.projections), Arc::clone(&self.metrics));
        Errand::new(actions, status, projections, metrics)
    }

    /// What the status of a rollout has to say of a denial before anything is tried again.
    fn complaint(&mut self, rollout: &Rollout, now: Timestamp) -> Option<Action> {
        let denial = self.denials.remove(rollout)?;
        let status = self.cache.complain(rollout, &denial, now)?.status?;
        request::status(Some(&status), self.cache.world().get(&rollout.key)?)
    }

    /// Notes events about objects that are known.
    fn note(&mut self, events: &[Event]) {
        if self.observe {
            return;
        }
        for event in events {
            if let Some(object) = self.cache.world().get(&event.regarding) {
                self.notes.push(Note::new(object, event.kind, &event.reason, &event.message));
            }
        }
    }

    fn note_holds(&mut self, rollout: &Rollout, now: Holds) {
        let before = self.holds.remove(rollout).unwrap_or_default();
        if before != now {
            self.metrics.held(self.cache.dialect(rollout).name(), &before, &now);
        }
        if !now.is_empty() {
            self.holds.insert(rollout.clone(), now);
        }
    }

    fn write_down(&mut self, rollout: &Rollout, step: &Step, now: Timestamp) {
        let Some(log) = &mut self.log else { return };
        if let Err(error) = log.note(rollout, step, &self.cache, now) {
            let error = &error as &dyn std::error::Error;
            tracing::error!(error, "the decision log lacks a line");
        }
    }
}

/// The object whose write an event reports.
fn event_target(event: &Event) -> &ObjectKey {
    event.reports.as_ref().unwrap_or(&event.regarding)
}

#[cfg(test)]
mod tests {
    use convoy_api::apps::{POD, REPLICA_SET};
    use convoy_plan::dialect::apps::ReplicaSets;
    use convoy_testkit::{NOW, apps};
    use serde_json::json;

    use super::*;

    /// A loop that knows sets whose status is behind, of which one may be written at a time.
    fn brain(sets: &[&str]) -> Brain {
        let settings = Settings { concurrency: 1, ..Settings::new(vec![&ReplicaSets]) };
        let mut brain = Brain::new(settings);
        let stale = |name: &&str| {
            apps::replica_set(name, "web:v1", 0, 0).with("/status/replicas", json!(2)).build()
        };
        let mut lists: BTreeMap<GroupKind, Vec<Object>> =
            brain.projections().kinds().map(|kind| (kind.clone(), Vec::new())).collect();
        assert!(lists.contains_key(&POD));
        lists.insert(REPLICA_SET, sets.iter().map(stale).collect());
        for (kind, objects) in lists {
            brain.tell(News::Listed { kind, version: Some(1), objects });
        }
        brain
    }

    fn turns(brain: &mut Brain) -> Vec<(String, bool)> {
        let turn = || brain.turn(NOW.parse().expect("an instant"));
        let turns = std::iter::from_fn(turn);
        turns.map(|turn| (turn.rollout.key.name.to_string(), turn.errand.is_some())).collect()
    }

    #[test]
    fn who_only_reports_lets_others_go_first_once() {
        let told = |name: &str, is_written: bool| (name.to_owned(), is_written);
        assert_eq!(turns(&mut brain(&["a"])), [told("a", true)]);
        assert_eq!(
            turns(&mut brain(&["a", "b"])),
            [told("a", false), told("b", false), told("a", true)]
        );
    }
}
