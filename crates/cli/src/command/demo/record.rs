//! What was seen of a rollout from its beginning to its end.

use convoy_plan::{Step, Verdict};

use super::cluster::Observation;
use super::rollout::{DemoRollout, Ending};
use crate::text;

/// What was seen of one rollout.
pub(super) struct Record<'a> {
    pub(super) rollout: &'a DemoRollout,
    /// The most members that were down at once.
    most: usize,
    /// The change has reached it.
    has_begun: bool,
    last: Option<Step>,
}

impl<'a> Record<'a> {
    pub(super) fn of(rollout: &'a DemoRollout) -> Self {
        Self { rollout, most: 0, has_begun: false, last: None }
    }

    pub(super) fn see(&mut self, observation: &Observation) {
        self.most = self.most.max((self.rollout.down)(&observation.world));
        let step = step(self.rollout, observation);
        self.has_begun |= step.is_some_and(|step| step.verdict != Verdict::Done);
        self.last = step.cloned();
    }

    pub(super) fn last(&self) -> Option<&Step> {
        self.last.as_ref()
    }

    pub(super) fn has_ended(&self) -> bool {
        let ended = |step: &Step| self.rollout.has_ended(step.verdict);
        self.has_begun && self.last.as_ref().is_some_and(ended)
    }

    pub(super) fn is_within_budget(&self) -> bool {
        self.most <= self.rollout.allowed
    }

    /// What became of it, in a line.
    pub(super) fn summary(&self) -> String {
        let DemoRollout { dialect, members, allowed, .. } = self.rollout;
        let groups = || self.last.iter().flat_map(|step| &step.groups);
        let sum = |count: fn(&convoy_plan::GroupReport) -> u32| groups().map(count).sum::<u32>();
        let (done, total) = self.last.as_ref().map(Step::progress).unwrap_or_default();
        let result = match self.rollout.ending {
            Ending::Done => format!("{done} of {total} {members} have what is new"),
            Ending::Contained => {
                let reached = sum(|group| group.failed) + sum(|group| group.moving);
                let kept = total.saturating_sub(reached);
                format!(
                    "the bad release reached {reached} of {total} {members}; {kept} kept working"
                )
            }
        };
        let budget = format!("at most {} down at once, {allowed} allowed", self.most);
        format!("{dialect:<9}  {}: {result}; {budget}", self.rollout.label())
    }

    /// Why its members wait.
    pub(super) fn reasons(&self, now: jiff::Timestamp) -> String {
        self.last.as_ref().map(|step| text::reasons(step, now)).unwrap_or_default()
    }
}

/// What the engine says about a rollout.
pub(super) fn step<'o>(rollout: &DemoRollout, observation: &'o Observation) -> Option<&'o Step> {
    let key = rollout.object(&observation.world)?.key();
    let mut steps = observation.plan.steps.iter();
    steps.find(|step| step.rollout == *key && step.dialect == rollout.dialect)
}
