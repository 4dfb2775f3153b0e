//! What earlier rounds have written down: the status of the Work and of its `AppliedWork`, and
//! the hash on applied objects.

use convoy_api::Object;
use convoy_api::object::member::{field, list, text};
use convoy_api::object::meta::timestamp;
use jiff::Timestamp;
use serde_json::Value;

use super::manifest::Identifier;
use super::timings::{Looks, Requeue};
use crate::dialect::fleet_agent::names::{
    APPLIED, APPLY_FAILED, AVAILABLE, DECODING_ERRED, DIFF_REPORTED, SPEC_HASH,
};

/// The status of one manifest as it was written down.
#[derive(Clone, Debug)]
pub(crate) struct Recorded<'w> {
    pub(crate) identifier: Identifier,
    pub(crate) entry: &'w Value,
}

/// The manifests that the status of a Work tells about.
pub(crate) fn of_work(work: &Object) -> Vec<Recorded<'_>> {
    let entries = list(work.status(), "manifestConditions").iter();
    let read = entries.map(|entry| Recorded {
        identifier: Identifier::recorded(field(entry, "identifier")),
        entry,
    });
    read.collect()
}

/// The objects that the status of an `AppliedWork` tells about.
pub(crate) fn of_applied_work(applied: &Object) -> Vec<Identifier> {
    list(applied.status(), "appliedResources").iter().map(Identifier::recorded).collect()
}

impl Recorded<'_> {
    /// Reason and message of the denial, where the server denied the last write.
    pub(crate) fn denial(&self) -> Option<(&'static str, &str)> {
        let conditions = list(self.entry, "conditions").iter();
        let mut applied = conditions.filter(|entry| text(entry, "type") == APPLIED);
        let told = applied.next()?;
        let known = [APPLY_FAILED, DECODING_ERRED].into_iter();
        let reason = known.into_iter().find(|reason| text(told, "reason") == *reason)?;
        Some((reason, text(told, "message")))
    }
}

/// Whether the status of a Work tells about its current generation.
pub(crate) fn is_current(work: &Object) -> bool {
    let condition = work.condition(APPLIED);
    let observed = condition.map(|it| field(it, "observedGeneration").as_i64().unwrap_or_default());
    observed == Some(work.generation())
}

/// When a Work is looked at though nothing changes: counted from the last time that one of its
/// conditions changed.
pub(crate) fn looks(work: &Object, requeue: Requeue, now: Timestamp) -> Looks {
    let entries = list(work.status(), "manifestConditions").iter();
    let all = entries.chain([work.status()]).flat_map(|entry| list(entry, "conditions"));
    let changed = all.filter_map(|entry| timestamp(entry.get("lastTransitionTime"))).max();
    let is_true = |kind: &str| work.condition_status(kind) == Some("True");
    let is_settled = is_true(AVAILABLE) || is_true(DIFF_REPORTED);
    requeue.around(changed.unwrap_or(now), now, is_settled)
}

/// The hash of the manifest that an object was last applied from.
pub(crate) fn spec_hash(live: &Object) -> Option<&str> {
    live.annotation(SPEC_HASH)
}
