//! One decision about one rollout: what is written now, what waits and why, when to look again.

mod action;
mod denial;
mod group;

use convoy_api::{Object, ObjectKey};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

pub use action::{
    Action, Event, EventType, Precondition, Propagation, Subresource, Verb, Why, Write,
};
pub use denial::{Complaint, Denial};
pub use group::{BatchReport, GroupReport, MemberState};

use crate::hold::{Hold, HoldReason};
use crate::metric::{Increment, Series};

/// What happens next in one rollout, and why nothing more does.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The name of the dialect or controller that decided: `skyhook`, `fleet`, `apps`, `karpenter`
    /// or `ocm` in a plan; in control loops also `replicasets`, `daemonsets` and the like.
    pub dialect: &'static str,
    pub rollout: ObjectKey,
    /// The version the rollout object was written in.
    pub api_version: String,
    pub verdict: Verdict,
    /// The dialect's own summary; its keys are documented in `docs/reference/plan.md`.
    pub decision: Value,
    /// Compartments, decision groups, stages or pools, with their members by state.
    pub groups: Vec<GroupReport>,
    /// In order, complete: applying them takes no further decision.
    pub actions: Vec<Action>,
    /// One per member that waits, and one without a member if the rollout itself waits.
    pub holds: Vec<Hold>,
    /// `status` of the rollout object as it should read; absent if it reads so already.
    pub status: Option<Value>,
    /// What people watching the objects should be told, in order.
    pub events: Vec<Event>,
    /// When to look again, should nothing change before then.
    pub wake_at: Option<Timestamp>,
    /// How long changes are collected before the next decision. Zero where a decision is cheap: it
    /// follows each change at once.
    pub rest: SignedDuration,
    /// The dialect's own numbers about the rollout, in place of those of the previous decision.
    /// A rollout that is refused, or held because another object is, has none: nobody knows how
    /// long that lasts, and numbers of a decision that no longer holds are worse than a gap.
    pub series: Vec<Series>,
    /// The dialect's own counters: each is one more by this decision.
    pub counts: Vec<Increment>,
}

/// How long a rollout rests after a decision, for each object that the decision looked at.
const REST_MICROS: i64 = 100;
/// With fewer objects than this, most decisions take less than a millisecond.
const MANY: usize = 500;
/// Nobody waits longer than that for a decision, however many objects there are.
const REST_MAX: SignedDuration = SignedDuration::from_secs(2);

/// How long a rollout rests after planning it failed.
const FAILED_PAUSE: SignedDuration = SignedDuration::from_mins(1);

/// Where a rollout stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub enum Verdict {
    /// Every member is where it should be.
    Done,
    /// Something is written now, or is under way and will report.
    Moving,
    /// Nothing can start now; what would free it is known (a time, an event, a person).
    Held,
    /// Nothing will start until someone intervenes: a failure limit was reached, or it is stuck.
    Stopped,
    /// Someone asked it to stand still.
    Paused,
    /// The rollout object was refused; its diagnostics say why.
    Invalid,
}

impl Step {
    /// An empty step about `rollout`, to be filled in.
    pub fn new(dialect: &'static str, rollout: &Object, verdict: Verdict) -> Self {
        Self {
            dialect,
            rollout: rollout.key().clone(),
            api_version: rollout.api_version().to_owned(),
            verdict,
            decision: Value::Object(serde_json::Map::new()),
            groups: Vec::new(),
            actions: Vec::new(),
            holds: Vec::new(),
            status: None,
            events: Vec::new(),
            wake_at: None,
            rest: SignedDuration::ZERO,
            series: Vec::new(),
            counts: Vec::new(),
        }
    }

    /// The step of a rollout whose object was refused because of these fields: nothing moves,
    /// and the numbers of earlier decisions are withdrawn.
    pub(crate) fn invalid(dialect: &'static str, rollout: &Object, fields: Vec<String>) -> Self {
        let mut step = Self::new(dialect, rollout, Verdict::Invalid);
        step.holds.push(Hold::of_rollout(HoldReason::Invalid { fields }));
        step
    }

    /// The same with these actions, and with the verdict that they and the holds give: it moves,
    /// something of it has failed, it waits, or nothing is left to do.
    pub(crate) fn judged(mut self, actions: Vec<Action>) -> Self {
        let failed = |hold: &Hold| matches!(hold.reason, HoldReason::Failed { .. });
        self.verdict = if !actions.is_empty() {
            Verdict::Moving
        } else if self.holds.iter().any(failed) {
            Verdict::Stopped
        } else if self.holds.is_empty() {
            Verdict::Done
        } else {
            Verdict::Held
        };
        self.actions = actions;
        self
    }

    /// The same with a rest after a decision that looked at so many objects, which takes some
    /// microseconds each. While they change all the time, deciding takes up to a tenth of the time.
    ///
    /// | objects | rest   |
    /// |--------:|-------:|
    /// |       9 | 0.9 ms |
    /// |   1,500 | 0.15 s |
    /// |  15,000 |  1.5 s |
    pub(crate) fn resting(mut self, objects: usize) -> Self {
        let objects = i64::try_from(objects).unwrap_or(i64::MAX);
        let rest = SignedDuration::from_micros(objects.saturating_mul(REST_MICROS));
        self.rest = rest.min(REST_MAX);
        self
    }

    /// The same for decisions that are cheap unless there are many objects.
    pub(crate) fn resting_if_many(self, objects: usize) -> Self {
        if objects < MANY { self } else { self.resting(objects) }
    }

    /// The step of a rollout whose planning panicked: it is tried again after a pause, and
    /// whenever something changes.
    pub(crate) fn failed(
        dialect: &'static str,
        rollout: &Object,
        panic: String,
        now: Timestamp,
    ) -> Self {
        let mut step = Self::new(dialect, rollout, Verdict::Stopped);
        step.wake_at = now.checked_add(FAILED_PAUSE).ok();
        let hold = Hold::of_rollout(HoldReason::PlanFailed { panic });
        step.holds.push(hold.until(step.wake_at));
        step
    }

    /// The step of a rollout that is held as a whole: nothing is done to its members.
    /// The numbers of earlier decisions are withdrawn.
    pub(crate) fn held(dialect: &'static str, rollout: &Object, hold: Hold) -> Self {
        let mut step = Self::new(dialect, rollout, Verdict::Held);
        step.holds.push(hold);
        step
    }

    /// How many members are done, of how many that are asked for. Members on their way out are not.
    pub fn progress(&self) -> (u32, u32) {
        let wanted = self.groups.iter().filter(|group| !group.outgoing);
        wanted.fold((0, 0), |(done, total): (u32, u32), group| {
            let asked_for = group.total.saturating_sub(group.gone);
            (done.saturating_add(group.done), total.saturating_add(asked_for))
        })
    }

    /// Whether carrying out this step would write anything.
    pub fn is_quiet(&self) -> bool {
        self.actions.is_empty() && self.status.is_none()
    }
}

/// Puts what a dialect decided into its one canonical order.
pub(crate) fn finished(mut step: Step) -> Step {
    // Groups and actions keep the dialect's order, which means something; holds are looked up
    // by name, the rollout's own first.
    fn order(hold: &Hold) -> (bool, Option<&str>, Option<&str>) {
        (hold.member.is_some(), hold.group.as_deref(), hold.member.as_deref())
    }
    step.holds.sort_by(|one, other| order(one).cmp(&order(other)));
    step
}

#[cfg(test)]
mod tests;
