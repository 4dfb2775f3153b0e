//! Failed writes, of which one reason is logged once, however many rollouts meet it and however often,
//! until it has gone: expired credentials are one line, not one for each rollout and attempt.

use std::collections::BTreeMap;

use crate::complaints::{Complaint, Complaints};
use crate::rollout::Rollout;

/// Why the last writes of rollouts failed.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    complaints: Complaints,
    of: BTreeMap<Rollout, Complaint>,
}

impl Failures {
    /// A write of a rollout failed and is retried; logs why.
    pub(crate) fn report(&mut self, rollout: &Rollout, why: &str) {
        if self.is_new(rollout, why) {
            tracing::warn!(rollout = %rollout.key, why, "write failed; retrying");
        } else {
            tracing::debug!(rollout = %rollout.key, why, "write failed; retrying");
        }
    }

    /// The writes of a rollout succeed again, or there are none.
    pub(crate) fn settle(&mut self, rollout: &Rollout) {
        if let Some(mut complaint) = self.of.remove(rollout) {
            complaint.settle(&self.complaints);
        }
    }

    fn is_new(&mut self, rollout: &Rollout, why: &str) -> bool {
        self.of.entry(rollout.clone()).or_default().raise(&self.complaints, why)
    }
}

#[cfg(test)]
mod tests {
    use convoy_api::apps::DEPLOYMENT;

    use super::*;

    #[test]
    fn a_reason_is_new_once_until_no_rollout_has_it() {
        let [one, other] =
            ["one", "other"].map(|name| Rollout { dialect: 0, key: DEPLOYMENT.key("shop", name) });
        let mut failures = Failures::default();
        assert!(failures.is_new(&one, "401"));
        assert!(!failures.is_new(&one, "401"), "again");
        assert!(!failures.is_new(&other, "401"), "another rollout");
        failures.settle(&one);
        assert!(!failures.is_new(&one, "401"), "the other has it still");
        failures.settle(&one);
        failures.settle(&other);
        assert!(failures.is_new(&one, "401"), "it had gone");
        assert!(failures.is_new(&one, "503"), "another reason");
    }
}
