//! What is told about rollouts: the `decision` summary, groups, holds and verdicts. A placement's
//! step is joined from the parts of its pipeline ([`PartialStep`]), which run independently.

pub(crate) mod available;
pub(crate) mod cleanup;
pub(crate) mod eviction;
pub(crate) mod membership;
pub(crate) mod overrides;
pub(crate) mod rollout;
pub(crate) mod run;
pub(crate) mod schedule;
pub(crate) mod selection;
pub(crate) mod series;
pub(crate) mod works;

use std::collections::BTreeSet;

use convoy_api::ObjectKey;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::hold::{Hold, HoldReason};
use crate::step::{Action, Event, GroupReport, Step, Verdict};

/// What one part of the pipeline (selection, scheduling, rolling update) adds to a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PartialStep {
    /// Keys of the step's `decision`.
    pub(crate) decision: Map<String, Value>,
    pub(crate) groups: Vec<GroupReport>,
    pub(crate) actions: Vec<Action>,
    pub(crate) holds: Vec<Hold>,
    pub(crate) events: Vec<Event>,
    pub(crate) wake_at: Option<Timestamp>,
    /// Where this part stands, before actions are looked at: a part with actions is
    /// [`Verdict::Moving`] in any case. Absent: the part has nothing to do.
    pub(crate) verdict: Option<Verdict>,
}

impl PartialStep {
    /// Joins this part into `step`. The verdict that needs the most attention wins.
    pub(crate) fn join(self, step: &mut Step) {
        let verdict = self.verdict();
        if let Value::Object(decision) = &mut step.decision {
            decision.extend(self.decision);
        }
        step.groups.extend(self.groups);
        step.actions.extend(self.actions);
        step.holds.extend(self.holds);
        step.events.extend(self.events);
        step.wake_at = [step.wake_at, self.wake_at].into_iter().flatten().min();
        if urgency(verdict) > urgency(step.verdict) {
            step.verdict = verdict;
        }
    }

    /// Joins this part behind those that are in `step`: what they write to an object goes first, and
    /// this part sees it in the next step.
    pub(crate) fn join_behind(mut self, step: &mut Step) {
        let written: BTreeSet<&ObjectKey> =
            step.actions.iter().map(|action| &action.target).collect();
        self.actions.retain(|action| !written.contains(&action.target));
        self.join(step);
    }

    fn verdict(&self) -> Verdict {
        match self.verdict {
            _ if !self.actions.is_empty() => Verdict::Moving,
            Some(verdict) => verdict,
            None => Verdict::Done,
        }
    }
}

/// Keeps the promise that nothing is ever stuck without saying so (G6): a step that is not
/// done, writes nothing and waits for nothing says that someone has to look.
pub(crate) fn never_silently_stuck(step: &mut Step) {
    let waits = step.wake_at.is_some() || !step.holds.is_empty();
    let stuck = step.actions.is_empty() && step.status.is_none() && !waits;
    if stuck && matches!(step.verdict, Verdict::Held | Verdict::Stopped) {
        let detail = "no write is due and nothing is awaited".to_owned();
        step.holds.push(Hold::of_rollout(HoldReason::Stalled { detail }));
        step.verdict = Verdict::Stopped;
    }
}

/// Moving outranks waiting: while anything is written or under way, the rollout moves.
fn urgency(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Done => 0,
        Verdict::Paused => 1,
        Verdict::Held => 2,
        Verdict::Stopped => 3,
        Verdict::Moving => 4,
        Verdict::Invalid => 5,
    }
}
