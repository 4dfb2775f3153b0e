//! What the status of a Work reports about its manifests.

use convoy_api::object::member::{list, member};
use serde_json::Value;

use crate::condition::dated::Entry;

/// A status with conditions: that of a Work, or of one of its manifests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportedStatus<'s>(pub(crate) &'s Value);

impl<'s> ReportedStatus<'s> {
    /// The statuses of the manifests, in order.
    pub(crate) fn manifests(self) -> impl Iterator<Item = Self> {
        list(self.0, "manifestConditions").iter().map(Self)
    }

    /// The reason of a condition; none where there is no such condition.
    pub(crate) fn reason(self, kind: &str) -> Option<&'s str> {
        Entry::within(self.0, kind).map(Entry::reason)
    }

    pub(crate) fn has_drifts(self) -> bool {
        member(self.0, "driftDetails").is_some()
    }

    pub(crate) fn has_diffs(self) -> bool {
        member(self.0, "diffDetails").is_some()
    }
}
