//! The predicate filter: a cluster passes if any of the placement's predicates matches it.
//! Labels and claims are selectors; expressions see the cluster as `managedCluster`.

use std::collections::BTreeMap;
use std::sync::Arc;

use convoy_api::Object;
use convoy_api::cel::{Program, Scope};
use convoy_api::ocm::names::ADD_ON_PLACEMENT_SCORE;
use serde_json::{Value, json};

use crate::dialect::ocm::list;
use crate::dialect::ocm::read::placement::{ClusterSelector, Policy};
use crate::snapshot::Snapshot;

/// The work one expression may do for one cluster.
const COST_MAX: u64 = 1_000_000;

/// The only variable of an expression.
const CLUSTER: &str = "managedCluster";

/// Compiles an expression; the error is in the scheduler's words.
pub(crate) fn compile(source: &str) -> Result<Program, String> {
    let program =
        Program::compile(source).map_err(|error| format!("compilation failed: {error}"))?;
    if let Some(name) = program.variables().find(|name| *name != CLUSTER) {
        return Err(format!("compilation failed: undeclared reference to '{name}'"));
    }
    Ok(program)
}

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
    let scope = Scope::new().variable(CLUSTER, cluster.raw()).budget(COST_MAX);
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
    own.map(|score| {
        let entries = list(score.status().get("scores")).iter();
        let entry = |entry: &Value| json!({"name": entry["name"], "value": entry["value"]});
        (score.name().to_string(), entries.map(entry).collect())
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_see_the_cluster_and_nothing_else() {
        let sound = [
            "managedCluster.metadata.name == 'a'",
            "managedCluster.scores('x').filter(s, s.name == 'y').all(e, e.value > 80)",
            "managedCluster.status.clusterClaims.exists(c, c.name == 'region')",
            "type(managedCluster.metadata.name) == string",
            "managedCluster.metadata.labels['json'].parseJSON().tier == 'gold'",
        ];
        for source in sound {
            assert!(compile(source).is_ok(), "{source}: {:?}", compile(source).err());
        }
        for source in ["managedcluster.metadata", "1 +", "e.value > 80"] {
            let error = compile(source).unwrap_err();
            assert!(error.starts_with("compilation failed: "), "{source}: {error}");
        }
    }
}
