//! The numbers of a budget, by the rules of kube-controller-manager.

use std::collections::BTreeMap;

use convoy_api::Object;
use jiff::{SignedDuration, Timestamp};

use crate::budget::{IntOrPercent, Rounding};
use crate::dialect::workloads::read::budget::{self as read, Budget, Demand};
use crate::snapshot::Snapshot;

/// How long an evicted pod may take until it terminates; after that it counts again.
const DELETION_TIMEOUT: SignedDuration = SignedDuration::from_mins(2);

/// What a budget comes to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Count<'w> {
    pub(crate) expected: i64,
    pub(crate) desired: i64,
    pub(crate) healthy: i64,
    pub(crate) allowed: i64,
    /// Evicted pods that do not terminate yet, and are still expected to.
    pub(crate) disrupted: BTreeMap<&'w str, Timestamp>,
    /// Evicted pods that nothing came of.
    pub(crate) overdue: Vec<&'w Object>,
    /// Whether pods without a controller are among them where their scale is asked for.
    pub(crate) has_unmanaged: bool,
    /// When the first of the evicted pods counts again.
    pub(crate) recheck_at: Option<Timestamp>,
}

/// The scale of all controllers of a budget's pods.
#[derive(Clone, Copy, Debug, Default)]
struct Scale {
    expected: i64,
    has_unmanaged: bool,
}

/// Computes a budget; an error is why that is not possible.
///
/// | budget              | pods, scale | healthy | expected | desired | allowed |
/// |---------------------|-------------|--------:|---------:|--------:|--------:|
/// | minAvailable 2      | 3           |       3 |        3 |       2 |       1 |
/// | minAvailable 67%    | 3, scale 3  |       3 |        3 |       3 |       0 |
/// | maxUnavailable 30%  | 10, scale 10|       9 |       10 |       7 |       2 |
/// | maxUnavailable 1    | 0           |       0 |        0 |       0 |       0 |
pub(crate) fn decide<'w>(
    snapshot: &Snapshot<'w>,
    budget: &Budget<'w>,
    now: Timestamp,
) -> Result<Count<'w>, String> {
    let pods = i64::try_from(budget.pods.len()).unwrap_or(i64::MAX);
    let (scale, desired) = match budget.demand {
        Demand::Nothing => (Scale::default(), 0),
        Demand::MinAvailable(IntOrPercent::Int(least)) => {
            (Scale { expected: pods, has_unmanaged: false }, least)
        }
        Demand::MinAvailable(share) => {
            let scale = scale(snapshot, budget)?;
            (scale, amount(share, scale.expected))
        }
        Demand::MaxUnavailable(most) => {
            let scale = scale(snapshot, budget)?;
            (scale, scale.expected.saturating_sub(amount(most, scale.expected)).max(0))
        }
    };
    let mut count = Count {
        expected: scale.expected,
        desired,
        healthy: 0,
        allowed: 0,
        disrupted: BTreeMap::new(),
        overdue: Vec::new(),
        has_unmanaged: scale.has_unmanaged,
        recheck_at: None,
    };
    count.evictions(budget, now);
    let is_healthy = |pod: &&&Object| {
        !pod.is_deleting()
            && !count.disrupted.contains_key(pod.name().as_str())
            && pod.condition_status("Ready") == Some("True")
    };
    count.healthy = i64::try_from(budget.pods.iter().filter(is_healthy).count()).unwrap_or(0);
    // A budget without pods allows nothing, so that it is safe when the first one comes.
    if count.expected > 0 {
        count.allowed = count.healthy.saturating_sub(count.desired).max(0);
    }
    Ok(count)
}

impl<'w> Count<'w> {
    /// Sorts the evicted pods that do not terminate into those that still may, and the others.
    fn evictions(&mut self, budget: &Budget<'w>, now: Timestamp) {
        for pod in budget.pods.iter().filter(|pod| !pod.is_deleting()) {
            let Some(at) = budget.disrupted.get(pod.name().as_str()) else { continue };
            let due = at.checked_add(DELETION_TIMEOUT).unwrap_or(Timestamp::MAX);
            if due <= now {
                self.overdue.push(pod);
                continue;
            }
            self.disrupted.insert(pod.name(), *at);
            self.recheck_at = Some(self.recheck_at.map_or(due, |known| known.min(due)));
        }
    }
}

/// The sum of the scales of all controllers that own pods of the budget, each once.
fn scale(snapshot: &Snapshot<'_>, budget: &Budget<'_>) -> Result<Scale, String> {
    let mut scales: BTreeMap<&str, i64> = BTreeMap::new();
    let mut has_unmanaged = false;
    for pod in &budget.pods {
        let Some(reference) = pod.controller() else {
            has_unmanaged = true;
            continue;
        };
        if scales.contains_key(reference.uid) {
            continue;
        }
        let Some((uid, replicas)) = read::scale(snapshot, &reference)? else {
            return Err(format!("found no controllers for pod {:?}", pod.name()));
        };
        scales.insert(uid, replicas);
    }
    let expected = scales.values().fold(0_i64, |sum, scale| sum.saturating_add(*scale));
    Ok(Scale { expected, has_unmanaged })
}

/// A count, or a share rounded up.
fn amount(given: IntOrPercent, of: i64) -> i64 {
    match given {
        IntOrPercent::Int(count) => count,
        share @ IntOrPercent::Percent(_) => {
            i64::from(share.resolve(u32::try_from(of).unwrap_or(0), Rounding::Up))
        }
    }
}
