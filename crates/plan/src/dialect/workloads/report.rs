//! Decisions as [`Step`]s: writes, status, and where every member stands.

pub(crate) mod budget;
pub(crate) mod cron_job;
pub(crate) mod daemon_set;
pub(crate) mod job;
pub(crate) mod orphan;
pub(crate) mod stateful_set;

use convoy_api::Object;
use jiff::Timestamp;
use serde_json::{Map, Value};
use smol_str::SmolStr;

use super::status;
use crate::hold::{Hold, HoldReason};
use crate::pods::writes::Writes;
use crate::step::{GroupReport, MemberState, Step, Verdict};

/// Where the members of one owner stand.
#[derive(Debug)]
struct Members {
    group: GroupReport,
    holds: Vec<Hold>,
    wake_at: Option<Timestamp>,
}

impl Members {
    fn new(owner: &Object) -> Self {
        let group = GroupReport::new(owner.name().as_str());
        Self { group, holds: Vec::new(), wake_at: None }
    }

    /// Counts a member, with the reason if it does not move.
    fn add(
        &mut self,
        name: impl Into<SmolStr>,
        state: MemberState,
        hold: Option<HoldReason>,
        until: Option<Timestamp>,
    ) {
        let name: SmolStr = name.into();
        self.group.count_member(state, name.clone());
        if let Some(reason) = hold {
            let group = self.group.name.clone();
            self.holds.push(Hold::of_member(name, reason).in_group(group).until(until));
        }
    }

    /// Counts the members that a step did not get to, of `wanted` in all. They have no names yet, so
    /// the rollout's own hold speaks for them.
    fn wait_unseen(&mut self, wanted: i64, seen: usize, hold: Option<HoldReason>) {
        let unseen = usize::try_from(wanted).unwrap_or(usize::MAX).saturating_sub(seen);
        if unseen > 0 {
            self.group.count_many(MemberState::Waiting, crate::count(unseen));
        }
        self.holds.extend(hold.map(Hold::of_rollout));
    }

    fn hold(&mut self, reason: HoldReason) {
        self.holds.push(Hold::of_rollout(reason));
    }

    /// The step. `fields` of the status are as they should read; null removes one.
    fn step(
        mut self,
        dialect: &'static str,
        writes: Writes<'_>,
        owner: &Object,
        fields: Map<String, Value>,
        decision: Value,
    ) -> Step {
        let group = &self.group;
        let in_flight = group.moving + group.settling + group.gone > 0;
        let verdict = if owner.is_deleting() {
            let on = "the garbage collector: it is being deleted".to_owned();
            self.hold(HoldReason::Depends { on });
            Verdict::Held
        } else if !writes.actions.is_empty() || in_flight {
            Verdict::Moving
        } else if group.waiting + group.failed == 0 {
            Verdict::Done
        } else {
            Verdict::Held
        };
        let mut step = Step::new(dialect, owner, verdict);
        step.wake_at = self.holds.iter().filter_map(|hold| hold.until).chain(self.wake_at).min();
        step.status = status::changed(owner, fields);
        step.decision = decision;
        step.groups = vec![self.group];
        (step.actions, step.events, step.holds) = (writes.actions, writes.events, self.holds);
        step
    }
}
