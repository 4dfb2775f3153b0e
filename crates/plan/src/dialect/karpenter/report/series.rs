//! The numbers about budgets that upstream's controller publishes, under its names and labels.

use crate::dialect::karpenter::decide::Disruptions;
use crate::dialect::karpenter::read::Cluster;
use crate::dialect::karpenter::read::budget::NODES_MAX;
use crate::dialect::karpenter::read::reason::Reason;
use crate::series::{Metric, Series};

const ALLOWED: Metric = Metric::new(
    "karpenter_nodepools_allowed_disruptions",
    "Nodes of the pool that may be down at once for the reason, before those that are down are subtracted",
);
const CONSUMING: Metric = Metric::new(
    "karpenter_nodepools_nodes_consuming_budgets",
    "Nodes of the pool that are down and so use up its budgets",
);

/// One of each for every reason. As upstream's, the limit is that before nodes are subtracted, and
/// 2147483647 where there is none.
pub(crate) fn series(cluster: &Cluster<'_>, disruptions: &Disruptions<'_, '_>) -> Vec<Series> {
    let (name, down) = (cluster.pool().name(), cluster.count_of_own().down);
    let of = |reason: Reason| {
        let labels = [("nodepool", name), ("reason", reason.word())];
        let limit = disruptions.own_budgets().ceiling(reason).unwrap_or(NODES_MAX);
        [Series::new(&ALLOWED, &labels, limit), Series::new(&CONSUMING, &labels, down)]
    };
    cluster.pool().reasons().flat_map(of).collect()
}
