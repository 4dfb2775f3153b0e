//! What happens next to placements, evictions and staged update runs.
//!
//! Everything that puts resources on a cluster, changes them there or takes them off passes the
//! [gate](crate::gate). The limits of each decision, in order of precedence:
//!
//! | decision                                            | limits                                |
//! |-----------------------------------------------------|---------------------------------------|
//! | rolling update: remove a cluster no longer picked   | [`removal_limits`]: maxUnavailable    |
//! | rolling update: remove one that does not work       | none, nothing is lost                 |
//! | rolling update: update a cluster in place           | [`update_limits`]: maxUnavailable     |
//! | rolling update: update a cluster that does not work | none, it cannot get worse             |
//! | rolling update: place resources on a new cluster    | [`bind_limits`]: maxSurge             |
//! | eviction of a cluster that works or may come to     | [`eviction_limits`]: its budget       |
//! | eviction of a cluster that does not work            | none, nothing is lost                 |
//! | update run: update a cluster of a stage             | [`stage_limits`]: the run waits (paused, approval, timed wait, aborted); earlier stages; maxConcurrency |
//! | update run: remove the clusters of its delete stage | [`stage_limits`], without maxConcurrency |
//! | deletion of a placement: remove its clusters        | none                                  |

pub(crate) mod cleanup;
pub(crate) mod eviction;
pub(crate) mod membership;
pub(crate) mod override_history;
pub(crate) mod profile;
pub(crate) mod rollout;
pub(crate) mod schedule;
pub(crate) mod selection;
pub(crate) mod staged;
pub(crate) mod works;

use crate::budget::Rounding;
use crate::dialect::fleet::decide::eviction::Standing;
use crate::dialect::fleet::decide::rollout::group::Groups;
use crate::dialect::fleet::decide::staged::{Concurrency, Wait};
use crate::dialect::fleet::read::binding::Binding;
use crate::dialect::fleet::read::budget::DisruptionBudget;
use crate::gate::{Admission, Limit};
use crate::hold::{HoldReason, NAMED};

const MAX_UNAVAILABLE: &str = "maxUnavailable";

/// De-selected bindings go as long as `target - maxUnavailable` surely ready ones are left; a
/// maxUnavailable of 0 gives moves without downtime. With a target of 0 there is nothing to keep.
///
/// | target | maxUnavailable | ready | leaving | room | because                             |
/// |-------:|---------------:|------:|--------:|-----:|-------------------------------------|
/// |      2 |              1 |     2 |       0 |    1 | one has to stay                     |
/// |      2 |              1 |     2 |       1 |    0 | the one that leaves is lost already |
/// |      5 |              0 |     5 |       0 |    0 | no downtime                         |
/// |      3 |              0 |     4 |       0 |    1 | the surplus goes                    |
/// |      0 |              0 |     0 |       0 |  all | nothing to keep                     |
pub(crate) fn removal_limits(groups: &Groups<'_>) -> Vec<Limit> {
    let counts = &groups.counts;
    match counts.target.checked_sub(counts.max_unavailable) {
        _ if counts.target == 0 => Vec::new(),
        Some(required) => {
            let available = counts.ready.saturating_sub(counts.leaving);
            let missing = counts.missing();
            let by = unavailable(groups, missing);
            vec![Limit::floor(MAX_UNAVAILABLE, available, required, missing, by)]
        }
        // More may be unavailable than are wanted: there is no floor, but slots are.
        None => vec![Limit::slots(
            MAX_UNAVAILABLE,
            counts.missing(),
            counts.max_unavailable.saturating_add(counts.surplus()),
            unavailable(groups, counts.missing()),
        )],
    }
}

/// Updates in place share maxUnavailable with the removals before them, and take at least one
/// slot, because otherwise they could never begin.
///
/// | target | maxUnavailable | ready | leaving | removed | room | because                   |
/// |-------:|---------------:|------:|--------:|--------:|-----:|---------------------------|
/// |      3 |              1 |     3 |       0 |       0 |    1 |                           |
/// |      3 |              1 |     2 |       0 |       0 |    0 | one is missing already    |
/// |      2 |              1 |     2 |       0 |       1 |    0 | the removal takes it      |
/// |      5 |              0 |     5 |       0 |       0 |    1 | at least one              |
/// |      3 |              2 |     4 |       0 |       1 |    2 | the surplus was removed   |
pub(crate) fn update_limits(groups: &Groups<'_>, removals: &Admission<'_>) -> Vec<Limit> {
    let counts = &groups.counts;
    let in_flight = counts.missing().saturating_add(crate::count(removals.starts.len()));
    let ceiling = counts.update_floor().saturating_add(counts.surplus());
    let removed = removals.starts.iter().map(|member| member.name);
    let by = unavailable(groups, counts.missing()).into_iter().chain(removed);
    vec![Limit::slots(MAX_UNAVAILABLE, in_flight, ceiling, by)]
}

/// Clusters that carry the resources, or may come to, beyond the target.
///
/// | target | maxSurge | can be ready | failed | room | because                                    |
/// |-------:|---------:|-------------:|-------:|-----:|--------------------------------------------|
/// |      3 |        1 |            0 |      0 |    4 | a first rollout                            |
/// |      3 |        1 |            3 |      0 |    1 |                                            |
/// |      2 |        2 |            4 |      0 |    0 | those that leave count until they are gone |
/// |      2 |        0 |            0 |      2 |    0 | so do those that do not work               |
pub(crate) fn bind_limits(groups: &Groups<'_>) -> Vec<Limit> {
    let counts = &groups.counts;
    let ceiling = counts.target.saturating_add(counts.max_surge);
    let outgoing = groups.discard.iter().chain(&groups.remove).chain(&groups.leaving);
    let carrying = counts.can_be_ready.saturating_add(counts.failed);
    vec![Limit::slots("maxSurge", carrying, ceiling, first_names(outgoing, NAMED))]
}

/// What a disruption budget leaves to evictions; nothing limits where there is none.
pub(crate) fn eviction_limits(
    budget: Option<&DisruptionBudget<'_>>,
    standing: &Standing<'_>,
) -> Vec<Limit> {
    let closed = |detail| vec![Limit::closed(HoldReason::NotDisruptable { detail })];
    match budget {
        None => Vec::new(),
        Some(DisruptionBudget::MaxUnavailable { share, .. }) => {
            let ceiling = share.resolve(standing.wanted, Rounding::Up);
            let by = standing.unavailable.iter().copied();
            vec![Limit::slots(MAX_UNAVAILABLE, standing.in_flight(), ceiling, by)]
        }
        Some(DisruptionBudget::MinAvailable { share, .. }) => {
            let required = share.resolve(standing.wanted, Rounding::Up);
            let (missing, by) = (standing.in_flight(), standing.unavailable.iter().copied());
            vec![Limit::floor("minAvailable", standing.available, required, missing, by)]
        }
        Some(DisruptionBudget::NotForPickAll { name }) => closed(format!(
            "disruption budget {name} uses a percentage or maxUnavailable, which cannot be \
             computed for a placement of type PickAll; set minAvailable to a number"
        )),
        Some(DisruptionBudget::Unset { name }) => closed(format!(
            "disruption budget {name} allows no disruption; set maxUnavailable or minAvailable"
        )),
    }
}

/// What the clusters of a stage wait for: the run as a whole, the stages before theirs, and a
/// slot of their own stage. The delete stage removes all its clusters at once, without slots.
pub(crate) fn stage_limits(
    run: Option<&Wait>,
    earlier: Option<HoldReason>,
    concurrency: Option<Concurrency>,
) -> Vec<Limit> {
    let closed = run.map(|wait| wait.reason.clone()).into_iter().chain(earlier);
    let slots =
        concurrency.map(|it| Limit::slots("maxConcurrency", it.in_flight, it.ceiling, it.by));
    closed.map(Limit::closed).chain(slots).collect()
}

/// The clusters that are missing from the target, as far as they have a binding.
fn unavailable<'w>(groups: &Groups<'w>, missing: u32) -> Vec<&'w str> {
    let unready = groups.unready.iter().map(|(binding, _)| binding);
    let picked = groups.bind.iter().map(|change| &change.binding);
    let most = NAMED.min(usize::try_from(missing).unwrap_or(NAMED));
    first_names(unready.chain(&groups.leaving).chain(picked), most)
}

/// The names of the first few bindings, each once.
fn first_names<'b, 'w: 'b>(
    bindings: impl Iterator<Item = &'b Binding<'w>>,
    most: usize,
) -> Vec<&'w str> {
    let mut names: Vec<&'w str> = Vec::with_capacity(most);
    for binding in bindings {
        if names.len() == most {
            break;
        }
        if !names.contains(&binding.name()) {
            names.push(binding.name());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::fleet::decide::rollout::counts::Counts;
    use crate::gate::{Candidate, admit, grant};

    #[test]
    fn budgets_of_a_rolling_update_leave_this_much_room() {
        // target, maxUnavailable, maxSurge, ready, leaving, can be ready, failed; removals wanted;
        // removals, updates, binds granted
        let cases = [
            ("update one of three", [3, 1, 1, 3, 0, 3, 0], 0, [0, 1, 1]),
            ("one is unavailable already", [3, 1, 1, 2, 0, 2, 0], 0, [0, 0, 2]),
            ("move two by surge", [2, 1, 2, 2, 0, 2, 0], 2, [1, 0, 2]),
            ("a deleting one is lost already", [2, 1, 2, 2, 1, 4, 0], 1, [0, 0, 0]),
            ("no downtime for removals", [5, 0, 0, 5, 0, 5, 0], 1, [0, 1, 0]),
            ("the surplus goes", [3, 0, 0, 4, 0, 4, 0], 1, [1, 1, 0]),
            ("removals come first", [3, 2, 0, 4, 0, 4, 0], 1, [1, 2, 0]),
            ("nothing to keep", [0, 0, 0, 0, 0, 2, 0], 2, [2, 0, 0]),
            ("first rollout", [3, 1, 1, 0, 0, 0, 0], 0, [0, 0, 4]),
            ("two that do not work are in the way", [2, 0, 0, 0, 0, 0, 2], 0, [0, 0, 0]),
            ("none ready, all may be missing", [1, 2, 0, 0, 0, 2, 0], 2, [1, 0, 0]),
            (
                "huge budgets",
                [3, u32::MAX, u32::MAX, 3, 0, 3, 0],
                1,
                [1, u32::MAX - 1, u32::MAX - 3],
            ),
        ];
        for (name, numbers, removals, want) in cases {
            let [target, max_unavailable, max_surge, ready, leaving, can_be_ready, failed] =
                numbers;
            let counts =
                Counts { target, max_unavailable, max_surge, ready, leaving, can_be_ready, failed };
            let groups = Groups { counts, ..Groups::default() };
            let removed = grant(removals, &removal_limits(&groups)).count;
            let gone = vec![Candidate::free("gone", 0); usize::try_from(removed).unwrap()];
            let removals = admit(gone, &[]);
            let update = grant(u32::MAX, &update_limits(&groups, &removals)).count;
            let bind = grant(u32::MAX, &bind_limits(&groups)).count;
            assert_eq!([removed, update, bind], want, "{name}");
        }
    }
}
