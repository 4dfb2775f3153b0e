//! Decides who starts. A Placement chooses clusters and cuts them into decision groups
//! ([`placement`]); a `ManifestWorkReplicaSet` hands its template through those groups
//! ([`replica_set`]). Which clusters get the template now is decided here.
//!
//! The limits of a cluster that does not have the template yet, in order of precedence:
//!
//! | limit                     | strategies            | a cluster waits                           |
//! |---------------------------|-----------------------|-------------------------------------------|
//! | `mandatoryDecisionGroups` | both progressive ones | until all mandatory groups before it succeeded |
//! | `maxFailures`             | `Progressive`         | while more than so many clusters failed   |
//! |                           | `ProgressivePerGroup` | while more than so many of a group before it failed |
//! | group order               | `ProgressivePerGroup` | until all groups before it are finished   |
//! | `maxConcurrency`          | `Progressive`         | while so many clusters are in flight      |
//! | deferral                  | all                   | for the finalizer, or while the placement is being rewritten |
//!
//! The engine keeps no state: it looks at how far every cluster is and goes through the groups
//! from the first one each time, so a cluster that joins late is simply found unstarted.
//! Removals have one limit, the deferral: but for that, a cluster that is no longer selected loses
//! its work at once. Nothing limits the works of a cluster that leaves ([`registration`]), nor those
//! that are finished and whose time to live is over ([`completed`]).

mod balance;
pub(crate) mod completed;
pub(crate) mod group;
pub(crate) mod placement;
mod predicate;
mod prioritizer;
pub(crate) mod registration;
pub(crate) mod replica_set;
pub(crate) mod satisfaction;
pub(crate) mod schedule;
pub(crate) mod slice;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;
use smol_str::SmolStr;

use super::read::strategy::{GroupReference, Strategy, StrategyType};
use super::read::work_status::{DatedStatus, RolloutStatus};
use crate::budget::{IntOrPercent, Rounding};
use crate::count;
use crate::gate::{self, Candidate, Limit, Permit};
use crate::hold::HoldReason;

/// A decision group, and how far its clusters are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RolloutGroup<'w> {
    pub(crate) index: i64,
    pub(crate) name: SmolStr,
    /// By name.
    pub(crate) members: Vec<(&'w str, RolloutStatus)>,
}

/// Who gets the template of a replica set now, through one placement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rollout<'w> {
    /// By cluster.
    pub(crate) starts: Vec<(&'w str, Permit)>,
    /// Who does not have it and does not get it now, and why.
    pub(crate) holds: BTreeMap<&'w str, HoldReason>,
    /// Set when failures stop the rollout.
    pub(crate) failure_stop: Option<HoldReason>,
    /// The most clusters in flight at once outside mandatory groups, where that is limited.
    pub(crate) ceiling: Option<u32>,
    /// The numbers of the mandatory groups.
    pub(crate) mandatory: BTreeSet<i64>,
    /// When time alone changes something.
    pub(crate) recheck_at: Option<Timestamp>,
    /// The limit that comes last: nobody starts for this reason, whatever the strategy says.
    deferral: Option<Limit>,
    /// The holds so far: a map of thousands is made faster at once than one by one.
    held: Vec<(&'w str, HoldReason)>,
}

/// Decides who of `groups` gets the template now. `group_length` is the most clusters that a
/// decision group may hold. A `deferral` lets nobody start.
pub(crate) fn roll_out<'w>(
    groups: &[RolloutGroup<'w>],
    strategy: &Strategy,
    group_length: u32,
    deferral: Option<HoldReason>,
) -> Rollout<'w> {
    let everybody = || groups.iter().flat_map(|group| &group.members);
    let mut rollout = Rollout {
        recheck_at: everybody().filter_map(|(_, status)| status.recheck_at()).min(),
        deferral: deferral.map(Limit::closed),
        ..Rollout::default()
    };
    let is_first = |group: &&RolloutGroup<'w>| is_mandatory(group, groups, &strategy.mandatory);
    let (first, rest): (Vec<&RolloutGroup<'w>>, Vec<&RolloutGroup<'w>>) =
        groups.iter().partition(is_first);
    rollout.mandatory = first.iter().map(|group| group.index).collect();
    let limits = rollout.admit_in_order(&first, &Tolerance::mandatory(strategy), Vec::new());
    match strategy.kind {
        StrategyType::All => rollout.admit(everybody(), &[]),
        StrategyType::ProgressivePerGroup => {
            rollout.admit_in_order(&rest, &Tolerance::of(strategy), limits);
        }
        // Nothing behind the mandatory groups is counted before they are through.
        StrategyType::Progressive { .. } if !limits.is_empty() => {
            rollout.admit(rest.iter().flat_map(|group| &group.members), &limits);
        }
        StrategyType::Progressive { max_concurrency } => {
            let total = count(rest.iter().map(|group| group.members.len()).sum());
            let ceiling = ceiling(max_concurrency, total, group_length);
            let limits = rollout.progressive_limits(groups, strategy, ceiling);
            let mut members: Vec<_> = rest.iter().flat_map(|group| &group.members).collect();
            members.sort_unstable_by_key(|(cluster, _)| *cluster);
            rollout.admit(members, &limits);
        }
    }
    rollout.starts.sort_unstable_by_key(|(cluster, _)| *cluster);
    rollout.holds = std::mem::take(&mut rollout.held).into_iter().collect();
    rollout
}

/// A decision group, and what its clusters report: none where a cluster does not have the
/// template, otherwise the status and since when it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedGroup<'w> {
    pub index: i64,
    pub name: SmolStr,
    /// By name.
    pub members: Vec<(&'w str, Option<DatedStatus>)>,
}

/// Which clusters get the template at `now`, by name, and when time alone changes something. That
/// is the question that upstream's rollout helper answers; `strategy` is a `rolloutStrategy` in any
/// spelling. The error names its field at fault.
pub fn next_clusters<'w>(
    groups: &[ReportedGroup<'w>],
    strategy: &Value,
    now: Timestamp,
) -> Result<(Vec<&'w str>, Option<Timestamp>), String> {
    let strategy =
        Strategy::read(strategy).map_err(|error| format!("{}: {}", error.field, error.message))?;
    let status = |reported: &Option<DatedStatus>| match reported {
        Some(reported) => RolloutStatus::of(*reported, &strategy, now),
        None => RolloutStatus::Unstarted,
    };
    let read = |group: &ReportedGroup<'w>| RolloutGroup {
        index: group.index,
        name: group.name.clone(),
        members: group.members.iter().map(|(cluster, it)| (*cluster, status(it))).collect(),
    };
    let groups: Vec<RolloutGroup<'w>> = groups.iter().map(read).collect();
    let longest = groups.iter().map(|group| group.members.len()).max().unwrap_or(0);
    let rollout = roll_out(&groups, &strategy, count(longest), None);
    let starts = rollout.starts.iter().map(|(cluster, _)| *cluster).collect();
    Ok((starts, rollout.recheck_at))
}

impl<'w> Rollout<'w> {
    /// Asks the gate for those of `members` who do not have the template.
    fn admit<'m>(
        &mut self,
        members: impl IntoIterator<Item = &'m (&'w str, RolloutStatus)>,
        limits: &[Limit],
    ) where
        'w: 'm,
    {
        let candidates = members.into_iter().enumerate().filter_map(candidate).collect();
        let limits: Vec<Limit> = limits.iter().chain(&self.deferral).cloned().collect();
        let admission = gate::admit(candidates, &limits);
        if let Some(permit) = admission.permit() {
            self.starts.extend(admission.starts.iter().map(|member| (member.name, permit)));
        }
        let holds = admission.holds.into_iter();
        self.held.extend(holds.map(|(member, reason)| (member.name, reason)));
    }

    /// Group after group: a whole group is admitted at once, and the next one when nobody in it
    /// is unfinished and no more failed than may. Gives the limits of whoever comes after.
    fn admit_in_order(
        &mut self,
        groups: &[&RolloutGroup<'w>],
        tolerance: &Tolerance,
        mut limits: Vec<Limit>,
    ) -> Vec<Limit> {
        for group in groups {
            self.admit(&group.members, &limits);
            if limits.is_empty() {
                limits = self.limits_behind(group, tolerance);
            }
        }
        limits
    }

    /// The limits of the groups behind `group`; none once it is finished.
    fn limits_behind(&mut self, group: &RolloutGroup<'_>, tolerance: &Tolerance) -> Vec<Limit> {
        let (unfinished, failures) = tolerance.losses(group);
        let allowed = allowed(tolerance.max_failures, count(group.members.len()));
        let failures = self.failure_limit(failures, allowed, tolerance.mandatory);
        let order = (unfinished > 0).then(|| {
            let behind = group_title(group.index, &group.name);
            Limit::closed(HoldReason::GroupOrder { behind, unfinished })
        });
        failures.into_iter().chain(order).collect()
    }

    /// The limits of clusters that start wherever a slot is free, whatever their group.
    fn progressive_limits(
        &mut self,
        groups: &[RolloutGroup<'w>],
        strategy: &Strategy,
        ceiling: u32,
    ) -> Vec<Limit> {
        let everybody = || groups.iter().flat_map(|group| &group.members);
        let failures = everybody().filter(|(_, status)| status.is_failure()).count();
        let failures = if strategy.tolerates_timeouts { 0 } else { count(failures) };
        let allowed = allowed(strategy.max_failures, count(everybody().count()));
        let mut in_flight: Vec<&str> = everybody()
            .filter(|(_, status)| status.is_in_flight())
            .map(|(cluster, _)| *cluster)
            .collect();
        in_flight.sort_unstable();
        self.ceiling = Some(ceiling);
        let slots = Limit::slots("maxConcurrency", count(in_flight.len()), ceiling, in_flight);
        self.failure_limit(failures, allowed, false).into_iter().chain([slots]).collect()
    }

    /// Stops the rollout if more failed than may.
    fn failure_limit(&mut self, failures: u32, value: u32, mandatory: bool) -> Option<Limit> {
        let (limit, remedy) = if mandatory {
            ("failures in mandatoryDecisionGroups", "fix the manifests")
        } else {
            ("maxFailures", "fix the manifests or raise maxFailures")
        };
        let reason = HoldReason::FailureStop { limit, value, failures, remedy };
        (failures > value).then(|| {
            self.failure_stop = Some(reason.clone());
            Limit::closed(reason)
        })
    }
}

/// A cluster that does not have the template, as the gate sees it.
fn candidate<'w>(
    (index, (cluster, status)): (usize, &(&'w str, RolloutStatus)),
) -> Option<Candidate<'w>> {
    match status {
        RolloutStatus::Unstarted => Some(Candidate::free(cluster, index)),
        RolloutStatus::Terminating => {
            let on = "its former ManifestWork to be deleted".to_owned();
            Some(Candidate::blocked(cluster, index, HoldReason::Depends { on }))
        }
        _ => None,
    }
}

/// What a group may lose and still let the next one start.
struct Tolerance {
    max_failures: IntOrPercent,
    timeouts: bool,
    mandatory: bool,
}

impl Tolerance {
    fn of(strategy: &Strategy) -> Self {
        let Strategy { max_failures, tolerates_timeouts: timeouts, .. } = *strategy;
        Self { max_failures, timeouts, mandatory: false }
    }

    /// Of a mandatory group nothing may fail.
    fn mandatory(strategy: &Strategy) -> Self {
        Self { max_failures: IntOrPercent::Int(0), mandatory: true, ..Self::of(strategy) }
    }

    /// How many of a group are not finished yet, and how many failed.
    fn losses(&self, group: &RolloutGroup<'_>) -> (u32, u32) {
        let (mut unfinished, mut failures) = (0, 0);
        for (_, status) in &group.members {
            match status {
                RolloutStatus::Finished => {}
                RolloutStatus::Failed { .. } if self.timeouts => unfinished += 1,
                RolloutStatus::TimedOut if self.timeouts && !self.mandatory => {}
                RolloutStatus::Failed { .. } | RolloutStatus::TimedOut => failures += 1,
                RolloutStatus::Unstarted
                | RolloutStatus::Terminating
                | RolloutStatus::ToApply
                | RolloutStatus::Progressing { .. }
                | RolloutStatus::Soaking { .. } => unfinished += 1,
            }
        }
        (unfinished, failures)
    }
}

/// Whether any entry means this group: by name, by number, or by a text that may be either.
fn is_mandatory(
    group: &RolloutGroup<'_>,
    groups: &[RolloutGroup<'_>],
    mandatory: &[GroupReference],
) -> bool {
    let is_name = |text: &SmolStr| groups.iter().any(|group| group.name == *text);
    mandatory.iter().any(|entry| match entry {
        GroupReference::Name(name) => group.name == *name,
        GroupReference::Index(index) => group.index == *index,
        GroupReference::Text(text) if is_name(text) => group.name == *text,
        GroupReference::Text(text) => {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            digits && text.parse() == Ok(group.index)
        }
    })
}

/// The most clusters in flight, of `total` that take part.
///
/// | given | total | group length | ceiling | because                     |
/// |-------|------:|-------------:|--------:|-----------------------------|
/// | 50%   |     5 |            2 |       3 | 2.5 rounds up               |
/// | 0     |     5 |            2 |       5 | 0 is no limit               |
/// | 9     |     5 |            2 |       5 | never more than take part   |
/// | none  |     5 |            2 |       2 | as many as a group may hold |
fn ceiling(given: Option<IntOrPercent>, total: u32, group_length: u32) -> u32 {
    let wanted = given.map_or(group_length, |given| given.resolve(total, Rounding::Up));
    if wanted == 0 { total } else { wanted.min(total) }
}

/// How many of `total` may fail.
fn allowed(max_failures: IntOrPercent, total: u32) -> u32 {
    max_failures.resolve(total, Rounding::Up).min(total)
}

/// What a decision group is called where people read it.
pub fn group_title(index: i64, name: &str) -> String {
    if name.is_empty() { format!("group {index}") } else { format!("{name} (group {index})") }
}

#[cfg(test)]
mod tests;
