//! The numbers that upstream's controller publishes about pools, under its names and labels.

use crate::dialect::karpenter::decide::Disruptions;
use crate::dialect::karpenter::read::Cluster;
use crate::dialect::karpenter::read::budget::NODES_MAX;
use crate::dialect::karpenter::read::reason::Reason;
use crate::resources::Amounts;
use crate::series::{Metric, Series};

const ALLOWED: Metric = Metric::new(
    "karpenter_nodepools_allowed_disruptions",
    "Nodes of the pool that may be down at once for the reason, before those that are down are subtracted",
);
const CONSUMING: Metric = Metric::new(
    "karpenter_nodepools_nodes_consuming_budgets",
    "Nodes of the pool that are down and so use up its budgets",
);
const ELIGIBLE: Metric = Metric::new(
    "karpenter_voluntary_disruption_eligible_nodes",
    "Nodes that have the reason to be disrupted, and nothing of their own against it",
);
const LIMIT: Metric = Metric::in_thousandths(
    "karpenter_nodepools_limit",
    "What the nodes of the pool may have in all, by resource",
);
const USAGE: Metric = Metric::in_thousandths(
    "karpenter_nodepools_usage",
    "What the nodes of the pool have in all, by resource",
);

const COST: Metric = Metric::in_thousandths(
    "karpenter_nodepools_cost_total",
    "What the machines of the pool cost per hour, as far as their prices are known",
);

/// One of each for every reason or resource. As upstream's, the limit of disruptions is that
/// before nodes are subtracted, and 2147483647 where there is none. The nodes have `sum` in all.
pub(crate) fn series(
    cluster: &Cluster<'_>,
    disruptions: &Disruptions<'_, '_>,
    (sum, nodes): &(Amounts, u32),
) -> Vec<Series> {
    let (name, down) = (cluster.pool().name(), cluster.count_of_own().down);
    let of = |reason: Reason| {
        let labels = [("nodepool", name), ("reason", reason.word())];
        let limit = disruptions.own_budgets().ceiling(reason).unwrap_or(NODES_MAX);
        let word = reason.word().to_lowercase();
        let own = cluster.own_members();
        let eligible = own.filter(|(at, _)| disruptions.is_eligible(*at, reason)).count();
        [
            Series::new(&ALLOWED, &labels, limit),
            Series::new(&CONSUMING, &labels, down),
            Series::new(&ELIGIBLE, &[("reason", &word)], eligible),
        ]
    };
    let mut all: Vec<Series> = cluster.pool().reasons().flat_map(of).collect();
    let of = |metric, resource: &str, millis: i64| {
        Series::new(
            metric,
            &[("nodepool", name), ("resource_type", &resource.replace('-', "_"))],
            millis,
        )
    };
    let limits = cluster.pool().limits();
    all.extend(limits.map(|(resource, limit)| of(&LIMIT, resource, limit.as_millis())));
    let whole = |amount: i64| amount.saturating_mul(1_000);
    all.extend([
        of(&USAGE, "cpu", sum.cpu),
        of(&USAGE, "memory", whole(sum.memory)),
        of(&USAGE, "ephemeral-storage", whole(sum.storage)),
        of(&USAGE, "pods", whole(sum.pods)),
        of(&USAGE, "nodes", whole(i64::from(*nodes))),
    ]);
    all.push(Series::new(&COST, &[("nodepool", name)], disruptions.cost_in_thousandths()));
    all
}

/// The names of all of these, for the list of the reference.
#[cfg(test)]
pub(crate) const ALL: &[&Metric] = &[&ALLOWED, &CONSUMING, &ELIGIBLE, &LIMIT, &USAGE, &COST];
