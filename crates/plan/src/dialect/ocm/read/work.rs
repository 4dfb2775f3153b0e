//! The works of a replica set, by placement and cluster.

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::object::member::{field, text};
use convoy_api::object::meta::timestamp;
use convoy_api::ocm::names::{MANIFEST_WORK, PLACEMENT_NAME_LABEL, REPLICA_SET_LABEL};
use jiff::Timestamp;
use serde_json::Value;

use super::replica_set::owner_value;
use super::template::Template;
use crate::dialect::ocm::names::COMPLETE;
use crate::snapshot::Snapshot;

/// The works of one replica set, by placement and cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Works<'w> {
    pub(crate) all: Vec<&'w Object>,
    by_cluster: BTreeMap<(&'w str, &'w str), Vec<&'w Object>>,
}

/// The work of one cluster for one placement.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterWork<'w> {
    /// The one that counts.
    pub(crate) work: Option<&'w Object>,
    /// Whether it holds the current template.
    pub(crate) is_current: bool,
    /// More than one is one too many.
    pub(crate) surplus: Vec<&'w Object>,
}

impl<'w> Works<'w> {
    pub(crate) fn read(snapshot: &Snapshot<'w>) -> Self {
        let owner = owner_value(snapshot.rollout());
        let mut works = Self::default();
        for work in snapshot.of(&MANIFEST_WORK) {
            if work.label(REPLICA_SET_LABEL) == Some(&owner) {
                works.all.push(work);
                works
                    .by_cluster
                    .entry((placement_of(work), work.namespace()))
                    .or_default()
                    .push(work);
            }
        }
        works
    }

    /// The works made for one placement, by cluster.
    pub(crate) fn of_placement<'s>(
        &'s self,
        placement: &'s str,
    ) -> impl Iterator<Item = &'w Object> + 's {
        let from = self.by_cluster.range((placement, "")..);
        let own = from.take_while(move |((found, _), _)| *found == placement);
        own.flat_map(|(_, works)| works.iter().copied())
    }

    /// The work that counts for a cluster: one that stays before one that goes, one that holds
    /// the template before one that does not, then by name.
    pub(crate) fn of_cluster(
        &self,
        placement: &str,
        cluster: &str,
        template: &Template<'_>,
    ) -> ClusterWork<'w> {
        let works = self.by_cluster.get(&(placement, cluster)).into_iter().flatten().copied();
        let ranked = works.clone().map(|work| (work, template.is_held_by(work)));
        let best = ranked.min_by_key(|(work, is_current)| (work.is_deleting(), !is_current));
        let Some((work, is_current)) = best else { return ClusterWork::default() };
        let surplus = works.filter(|other| other.key() != work.key() && !other.is_deleting());
        ClusterWork { work: Some(work), is_current, surplus: surplus.collect() }
    }
}

/// The placement that a work was made for; empty where it does not say.
pub(crate) fn placement_of(work: &Object) -> &str {
    work.label(PLACEMENT_NAME_LABEL).unwrap_or_default()
}

/// How long a work stays after it is through, in seconds. Those of replica sets are looked after
/// by their set, whichever that is.
pub(crate) fn ttl_secs(work: &Object) -> Option<i64> {
    let option = field(work.spec(), "deleteOption");
    let ttl = field(option, "ttlSecondsAfterFinished").as_i64();
    ttl.filter(|_| work.label(REPLICA_SET_LABEL).is_none())
}

/// Since when a work is through.
pub(crate) fn completed_at(work: &Object) -> Option<Timestamp> {
    let complete = work.condition(COMPLETE)?;
    let since = timestamp(complete.get("lastTransitionTime"));
    since.filter(|_| text(complete, "status") == "True")
}

/// Whether a work carries exactly these labels.
pub(crate) fn is_labelled(work: &Object, labels: &Value) -> bool {
    work.metadata().get("labels") == Some(labels)
}
