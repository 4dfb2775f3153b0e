//! A placement's wishes, read once into types that are known to be sound. What a scheduler
//! would call a misconfiguration is found here, with the field at fault.

use convoy_api::Object;
use convoy_api::cel::Program;
use convoy_api::object::member::text;
use convoy_api::ocm::spelling;
use serde_json::Value;
use smol_str::SmolStr;

use crate::budget::IntOrPercent;
use crate::dialect::ocm::decide::predicate;
use crate::dialect::ocm::decide::prioritizer::{self, Weighted};
use crate::dialect::ocm::list;
use crate::selector::{Selector, SelectorError, is_label_value};

/// Which clusters a placement wants, and how they are grouped.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    /// The sets it names; empty means every bound one.
    pub(crate) cluster_sets: Vec<SmolStr>,
    /// How many clusters it wants; absent means all.
    pub(crate) wanted: Option<usize>,
    /// A cluster passes if any of them matches; none means everything passes.
    pub(crate) predicates: Vec<ClusterSelector>,
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) prioritizers: Vec<Weighted>,
    pub(crate) grouping: Grouping,
}

/// Labels, claims and expressions, all of which must match.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterSelector {
    labels: Selector,
    claims: Selector,
    pub(crate) expressions: Vec<Program>,
}

/// A toleration of a managed cluster's taint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Toleration {
    pub(crate) key: SmolStr,
    pub(crate) exists: bool,
    pub(crate) value: SmolStr,
    pub(crate) effect: SmolStr,
    /// How long after the taint appeared it is tolerated; absent means for ever.
    pub(crate) secs: Option<i64>,
}

/// How selected clusters are cut into decision groups.
#[derive(Clone, Debug)]
pub(crate) struct Grouping {
    pub(crate) per_group: IntOrPercent,
    pub(crate) named: Vec<NamedGroup>,
    /// Changes with the strategy, and with nothing else.
    pub(crate) hash: String,
}

#[derive(Clone, Debug)]
pub(crate) struct NamedGroup {
    pub(crate) name: SmolStr,
    pub(crate) selector: ClusterSelector,
}

/// Why a placement cannot be scheduled as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Misconfiguration {
    /// The part of the scheduler that objects: `Predicate`, `TaintToleration` or nothing.
    pub(crate) plugin: &'static str,
    /// Dotted path in today's spelling.
    pub(crate) field: String,
    pub(crate) message: String,
}

impl Policy {
    /// Reads `spec` of a Placement in any spelling. Everything that is wrong is reported.
    pub(crate) fn read(placement: &Object) -> Result<Self, Vec<Misconfiguration>> {
        let spec = spelling::placement_spec(placement.spec());
        let mut wrong = Vec::new();
        let predicates = predicates(&spec, &mut wrong);
        let tolerations = tolerations(&spec, &mut wrong);
        let prioritizers = prioritizer::read(&spec, &mut wrong);
        let grouping = grouping(&spec, &mut wrong);
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let sets = list(spec.get("clusterSets")).iter().filter_map(Value::as_str);
        Ok(Self {
            cluster_sets: sets.map(SmolStr::new).collect(),
            wanted: wanted(&spec),
            predicates,
            tolerations,
            prioritizers,
            grouping,
        })
    }
}

impl ClusterSelector {
    /// Whether labels and claims match; expressions are the caller's, who knows their scope.
    pub(crate) fn matches(&self, cluster: &Object) -> bool {
        self.labels.matches(cluster)
            && (self.claims.is_empty() || self.claims.matches_with(|key| claim(cluster, key)))
    }
}

/// The value of a cluster claim; of several with one name the last counts.
fn claim<'o>(cluster: &'o Object, name: &str) -> Option<&'o str> {
    let claims = list(cluster.status().get("clusterClaims"));
    let claim = claims.iter().rev().find(|claim| text(claim, "name") == name)?;
    claim.get("value").and_then(Value::as_str)
}

fn wanted(spec: &Value) -> Option<usize> {
    let number = spec.get("numberOfClusters").and_then(Value::as_i64)?;
    Some(usize::try_from(number).unwrap_or(0)) // a negative number selects nothing
}

fn predicates(spec: &Value, wrong: &mut Vec<Misconfiguration>) -> Vec<ClusterSelector> {
    let mut predicates = Vec::new();
    for (index, predicate) in list(spec.get("predicates")).iter().enumerate() {
        let field = format!("spec.predicates[{index}].requiredClusterSelector");
        let required = predicate.get("requiredClusterSelector").unwrap_or(&Value::Null);
        if let Some(mut read) = cluster_selector(required, &field, "Predicate", wrong) {
            read.expressions = expressions(required, &field, wrong);
            predicates.push(read);
        }
    }
    predicates
}

fn expressions(value: &Value, at: &str, wrong: &mut Vec<Misconfiguration>) -> Vec<Program> {
    let sources = list(value.get("celSelector").and_then(|cel| cel.get("celExpressions")));
    let mut programs = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        match predicate::compile(source.as_str().unwrap_or_default()) {
            Ok(program) => programs.push(program),
            Err(message) => {
                let field = format!("{at}.celSelector.celExpressions[{index}]");
                wrong.push(Misconfiguration { plugin: "Predicate", field, message });
            }
        }
    }
    programs
}

fn cluster_selector(
    value: &Value,
    field: &str,
    plugin: &'static str,
    wrong: &mut Vec<Misconfiguration>,
) -> Option<ClusterSelector> {
    let mut part = |name: &str| {
        let read = Selector::from_value(value.get(name).unwrap_or(&Value::Null));
        read.map_err(|error| {
            wrong.push(selector_problem(plugin, &format!("{field}.{name}"), error));
        })
    };
    let (labels, claims) = (part("labelSelector"), part("claimSelector"));
    Some(ClusterSelector { labels: labels.ok()?, claims: claims.ok()?, expressions: Vec::new() })
}

fn selector_problem(plugin: &'static str, at: &str, error: SelectorError) -> Misconfiguration {
    let field =
        if error.field.is_empty() { at.to_owned() } else { format!("{at}.{}", error.field) };
    Misconfiguration { plugin, field, message: error.message }
}

fn tolerations(spec: &Value, wrong: &mut Vec<Misconfiguration>) -> Vec<Toleration> {
    let mut tolerations = Vec::new();
    for (index, value) in list(spec.get("tolerations")).iter().enumerate() {
        let [key, operator, given, effect] =
            ["key", "operator", "value", "effect"].map(|field| text(value, field));
        let mut object = |field: &str, message: &str| {
            let field = format!("spec.tolerations[{index}].{field}");
            let message = message.to_owned();
            wrong.push(Misconfiguration { plugin: "TaintToleration", field, message });
        };
        let exists = operator == "Exists";
        if key.is_empty() && !exists {
            object("operator", "If the key is empty, operator must be Exists.");
        }
        if exists && !given.is_empty() {
            object("value", "If the operator is Exists, the value should be empty.");
        }
        tolerations.push(Toleration {
            key: key.into(),
            exists,
            value: given.into(),
            effect: effect.into(),
            secs: value.get("tolerationSeconds").and_then(Value::as_i64),
        });
    }
    tolerations
}

fn grouping(spec: &Value, wrong: &mut Vec<Misconfiguration>) -> Grouping {
    const FIELD: &str = "spec.decisionStrategy.groupStrategy";
    let strategy = spec.pointer("/decisionStrategy/groupStrategy").unwrap_or(&Value::Null);
    let per_group = match strategy.get("clustersPerDecisionGroup") {
        None | Some(Value::Null) => IntOrPercent::Percent(100),
        Some(length) => IntOrPercent::from_value(length).unwrap_or_else(|error| {
            let message = format!("{error}: got {length}");
            let field = format!("{FIELD}.clustersPerDecisionGroup");
            wrong.push(Misconfiguration { plugin: "", field, message });
            IntOrPercent::Percent(100)
        }),
    };
    let mut named = Vec::new();
    for (index, group) in list(strategy.get("decisionGroups")).iter().enumerate() {
        let field = format!("{FIELD}.decisionGroups[{index}].groupClusterSelector");
        let selector = group.get("groupClusterSelector").unwrap_or(&Value::Null);
        let name = text(group, "groupName");
        if !is_group_name(name) {
            let message = format!(
                "{name:?} is not a group name: want 2 to 63 letters, digits, '-', '_' or '.', \
                 beginning and ending with a letter or digit"
            );
            let field = format!("{FIELD}.decisionGroups[{index}].groupName");
            wrong.push(Misconfiguration { plugin: "", field, message });
        }
        if let Some(selector) = cluster_selector(selector, &field, "", wrong) {
            named.push(NamedGroup { name: name.into(), selector });
        }
    }
    Grouping { per_group, named, hash: strategy_hash(per_group, strategy) }
}

/// Group names become label values, and upstream wants two characters at least.
fn is_group_name(name: &str) -> bool {
    name.len() >= 2 && is_label_value(name)
}

/// A short digest of how clusters are grouped, the same however the strategy is spelled.
fn strategy_hash(per_group: IntOrPercent, strategy: &Value) -> String {
    let length = match per_group {
        IntOrPercent::Int(count) => count.to_string(),
        IntOrPercent::Percent(percent) => format!("{percent}%"),
    };
    let groups = Value::Array(list(strategy.get("decisionGroups")).to_vec());
    crate::dialect::ocm::digest(&[&length, &crate::dialect::ocm::sorted_json(&groups)])
}

#[cfg(test)]
mod tests {
    use convoy_testkit::object;
    use serde_json::json;

    use super::*;

    fn placement(spec: Value) -> Object {
        object("cluster.open-cluster-management.io/v1beta1", "Placement", "p").spec(spec).build()
    }

    #[test]
    fn what_is_wrong_names_the_field_and_the_part_of_the_scheduler() {
        let cases = [
            (
                json!({"predicates": [{"requiredClusterSelector": {"labelSelector":
                    {"matchExpressions": [{"key": "a", "operator": "Foo"}]}}}]}),
                "Predicate",
                "spec.predicates[0].requiredClusterSelector.labelSelector.matchExpressions[0].operator",
            ),
            (
                json!({"tolerations": [{"value": "x"}]}),
                "TaintToleration",
                "spec.tolerations[0].operator",
            ),
            (
                json!({"tolerations": [{"operator": "Exists", "value": "x"}]}),
                "TaintToleration",
                "spec.tolerations[0].value",
            ),
            (
                json!({"DecisionStrategy": {"clustersPerDecisionGroup": "150"}}),
                "",
                "spec.decisionStrategy.groupStrategy.clustersPerDecisionGroup",
            ),
        ];
        for (spec, plugin, field) in cases {
            let wrong = Policy::read(&placement(spec.clone())).unwrap_err();
            assert_eq!((wrong[0].plugin, wrong[0].field.as_str()), (plugin, field), "{spec}");
        }
    }

    #[test]
    fn the_hash_follows_the_strategy_and_not_its_spelling() {
        let hash = |spec| Policy::read(&placement(spec)).unwrap().grouping.hash;
        let seed = json!({"DecisionStrategy": {"clustersPerDecisionGroup": "None"}});
        assert_eq!(hash(seed), hash(json!({})));
        let today = json!({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": 2}}});
        assert_ne!(hash(today), hash(json!({})));
    }
}
