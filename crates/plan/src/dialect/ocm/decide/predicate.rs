//! The predicate filter: a cluster passes if any of the placement's predicates matches it.
//! Labels and claims are selectors; expressions see the cluster as `managedCluster`.

use std::collections::BTreeMap;
use std::sync::Arc;

use convoy_api::Object;
use convoy_api::cel::Scope;
use convoy_api::ocm::names::ADD_ON_PLACEMENT_SCORE;
use serde_json::Value;

use crate::dialect::ocm::read::placement::{CLUSTER_VARIABLE, ClusterSelector, Policy};
use crate::dialect::ocm::read::score;
use crate::snapshot::Snapshot;

/// The work one expression may do for one cluster.
const COST_MAX: u64 = 1_000_000;

pub(crate) fn passes(snapshot: &Snapshot<'_>, policy: &Policy, cluster: &Object) -> bool {
    let predicates = &policy.predicates;
    predicates.is_empty() || predicates.iter().any(|one| matches(snapshot, one, cluster))
}

/// Labels, claims and every expression. An expression that fails, or is not a boolean, does
/// not match.
fn matches(snapshot: &Snapshot<'_>, predicate: &ClusterSelector, cluster: &Object) -> bool {
    if !predicate.matches(cluster) || predicate.expressions.is_empty() {
        return predicate.matches(cluster);
    }
    let scope = scope(snapshot, predicate, cluster);
    predicate.expressions.iter().all(|program| program.test(&scope) == Ok(true))
}

fn scope(snapshot: &Snapshot<'_>, predicate: &ClusterSelector, cluster: &Object) -> Scope {
    let scope = Scope::new().variable(CLUSTER_VARIABLE, cluster.raw()).budget(COST_MAX);
    let scope = scope.function("parseJSON", |arguments| match arguments {
        [Value::String(text)] => serde_json::from_str(text).map_err(|error| error.to_string()),
        _ => Err("no such overload".to_owned()),
    });
    if !predicate.expressions.iter().any(|program| program.source().contains("scores")) {
        return scope;
    }
    let published = Arc::new(published(snapshot, cluster));
    scope.function("scores", move |arguments| match arguments {
        [_, Value::String(resource)] => published
            .get(resource.as_str())
            .cloned()
            .ok_or_else(|| format!("addonplacementscores {resource:?} not found")),
        _ => Err("no such overload".to_owned()),
    })
}

/// The add-on scores of a cluster, by the object that publishes them.
fn published(snapshot: &Snapshot<'_>, cluster: &Object) -> BTreeMap<String, Value> {
    let scores = snapshot.of(&ADD_ON_PLACEMENT_SCORE);
    let from = scores.partition_point(|score| score.namespace() < cluster.name());
    let own = scores[from..].iter().take_while(|score| score.namespace() == cluster.name());
    own.map(|score| (score.name().to_string(), score::values(score))).collect()
}
