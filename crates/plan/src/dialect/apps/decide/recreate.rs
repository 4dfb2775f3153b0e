//! Recreate: every old pod goes, and only when all are gone does the new set get replicas.

use std::collections::BTreeSet;

use convoy_api::Object;

use super::{DeploymentDecision, StatusScope, number};
use crate::dialect::apps::read::owned_set::OwnedSet;
use crate::gate;
use crate::pods::is_finished;

impl<'o> DeploymentDecision<'o> {
    pub(super) fn recreate(&mut self) -> StatusScope {
        let shrank = self.stop_old();
        let limits = self.recreate_limits(shrank);
        let growth = gate::grant(self.new_lacks(), &limits);
        if !limits.is_empty() {
            self.hold_new(&growth);
            return StatusScope::Progress;
        }
        if self.ensure_new(&growth).is_err() {
            return StatusScope::Conditions;
        }
        self.resize_new(&growth);
        if self.was_complete() {
            self.trim_history();
        }
        StatusScope::Progress
    }

    /// Recreate promises no availability, so nothing limits how many old replicas go.
    fn stop_old(&mut self) -> bool {
        let (desired, most) = (self.deployment.replicas, self.deployment.most());
        let size: i64 = self.old().filter(|set| set.is_active()).map(|set| set.had).sum();
        let Some(permit) = gate::grant(number(size), &[]).permit() else { return false };
        for set in self.old_mut().filter(|set| set.is_active()) {
            set.resize(0, permit);
            set.record_size(desired, most);
        }
        true
    }

    /// Old replicas that are still there: as their sets report them, those on their way out
    /// included, or as pods that run. The status of a set may arrive before its pods do, so that
    /// neither alone is enough.
    pub(super) fn old_replicas_left(&self) -> i64 {
        let reported = |set: &OwnedSet<'_>| {
            set.counts.replicas.max(0).saturating_add(set.counts.terminating.unwrap_or(0).max(0))
        };
        let reported = self.old().map(reported).fold(0, i64::saturating_add);
        let running = self.old_pods().filter(|pod| !is_finished(pod)).count();
        reported.max(i64::try_from(running).unwrap_or(i64::MAX))
    }

    fn old_pods(&self) -> impl Iterator<Item = &'o Object> {
        let old: BTreeSet<&str> = self.old().filter_map(|set| set.object.uid()).collect();
        let pods = self.pods;
        pods.iter().copied().filter(move |pod| {
            pod.controller().is_some_and(|controller| old.contains(controller.uid))
        })
    }
}
