//! The summary of a decision: what each reason allows, which budgets apply, what goes and what
//! may not.

use serde_json::{Map, Value, json};

use crate::dialect::karpenter::decide::Disruptions;
use crate::dialect::karpenter::decide::obstacle::Obstacle;
use crate::dialect::karpenter::read::Cluster;
use crate::dialect::karpenter::report::explain::explain;

/// `allowed`, `active` and `explain` by pool, `disrupt` by claim, `notDisruptable` by node.
pub(crate) fn decision(cluster: &Cluster<'_>, disruptions: &Disruptions<'_, '_>) -> Value {
    let name = cluster.pool().name();
    let disrupt: Vec<&str> =
        started(cluster, disruptions).map(|at| cluster.members[at].name()).collect();
    let active = disruptions.own_budgets().active();
    json!({
        "allowed": {name: allowed(cluster, disruptions)},
        "active": {name: active},
        "disrupt": disrupt,
        "notDisruptable": not_disruptable(cluster, disruptions),
        "explain": explain(cluster, disruptions),
    })
}

/// The own members that are started.
pub(crate) fn started<'r>(
    cluster: &'r Cluster<'_>,
    disruptions: &'r Disruptions<'_, '_>,
) -> impl Iterator<Item = usize> + 'r {
    let members = disruptions.commands.iter().flat_map(|command| command.members.iter().copied());
    members.filter(|at| cluster.members[*at].pool == Some(cluster.own))
}

fn allowed(cluster: &Cluster<'_>, disruptions: &Disruptions<'_, '_>) -> Map<String, Value> {
    let reasons = cluster.pool().reasons();
    reasons.map(|it| (it.word().to_owned(), json!(disruptions.allowed(it)))).collect()
}

fn not_disruptable(cluster: &Cluster<'_>, disruptions: &Disruptions<'_, '_>) -> Map<String, Value> {
    let mut texts = Map::new();
    for (at, member) in cluster.members.iter().enumerate() {
        let mine = member.pool == Some(cluster.own) || cluster.is_first && member.pool.is_none();
        if let Some(obstacle) = disruptions.obstacles[at].as_ref().filter(|_| mine) {
            texts.insert(member.node_name().to_owned(), json!(obstacle.text()));
        }
    }
    if cluster.is_first {
        for node in &cluster.unmanaged {
            texts.insert(node.object.name().to_string(), json!(Obstacle::NotManaged.text()));
        }
    }
    texts
}
