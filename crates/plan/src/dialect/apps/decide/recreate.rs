//! Recreate: everything old goes, and only when it is gone does the new one come.

use std::collections::BTreeSet;

use convoy_api::Object;
use convoy_api::object::member::member;
use serde_json::Value;

use crate::dialect::apps::decide::{Ending, Pass};
use crate::dialect::apps::read::owned_set::Set;

impl<'o> Pass<'o> {
    pub(crate) fn recreate(&mut self) -> Ending {
        let (desired, most) = (self.deployment.replicas, self.deployment.most());
        let mut shrank = false;
        for set in self.old_mut().filter(|set| set.is_active()) {
            set.resize(0, desired, most);
            shrank = true;
        }
        // Pods may still be made for a set that nobody has seen shrink.
        let unheard = self.old().any(|set| set.may_have().is_none());
        if shrank || unheard || self.old_replicas_left() > 0 {
            return Ending::Rollout;
        }
        if self.ensure_new(desired).is_err() {
            return Ending::Aside;
        }
        if let Some(at) = self.new
            && self.sets[at].had != desired
        {
            self.resize(at, desired);
        }
        if self.was_complete() {
            self.trim_history();
        }
        Ending::Rollout
    }

    /// Old replicas that are still there: as their sets report them, those on their way out
    /// included, or as pods that run. A set may be heard of before its pods are, so that neither
    /// alone is enough.
    pub(crate) fn old_replicas_left(&self) -> i64 {
        let reported = |set: &Set<'_>| {
            set.counts.replicas.max(0).saturating_add(set.counts.terminating.unwrap_or(0).max(0))
        };
        let reported = self.old().map(reported).fold(0, i64::saturating_add);
        let running = self.old_pods().filter(|pod| !is_over(pod)).count();
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

/// Whether a pod has run to its end. One whose phase is not known counts as running.
pub(crate) fn is_over(pod: &Object) -> bool {
    matches!(member(pod.status(), "phase").and_then(Value::as_str), Some("Failed" | "Succeeded"))
}
