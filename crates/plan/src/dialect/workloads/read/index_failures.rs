//! How often the pods of an index have failed, in Jobs that limit this for each index. Each pod
//! says how often it was tried before, so the last failed pod of an index is kept until another
//! pod of the index is there.

use std::collections::BTreeMap;

use convoy_api::Object;

use super::pod_failure::{Consequence, PodFailurePolicy};
use crate::dialect::workloads::names::{COMPLETION_INDEX, INDEX_FAILURES, INDEX_IGNORED_FAILURES};
use crate::pods::is_finished;

/// Failures of one index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexFailures {
    pub(crate) counted: i64,
    /// Failures that the policy says not to count.
    pub(crate) ignored: i64,
}

impl IndexFailures {
    /// Those before a pod, as it says itself.
    pub(crate) fn before(pod: &Object) -> Self {
        let number = |key: &str| pod.annotation(key).and_then(|text| text.parse().ok());
        let of = |key: &str| number(key).unwrap_or(0).max(0);
        Self { counted: of(INDEX_FAILURES), ignored: of(INDEX_IGNORED_FAILURES) }
    }

    /// Those up to a failed pod.
    pub(crate) fn up_to(policy: &PodFailurePolicy, pod: &Object) -> Self {
        let Self { counted, ignored } = Self::before(pod);
        match policy.consequence(pod) {
            Some((Consequence::Ignore, _)) => Self { counted, ignored: ignored.saturating_add(1) },
            _ => Self { counted: counted.saturating_add(1), ignored },
        }
    }

    pub(crate) fn total(self) -> i64 {
        self.counted.saturating_add(self.ignored)
    }
}

/// Which index a pod of an indexed Job has.
pub(crate) fn index_of(pod: &Object) -> Option<usize> {
    pod.annotation(COMPLETION_INDEX).or_else(|| pod.label(COMPLETION_INDEX))?.parse().ok()
}

/// The last failed pod of each index that has no later pod.
pub(crate) fn last_failures<'o>(
    owner: &Object,
    pods: &[&'o Object],
) -> BTreeMap<usize, (IndexFailures, &'o Object)> {
    let policy = PodFailurePolicy::read(owner);
    let mut last: BTreeMap<usize, (IndexFailures, &Object)> = BTreeMap::new();
    let over = pods.iter().filter(|pod| is_finished(pod) || pod.is_deleting());
    for pod in over.filter(|pod| pod.status_text("phase") != "Succeeded") {
        let Some(index) = index_of(pod) else { continue };
        let failures = IndexFailures::up_to(&policy, pod);
        let is_later = |(known, _): &(IndexFailures, _)| failures.total() > known.total();
        if last.get(&index).is_none_or(is_later) {
            last.insert(index, (failures, pod));
        }
    }
    for pod in pods {
        let Some(index) = index_of(pod) else { continue };
        let before = IndexFailures::before(pod).total();
        if last.get(&index).is_some_and(|(failures, _)| before >= failures.total()) {
            last.remove(&index);
        }
    }
    last
}
