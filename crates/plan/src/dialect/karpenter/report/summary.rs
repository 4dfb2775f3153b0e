//! The summary of a decision: what each reason allows, which budgets apply, what goes and what
//! may not.

use serde_json::{Map, Value, json};

use crate::dialect::karpenter::decide::Run;
use crate::dialect::karpenter::decide::obstacle::Rejection;
use crate::dialect::karpenter::read::Cluster;
use crate::dialect::karpenter::read::reason::Reason;

/// `allowed` and `active` by pool, `disrupt` by claim, `notDisruptable` by node.
pub(crate) fn decision(cluster: &Cluster<'_>, run: &Run<'_, '_>) -> Value {
    let name = cluster.pool().name();
    let disrupt: Vec<&str> = started(cluster, run).map(|at| cluster.members[at].name()).collect();
    let active = &cluster.own_limits().active;
    json!({
        "allowed": {name: allowed(cluster)},
        "active": {name: active},
        "disrupt": disrupt,
        "notDisruptable": not_disruptable(cluster, run),
    })
}

/// The reasons that budgets of the pool can speak of, in the order of the API.
pub(crate) fn reasons(cluster: &Cluster<'_>) -> impl Iterator<Item = Reason> {
    let budgeted = cluster.pool().is_budgeted_expiration();
    let all = [Reason::Underutilized, Reason::Empty, Reason::Drifted, Reason::Expired];
    all.into_iter().filter(move |reason| budgeted || *reason != Reason::Expired)
}

/// The own members that are started.
pub(crate) fn started<'r>(
    cluster: &'r Cluster<'_>,
    run: &'r Run<'_, '_>,
) -> impl Iterator<Item = usize> + 'r {
    let members = run.commands.iter().flat_map(|command| command.members.iter().copied());
    members.filter(|at| cluster.members[*at].pool == Some(cluster.own))
}

fn allowed(cluster: &Cluster<'_>) -> Map<String, Value> {
    let count = cluster.count_of_own();
    let limits = cluster.own_limits();
    reasons(cluster)
        .map(|reason| {
            let allowed = limits.allowed(reason, count.total, count.down);
            (reason.word().to_owned(), json!(allowed))
        })
        .collect()
}

fn not_disruptable(cluster: &Cluster<'_>, run: &Run<'_, '_>) -> Map<String, Value> {
    let mut texts = Map::new();
    for (at, member) in cluster.members.iter().enumerate() {
        let mine = member.pool == Some(cluster.own) || cluster.is_first && member.pool.is_none();
        if let Some(rejection) = run.rejections[at].as_ref().filter(|_| mine) {
            texts.insert(member.node_name().to_owned(), json!(rejection.text()));
        }
    }
    if cluster.is_first {
        for node in &cluster.strangers {
            texts.insert(node.object.name().to_string(), json!(Rejection::NotManaged.text()));
        }
    }
    texts
}
