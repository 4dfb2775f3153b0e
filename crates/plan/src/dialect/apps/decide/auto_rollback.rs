//! Automatic rollback, for Deployments that ask for it: a rollout that fails goes back to the
//! last revision that was once complete, one time per failed template.
//!
//! What is known about revisions stands on their ReplicaSets, so a restart at any point goes
//! on where it was: the failed set is marked with the generation it failed in before the
//! template is changed, and a mark of the current generation means that the change is due.

use convoy_api::Object;
use convoy_api::apps::annotation;
use jiff::Timestamp;

use super::DeploymentDecision;
use super::rollback::Rollback;
use crate::condition::dated::Entry;
use crate::condition::instant;
use crate::dialect::apps::names::{PROGRESSING, REPLICA_FAILURE, ROLLED_BACK, TIMED_OUT};
use crate::elapsed::passed_at;
use crate::step::EventType;

impl<'o> DeploymentDecision<'o> {
    /// Records that a revision was complete, and goes back from one that has failed.
    pub(super) fn roll_back_if_failed(&mut self) {
        if self.triggers().next().is_none() {
            return;
        }
        let now = instant(self.now);
        if self.is_complete()
            && let Some(set) = self.new.map(|at| &mut self.sets[at])
            && set.note(annotation::COMPLETED_AT).is_none()
        {
            set.set_note(annotation::COMPLETED_AT, now.as_str().unwrap_or_default());
        }
        match self.failure() {
            Some(why) => self.leave_failed(&why),
            None if !self.has_rolled_back() => {
                self.conditions.remove(ROLLED_BACK);
            }
            None => {}
        }
    }

    /// When a failure of the new set will have stood for the whole deadline.
    pub(crate) fn failure_deadline(&self) -> Option<Timestamp> {
        self.triggers().find(|trigger| *trigger == "replica-failure")?;
        self.failing_until().filter(|at| *at > self.now)
    }

    fn triggers(&self) -> impl Iterator<Item = &str> {
        let asked =
            self.deployment.object.annotation(annotation::AUTO_ROLLBACK).unwrap_or_default();
        asked.split(',').map(str::trim).filter(|trigger| !trigger.is_empty())
    }

    fn failing_until(&self) -> Option<Timestamp> {
        let failure = Entry::of(self.new_set()?.object, REPLICA_FAILURE)?;
        if !failure.is_true() {
            return None;
        }
        passed_at(failure.changed_at()?, self.deployment.deadline_secs?)
    }

    /// Why the new set has failed, if it has by one of the triggers.
    fn failure(&self) -> Option<String> {
        let progressing = self.conditions.find(PROGRESSING);
        let timed_out = progressing.filter(|entry| entry.reason() == TIMED_OUT);
        self.triggers().find_map(|trigger| match trigger {
            "deadline" => timed_out.map(|entry| entry.message().to_owned()),
            "replica-failure" if self.failing_until().is_some_and(|at| at <= self.now) => {
                let failure = Entry::of(self.new_set()?.object, REPLICA_FAILURE)?;
                Some(failure.message().to_owned())
            }
            _ => None,
        })
    }

    fn leave_failed(&mut self, why: &str) {
        let generation = self.deployment.object.generation().to_string();
        let Some(at) = self.new else { return };
        let failed = &self.sets[at];
        let tried = failed.note(annotation::FAILED).is_some_and(|mark| mark != generation);
        if tried || failed.note(annotation::COMPLETED_AT).is_some() {
            return; // given up once already, or good: someone has to look
        }
        let Some((revision, set)) = self.last_good() else {
            let stored = Entry::of(self.deployment.object, PROGRESSING);
            if stored.is_none_or(|entry| entry.reason() != TIMED_OUT) {
                let message = "No revision that was once complete to roll back to.".to_owned();
                self.tell(EventType::Warning, "DeploymentRollbackRevisionNotFound", message);
            }
            return;
        };
        let from = failed.note(annotation::REVISION).unwrap_or("0").to_owned();
        let message = format!("Rolled back from revision {from} to revision {revision}: {why}");
        self.sets[at].set_note(annotation::FAILED, &generation);
        self.conditions.remove(ROLLED_BACK);
        self.conditions.set(ROLLED_BACK, "True", "AutoRollback", &message, self.now);
        self.tell_rolled_back(revision);
        self.rollback = Some(Rollback::To { revision, set });
    }

    /// The highest revision that was once complete and never failed.
    fn last_good(&self) -> Option<(i64, &'o Object)> {
        let good = self.old().filter(|set| {
            set.note(annotation::COMPLETED_AT).is_some() && set.note(annotation::FAILED).is_none()
        });
        let numbered = good.filter_map(|set| Some((set.revision()?, set.object)));
        numbered.max_by_key(|(revision, _)| *revision)
    }

    /// The set before the new one was given up, and the new one is good.
    fn has_rolled_back(&self) -> bool {
        let before = self.old().max_by_key(|set| set.revision());
        let left = before.is_some_and(|set| set.note(annotation::FAILED).is_some());
        left && self.new_set().is_some_and(|set| set.note(annotation::COMPLETED_AT).is_some())
    }
}
