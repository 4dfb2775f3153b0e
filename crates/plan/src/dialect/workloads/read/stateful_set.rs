//! A StatefulSet and its pods, by ordinal.

use std::collections::BTreeMap;
use std::ops::Range;

use convoy_api::Object;
use convoy_api::apps::spec::StatefulSetSpec;
use convoy_api::text::CountOrPercent;
use jiff::Timestamp;

use super::revisions::Revisions;
use super::{Health, OwnedPods, Unreadable, health};
use crate::budget::{IntOrPercent, Rounding};
use crate::dialect::workloads::names::REVISION_HASH;
use crate::snapshot::Snapshot;

#[derive(Debug)]
pub(crate) struct StatefulSet<'o> {
    pub(crate) owner: &'o Object,
    pub(crate) owned: OwnedPods<'o>,
    pub(crate) revisions: Revisions<'o>,
    /// The ordinals that are wanted.
    pub(crate) wanted: Range<i64>,
    /// By ordinal.
    pub(crate) pods: BTreeMap<i64, (&'o Object, Health)>,
    /// `OrderedReady`: one at a time, each when the one before is available.
    pub(crate) is_ordered: bool,
    /// Ordinals below it stay at the current revision; none if nothing is replaced.
    pub(crate) partition: Option<i64>,
    /// How many pods may be unavailable while they are replaced, at least one.
    pub(crate) max_unavailable: u32,
    /// The revision that was rolled out before.
    pub(crate) current: String,
    /// The revision of the template.
    pub(crate) update: String,
    pub(crate) min_ready_secs: i64,
}

impl<'o> StatefulSet<'o> {
    pub(crate) fn read(snapshot: &Snapshot<'o>, now: Timestamp) -> Result<Self, Unreadable> {
        let owner = snapshot.rollout();
        let spec: StatefulSetSpec = owner.spec_view()?;
        let owned = OwnedPods::read(snapshot)?;
        let revisions = Revisions::read(snapshot, spec.revision_history_limit);
        let min_ready_secs = spec.min_ready_seconds.unwrap_or(0);
        let start = spec.ordinals.unwrap_or_default().start.unwrap_or(0).max(0);
        let replicas = spec.replicas.unwrap_or(1).max(0);
        let strategy = spec.update_strategy.unwrap_or_default();
        let rolling = strategy.rolling_update.unwrap_or_default();
        let max_unavailable = max_unavailable(rolling.max_unavailable.as_ref(), replicas)?;
        let partition = start.saturating_add(rolling.partition.unwrap_or(0));
        let numbered = owned.all.iter().filter_map(|pod| {
            let ordinal = ordinal(owner, pod)?;
            Some((ordinal, (*pod, health(pod, min_ready_secs, now))))
        });
        let known = owner.status_text("currentRevision");
        let known = Some(known).filter(|name| revisions.template_of(name).is_some());
        Ok(Self {
            owner,
            wanted: start..start.saturating_add(replicas),
            pods: numbered.collect(),
            is_ordered: spec.pod_management_policy.as_deref() != Some("Parallel"),
            partition: (strategy.kind.as_deref() != Some("OnDelete")).then_some(partition),
            max_unavailable,
            current: known.unwrap_or(&revisions.name).to_owned(),
            update: revisions.name.clone(),
            min_ready_secs,
            owned,
            revisions,
        })
    }

    /// How many wanted ordinals have no pod.
    pub(crate) fn missing(&self) -> usize {
        let wanted = usize::try_from(self.wanted.end - self.wanted.start).unwrap_or(0);
        wanted.saturating_sub(self.pods.keys().filter(|it| self.wanted.contains(it)).count())
    }

    /// The wanted ordinals up to the one at which more than `missing` have no pod.
    pub(crate) fn wanted_up_to(&self, mut missing: u32) -> Vec<i64> {
        let is_near = |ordinal: &i64| {
            self.pods.contains_key(ordinal)
                || missing.checked_sub(1).map(|left| missing = left).is_some()
        };
        let near = self.wanted.clone().take_while(is_near);
        near.collect()
    }

    /// Whether the pod of an ordinal is to be replaced.
    pub(crate) fn is_outdated(&self, ordinal: i64, pod: &Object) -> bool {
        self.partition.is_some_and(|partition| ordinal >= partition)
            && pod.label(REVISION_HASH) != Some(self.update.as_str())
    }

    /// The name of the pod of an ordinal.
    pub(crate) fn name(&self, ordinal: i64) -> String {
        format!("{}-{ordinal}", self.owner.name())
    }
}

/// A share of the replicas, rounded down, and never none; one where nothing is said.
fn max_unavailable(given: Option<&CountOrPercent>, replicas: i64) -> Result<u32, Unreadable> {
    let Some(given) = given else { return Ok(1) };
    let field = "spec.updateStrategy.rollingUpdate.maxUnavailable";
    let amount = IntOrPercent::from_view(given).map_err(|_| Unreadable::new(field))?;
    let replicas = u32::try_from(replicas).unwrap_or(u32::MAX);
    Ok(amount.resolve(replicas, Rounding::Down { at_least: 1 }).max(1))
}

/// The number at the end of a pod's name, if it is one of this set's.
fn ordinal(owner: &Object, pod: &Object) -> Option<i64> {
    let (name, number) = pod.name().rsplit_once('-')?;
    number.parse().ok().filter(|_| name == owner.name())
}
