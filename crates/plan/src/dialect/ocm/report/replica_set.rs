//! A decision about a replica set as a step.

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::Object;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::seconds_until;
use crate::count;
use crate::dialect::ocm::decide::group_title;
use crate::dialect::ocm::decide::replica_set::{
    Decision, PlacementRollout, Reference, Removals, Rolling,
};
use crate::dialect::ocm::decide::schedule::earlier;
use crate::dialect::ocm::names::DIALECT;
use crate::dialect::ocm::names::NAME_FIELD;
use crate::dialect::ocm::read::replica_set::referenced;
use crate::dialect::ocm::read::work_status::RolloutStatus;
use crate::hold::{Hold, HoldReason};
use crate::step::{Action, GroupReport, MemberState, Step, Verdict};

/// The step of a replica set, from what was decided and what is written.
pub(crate) fn step(
    replica_set: &Object,
    decision: &Decision<'_>,
    actions: Vec<Action>,
    status: Option<Value>,
    now: Timestamp,
) -> Step {
    let mut step = Step::new(DIALECT, replica_set, Verdict::Done);
    step.actions = actions;
    step.status = status;
    match decision {
        Decision::NameTooLong => {
            step.verdict = Verdict::Invalid;
            let fields = vec![NAME_FIELD.to_owned()];
            step.holds.push(Hold::of_rollout(HoldReason::Invalid { fields }));
            step.decision = Summary::default().json(now);
        }
        Decision::Deleting { removals, waits_for, .. } => {
            deleting(&mut step, removals, *waits_for, now);
        }
        Decision::Rolling(rolling) => {
            let several = referenced(replica_set).count() > 1;
            Reporter { step: &mut step, rolling, several }.report(now);
        }
    }
    step
}

fn deleting(step: &mut Step, removals: &Removals<'_>, waits_for: usize, now: Timestamp) {
    if waits_for > 0 {
        let on = format!("{waits_for} ManifestWorks to be deleted");
        step.holds.push(Hold::of_rollout(HoldReason::Depends { on }));
    }
    if waits_for > 0 || !step.actions.is_empty() {
        step.verdict = Verdict::Moving;
    }
    step.groups.extend(removed(removals.len(), 0));
    let removed = removals.clusters().collect();
    step.decision = Summary { removed, ..Summary::default() }.json(now);
}

/// The name of the group of works that go.
const REMOVED: &str = "removed";

/// The group of works that go now or later; none if there are none.
fn removed(works: usize, waiting: usize) -> Option<GroupReport> {
    let mut report = GroupReport::new(REMOVED);
    report.count_many(MemberState::Gone, count(works));
    report.count_many(MemberState::Waiting, count(waiting));
    (report.total > 0).then_some(report)
}

/// The keys that the vectors know.
#[derive(Default)]
struct Summary<'w> {
    rollout: BTreeSet<&'w str>,
    waiting: BTreeSet<&'w str>,
    timed_out: BTreeSet<&'w str>,
    failed: BTreeSet<&'w str>,
    removed: BTreeSet<&'w str>,
    recheck_at: Option<Timestamp>,
}

impl<'w> Summary<'w> {
    fn of(rolling: &Rolling<'w>) -> Self {
        let mut summary =
            Self { removed: rolling.unreferenced.clusters().collect(), ..Self::default() };
        for placement in rolling.rollouts() {
            summary.rollout.extend(placement.starts.iter().map(|start| start.cluster));
            summary.waiting.extend(placement.rollout.holds.keys());
            summary.removed.extend(placement.removals.clusters());
            for (cluster, status) in placement.members() {
                match status {
                    RolloutStatus::TimedOut => _ = summary.timed_out.insert(cluster),
                    RolloutStatus::Failed { .. } => _ = summary.failed.insert(cluster),
                    _ => {}
                }
            }
            summary.recheck_at = earlier(summary.recheck_at, placement.rollout.recheck_at);
        }
        summary
    }

    fn json(&self, now: Timestamp) -> Value {
        json!({
            "rollout": self.rollout,
            "waiting": self.waiting,
            "timedOut": self.timed_out,
            "failed": self.failed,
            "removed": self.removed,
            "requeueAfterSeconds": seconds_until(self.recheck_at, now),
        })
    }
}

/// Fills in the step of a replica set that is rolled out.
struct Reporter<'a, 'w> {
    step: &'a mut Step,
    rolling: &'a Rolling<'w>,
    /// Whether there are several references, so that groups have to say whose they are.
    several: bool,
}

impl<'w> Reporter<'_, 'w> {
    fn report(mut self, now: Timestamp) {
        let rolling = self.rolling;
        for reference in &rolling.references {
            match reference {
                Reference::NotFound(name) => {
                    let reason =
                        HoldReason::Missing { kind: "Placement", name: (*name).to_owned() };
                    self.step.holds.push(Hold::of_rollout(reason));
                }
                Reference::Unreadable(error) => {
                    let reason = HoldReason::Stalled { detail: error.clone() };
                    self.step.holds.push(Hold::of_rollout(reason));
                }
                Reference::Rollout(placement) => self.placement(placement),
            }
        }
        let going: usize = rolling.rollouts().map(|placement| placement.removals.len()).sum();
        // A cluster with one work too many is selected: its own group tells what it waits for.
        let waiting = rolling.rollouts().flat_map(|placement| &placement.removals.holds);
        let waiting: BTreeMap<&str, &HoldReason> = waiting.map(|(at, it)| (*at, it)).collect();
        self.step.groups.extend(removed(rolling.unreferenced.len() + going, waiting.len()));
        let holds = waiting
            .into_iter()
            .map(|(cluster, reason)| Hold::of_member(cluster, reason.clone()).in_group(REMOVED));
        self.step.holds.extend(holds);
        let summary = Summary::of(rolling);
        self.step.verdict = self.verdict(summary.recheck_at);
        self.step.wake_at = summary.recheck_at;
        self.step.decision = summary.json(now);
        self.hold_stopped(summary.timed_out.len() + summary.failed.len());
    }

    /// The groups and holds of one reference.
    fn placement(&mut self, placement: &PlacementRollout<'w>) {
        let rollout = &placement.rollout;
        for group in &placement.groups {
            let title = group_title(group.index, &group.name);
            let title =
                if self.several { format!("{}: {title}", placement.placement) } else { title };
            let mut report = GroupReport::new(title.clone());
            report.ceiling = rollout.ceiling.filter(|_| !rollout.mandatory.contains(&group.index));
            for (cluster, status) in &group.members {
                let waits = rollout.holds.get(cluster).cloned();
                report.count_member(state(*status, waits.is_none()), *cluster);
                if let Some(reason) = waits.or_else(|| in_flight(*status, placement)) {
                    let hold = Hold::of_member(*cluster, reason).in_group(title.clone());
                    self.step.holds.push(hold.until(status.recheck_at()));
                }
            }
            self.step.groups.push(report);
        }
        if placement.selects_nothing {
            let detail = format!("Placement {} selects no cluster", placement.placement);
            self.step.holds.push(Hold::of_rollout(HoldReason::NotSelected { detail }));
        }
        if let Some(reason) = &rollout.failure_stop {
            let hold = Hold::of_rollout(reason.clone());
            let name = placement.placement.clone();
            self.step.holds.push(if self.several { hold.in_group(name) } else { hold });
        }
    }

    fn verdict(&self, recheck_at: Option<Timestamp>) -> Verdict {
        let any = |count: fn(&GroupReport) -> u32| self.step.groups.iter().any(|g| count(g) > 0);
        let depends = |hold: &Hold| matches!(hold.reason, HoldReason::Depends { .. });
        if !self.step.actions.is_empty() || any(|group| group.moving + group.settling + group.gone)
        {
            Verdict::Moving
        } else if self.rolling.is_broken()
            || self.rolling.rollouts().any(|placement| placement.selects_nothing)
            || recheck_at.is_some()
            || self.step.holds.iter().any(depends)
        {
            Verdict::Held
        } else if any(|group| group.waiting + group.failed) {
            Verdict::Stopped
        } else {
            Verdict::Done
        }
    }

    /// A rollout that is stopped has a hold of its own.
    fn hold_stopped(&mut self, failed: usize) {
        let stopped = self.step.verdict == Verdict::Stopped;
        if stopped && self.step.holds.iter().all(|hold| hold.member.is_some()) {
            let total: u32 = self.step.groups.iter().map(|group| group.total).sum();
            let detail = format!("{failed} of {total} clusters failed or timed out");
            self.step.holds.push(Hold::of_rollout(HoldReason::Failed { detail }));
        }
    }
}

/// How far a cluster is, in the words that all dialects share.
fn state(status: RolloutStatus, starts: bool) -> MemberState {
    match status {
        RolloutStatus::Unstarted if starts => MemberState::Moving,
        RolloutStatus::Unstarted | RolloutStatus::Terminating => MemberState::Waiting,
        RolloutStatus::ToApply | RolloutStatus::Progressing { .. } => MemberState::Moving,
        RolloutStatus::Soaking { .. } => MemberState::Settling,
        RolloutStatus::Finished => MemberState::Done,
        RolloutStatus::Failed { .. } | RolloutStatus::TimedOut => MemberState::Failed,
    }
}

/// What a cluster that has the template is waiting for, if it is.
fn in_flight(status: RolloutStatus, placement: &PlacementRollout<'_>) -> Option<HoldReason> {
    let not_available = |detail: &str| HoldReason::NotAvailable { detail: detail.to_owned() };
    Some(match status {
        RolloutStatus::Unstarted | RolloutStatus::Terminating | RolloutStatus::Finished => {
            return None;
        }
        RolloutStatus::ToApply => not_available("its agent has not applied the ManifestWork yet"),
        RolloutStatus::Progressing { .. } => not_available("the ManifestWork is still progressing"),
        RolloutStatus::Soaking { .. } => {
            HoldReason::Settling { for_secs: placement.strategy.min_success_time.as_secs() }
        }
        RolloutStatus::Failed { .. } => {
            let detail = "the ManifestWork is degraded or could not be applied".to_owned();
            HoldReason::Failed { detail }
        }
        RolloutStatus::TimedOut => {
            let deadline = placement.strategy.progress_deadline;
            let secs = deadline.map_or(0, |deadline| deadline.as_secs());
            HoldReason::Failed {
                detail: format!("not successful within progressDeadline ({secs}s)"),
            }
        }
    })
}
