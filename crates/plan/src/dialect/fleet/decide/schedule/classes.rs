//! Bindings as the scheduler sorts them.

use std::collections::BTreeMap;

use convoy_api::Object;

use crate::by_name::ByName;
use crate::dialect::fleet::read::binding::{policy_of, state_of, target};

/// The bindings of one placement, each in exactly one class.
#[derive(Debug, Default)]
pub(crate) struct Classes<'w> {
    pub(crate) deleting: Vec<&'w Object>,
    /// By cluster.
    pub(crate) unscheduled: BTreeMap<&'w str, &'w Object>,
    /// Scheduled or Bound, and the cluster is gone or leaving.
    pub(crate) dangling: Vec<&'w Object>,
    /// Scheduled or Bound by another policy than the active one. By cluster.
    pub(crate) obsolete: BTreeMap<&'w str, &'w Object>,
    pub(crate) scheduled: Vec<&'w Object>,
    pub(crate) bound: Vec<&'w Object>,
}

impl<'w> Classes<'w> {
    /// `bindings` belong to the placement; `clusters` are all member clusters, by name.
    pub(crate) fn sorted(
        bindings: impl IntoIterator<Item = &'w Object>,
        clusters: &[&Object],
        active_policy: &str,
    ) -> Self {
        let mut classes = Self::default();
        let clusters: ByName<'_, &Object> =
            clusters.iter().map(|cluster| (cluster.name().as_str(), *cluster)).collect();
        for (at, binding) in bindings.into_iter().enumerate() {
            let is_staying =
                |name: &str| clusters.find(at, name).is_some_and(|found| !found.is_deleting());
            let (cluster, state) = (target(binding), state_of(binding));
            if binding.is_deleting() {
                classes.deleting.push(binding);
            } else if state == "Unscheduled" {
                classes.unscheduled.insert(cluster, binding);
            } else if !is_staying(cluster) {
                classes.dangling.push(binding);
            } else if policy_of(binding) != active_policy {
                classes.obsolete.insert(cluster, binding);
            } else if state == "Bound" {
                classes.bound.push(binding);
            } else {
                classes.scheduled.push(binding);
            }
        }
        classes
    }
}
