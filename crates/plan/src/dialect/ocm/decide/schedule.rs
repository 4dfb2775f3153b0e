//! Which clusters a placement selects, and what kept the others out.

use convoy_api::Object;
use convoy_api::ocm::names::{MANAGED_CLUSTER, MANAGED_CLUSTER_SET, MANAGED_CLUSTER_SET_BINDING};
use jiff::{SignedDuration, Timestamp};

use super::{predicate, prioritizer};
use crate::dialect::ocm::read::cluster::{Membership, taints};
use crate::dialect::ocm::read::decisions::Decisions;
use crate::dialect::ocm::read::placement::{Policy, Toleration};
use crate::hold::HoldReason;
use crate::snapshot::Snapshot;
use crate::taint::Taint;

/// The result of scheduling a placement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedule<'w> {
    pub(crate) eligibility: Eligibility,
    /// By name; decision groups order them anew.
    pub(crate) selected: Vec<&'w Object>,
    /// Who passed all filters and what they score, by name.
    pub(crate) scores: Vec<(&'w str, i64)>,
    /// Candidates that are not selected, and why.
    pub(crate) not_selected: Vec<(&'w str, HoldReason)>,
    /// How many more clusters are wanted than could be selected.
    pub(crate) unscheduled: usize,
    /// Add-on scores that no longer hold.
    pub(crate) expired: Vec<String>,
    /// When a decided cluster stops being tolerated.
    pub(crate) requeue_at: Option<Timestamp>,
    /// When anything changes by time alone, for clusters that are only now selected as well.
    pub(crate) wake_at: Option<Timestamp>,
}

/// Where a placement may look for clusters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Eligibility {
    /// Whether any binding of the namespace leads to a set.
    pub(crate) bound: bool,
    /// The sets it may use.
    pub(crate) sets: Vec<String>,
    pub(crate) candidates: usize,
    /// What is wrong with a set, so that nothing can be scheduled.
    pub(crate) error: Option<String>,
}

/// Schedules `placement`: candidates, filters, scores, choice.
pub(crate) fn schedule<'w>(
    snapshot: &Snapshot<'w>,
    placement: &Object,
    policy: &Policy,
    current: &Decisions<'_>,
    now: Timestamp,
) -> Schedule<'w> {
    let mut schedule = Schedule::default();
    let candidates = candidates(snapshot, placement, policy, &mut schedule.eligibility);
    if schedule.eligibility.error.is_some() {
        return schedule;
    }
    let mut feasible = Vec::new();
    for cluster in candidates {
        if !predicate::passes(snapshot, policy, cluster) {
            let detail = match policy.predicates.len() {
                1 => "the predicate does not match".to_owned(),
                several => format!("none of {several} predicates matches"),
            };
            let reason = HoldReason::NotSelected { detail };
            schedule.not_selected.push((cluster.name(), reason));
            continue;
        }
        let decided = current.holds(cluster.name());
        match tolerance(cluster, &policy.tolerations, decided, now) {
            Ok(until) => {
                schedule.wake_at = earlier(schedule.wake_at, until);
                if decided {
                    schedule.requeue_at = earlier(schedule.requeue_at, until);
                }
                feasible.push(cluster);
            }
            Err(taint) => {
                let reason = HoldReason::TaintNotTolerated { taint };
                schedule.not_selected.push((cluster.name(), reason));
            }
        }
    }
    let scores =
        prioritizer::scores(snapshot, placement, &policy.prioritizers, &feasible, current, now);
    let just_past =
        scores.expires_at.and_then(|at| at.checked_add(SignedDuration::from_nanos(1)).ok());
    schedule.wake_at = earlier(schedule.wake_at, just_past);
    schedule.expired = scores.expired;
    schedule.scores =
        feasible.iter().zip(&scores.totals).map(|(c, score)| (c.name().as_str(), *score)).collect();
    choose(&mut schedule, feasible, &scores.totals, policy.wanted);
    schedule
}

/// The clusters of the sets that the namespace is bound to and the placement asks for.
fn candidates<'w>(
    snapshot: &Snapshot<'w>,
    placement: &Object,
    policy: &Policy,
    eligibility: &mut Eligibility,
) -> Vec<&'w Object> {
    let bindings = snapshot.of(&MANAGED_CLUSTER_SET_BINDING).iter();
    let bindings = bindings.filter(|binding| binding.namespace() == placement.namespace());
    let bound = bindings.filter_map(|b| snapshot.find(&MANAGED_CLUSTER_SET, "", b.name()));
    let bound: Vec<&Object> = bound.collect();
    eligibility.bound = !bound.is_empty();
    let asked =
        |set: &&Object| policy.cluster_sets.is_empty() || policy.cluster_sets.contains(set.name());
    let mut memberships = Vec::new();
    for set in bound.into_iter().filter(asked) {
        eligibility.sets.push(set.name().to_string());
        match Membership::read(set) {
            Ok(membership) => memberships.push(membership),
            Err(error) => {
                eligibility.error.get_or_insert(error);
            }
        }
    }
    let clusters = snapshot.of(&MANAGED_CLUSTER).iter().copied();
    let members = clusters.filter(|cluster| {
        !cluster.is_deleting() && memberships.iter().any(|members| members.contains(cluster))
    });
    let members: Vec<&'w Object> = members.collect();
    eligibility.candidates = members.len();
    members
}

/// Until when all taints of a cluster are tolerated, or the first that is not.
///
/// A decided cluster keeps its place under `NoSelectIfNew`; `PreferNoSelect` never repels.
fn tolerance(
    cluster: &Object,
    tolerations: &[Toleration],
    decided: bool,
    now: Timestamp,
) -> Result<Option<Timestamp>, String> {
    let mut until = None;
    for (taint, added) in taints(cluster) {
        let harmless =
            taint.effect == "PreferNoSelect" || taint.effect == "NoSelectIfNew" && decided;
        if harmless {
            continue;
        }
        let holding = tolerations
            .iter()
            .filter(|toleration| toleration.covers(&taint))
            .find_map(|toleration| toleration.holds(added, now));
        match holding {
            Some(expiry) => until = earlier(until, expiry),
            None => return Err(taint.to_string()),
        }
    }
    Ok(until)
}

impl Toleration {
    fn covers(&self, taint: &Taint<'_>) -> bool {
        let Self { key, exists, value, effect, secs: _ } = self;
        (effect.is_empty() || effect == taint.effect)
            && (key.is_empty() || key == taint.key)
            && (*exists || value == taint.value)
    }

    /// Whether it holds at `now`, and until when. At the very instant it has expired.
    #[expect(clippy::option_option, reason = "expired, for a time and for ever are three answers")]
    fn holds(&self, added: Option<Timestamp>, now: Timestamp) -> Option<Option<Timestamp>> {
        let Some(secs) = self.secs else { return Some(None) };
        let added = added?; // a taint of unknown age is older than any limit
        match added.checked_add(SignedDuration::from_secs(secs)) {
            Ok(expiry) => (now < expiry).then_some(Some(expiry)),
            Err(_) => (secs > 0).then_some(None), // beyond the calendar is for ever
        }
    }
}

/// Takes the best, by score and then by name.
fn choose<'w>(
    schedule: &mut Schedule<'w>,
    feasible: Vec<&'w Object>,
    totals: &[i64],
    wanted: Option<usize>,
) {
    let wanted = wanted.unwrap_or(feasible.len());
    schedule.unscheduled = wanted.saturating_sub(feasible.len());
    if wanted >= feasible.len() {
        schedule.selected = feasible;
        return;
    }
    let mut ranked: Vec<(usize, &'w Object)> = feasible.into_iter().enumerate().collect();
    ranked.sort_by(|(a, x), (b, y)| totals[*b].cmp(&totals[*a]).then(x.name().cmp(y.name())));
    let (chosen, rest) = ranked.split_at(wanted);
    schedule.selected = chosen.iter().map(|(_, cluster)| *cluster).collect();
    schedule.selected.sort_by(|a, b| a.name().cmp(b.name()));
    for (rank, (at, cluster)) in rest.iter().enumerate() {
        let (score, rank) = (totals[*at], wanted + rank + 1);
        let detail = format!("score {score} is rank {rank}; numberOfClusters is {wanted}");
        schedule.not_selected.push((cluster.name(), HoldReason::NotSelected { detail }));
    }
}

pub(crate) fn earlier(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    a.into_iter().chain(b).min()
}
