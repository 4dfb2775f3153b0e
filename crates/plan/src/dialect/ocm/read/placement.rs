//! Placements: which clusters one asks for and how they are grouped, as types that are known
//! to be sound. What a scheduler calls a misconfiguration is found here, with its field.

use convoy_api::Object;
use convoy_api::cel::Program;
use convoy_api::object::ViewError;
use convoy_api::object::member::{field, list};
use convoy_api::object::view::view_of;
use convoy_api::ocm::names::{REGROUP, SCHEDULING_DISABLED};
use convoy_api::ocm::{
    DecisionGroup, IntOrText, PlacementSpec, PrioritizerConfig, PrioritizerPolicy, spelling,
};
use serde::Serialize;
use serde_json::Value;
use smol_str::SmolStr;

use super::cluster::claim;
use super::{digest, sorted_json};
use crate::budget::{BudgetError, IntOrPercent};
use crate::selector::{Selector, SelectorError, is_label_value};

/// The only variable of an expression.
pub(crate) const CLUSTER_VARIABLE: &str = "managedCluster";

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

/// A prioritizer, and what its score is multiplied by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Weighted {
    pub(crate) prioritizer: Prioritizer,
    pub(crate) weight: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Prioritizer {
    /// Prefers clusters that are decided already.
    Steady,
    /// Prefers clusters that few other placements use.
    Balance,
    /// Prefers clusters with much of a resource left.
    Allocatable(&'static str),
    /// A score that an add-on publishes in the cluster's namespace.
    AddOn { resource: SmolStr, score: SmolStr },
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

/// `spec` of a placement under today's names, typed, and as JSON for its digest.
pub(crate) fn spec(placement: &Object) -> Result<(PlacementSpec, Value), ViewError> {
    let raw = spelling::placement_spec(placement.spec());
    let typed = if raw.is_null() { Ok(PlacementSpec::default()) } else { view_of(&raw) };
    match typed {
        Ok(typed) => Ok((typed, raw)),
        Err(ViewError { field, message }) => {
            let field = if field.is_empty() || field == "." {
                "spec".into()
            } else {
                format!("spec.{field}")
            };
            Err(ViewError { field, message })
        }
    }
}

/// Whether the scheduler was told to leave a placement alone.
pub(crate) fn is_disabled(placement: &Object) -> bool {
    placement.annotation(SCHEDULING_DISABLED) == Some("true")
}

/// Whether the groups are cut anew every time, as upstream does.
pub(crate) fn is_compact(placement: &Object) -> bool {
    placement.annotation(REGROUP) == Some("compact")
}

/// Whether the decisions of others matter to a placement. One that takes every cluster it may is
/// balanced with nobody, and waits for nobody that moves first.
pub(crate) fn chooses(placement: &Object) -> bool {
    !field(placement.spec(), "numberOfClusters").is_null()
}

/// How many clusters a placement says it selected.
pub(crate) fn selected_count(placement: &Object) -> Option<u64> {
    field(placement.status(), "numberOfSelectedClusters").as_u64()
}

/// The sets that a placement names; empty means every bound one.
///
/// This one and [`reads_score`] are asked about every placement whenever a cluster, a set or a
/// score changes, so they look at the one field instead of reading the whole placement.
pub(crate) fn cluster_sets(placement: &Object) -> impl Iterator<Item = &str> {
    list(placement.spec(), "clusterSets").iter().filter_map(Value::as_str)
}

/// Whether a placement may use a set: it names it, or names none.
pub(crate) fn asks_for(placement: &Object, set: &str) -> bool {
    list(placement.spec(), "clusterSets").is_empty()
        || cluster_sets(placement).any(|name| name == set)
}

/// Whether a placement weighs an add-on's score, or asks for it in an expression.
pub(crate) fn reads_score(placement: &Object, resource: &str) -> bool {
    let policy = field(placement.spec(), "prioritizerPolicy");
    let weighs = list(policy, "configurations").iter().any(|entry| {
        let name = entry.pointer("/scoreCoordinate/addOn/resourceName");
        name.and_then(Value::as_str) == Some(resource)
    });
    let asks = |predicate: &Value| {
        let selector = predicate.pointer("/requiredClusterSelector/celSelector");
        let expressions = list(selector.unwrap_or(&Value::Null), "celExpressions");
        expressions.iter().any(|text| text.as_str().is_some_and(|text| text.contains(resource)))
    };
    weighs || list(placement.spec(), "predicates").iter().any(asks)
}

/// Compiles an expression; the error is in the scheduler's words.
fn compile(source: &str) -> Result<Program, String> {
    let program =
        Program::compile(source).map_err(|error| format!("compilation failed: {error}"))?;
    if let Some(name) = program.variables().find(|name| *name != CLUSTER_VARIABLE) {
        return Err(format!("compilation failed: undeclared reference to '{name}'"));
    }
    Ok(program)
}

impl Policy {
    /// Reads a placement in any spelling. Everything that is wrong is reported.
    pub(crate) fn read(placement: &Object) -> Result<Self, Vec<Misconfiguration>> {
        match spec(placement) {
            Ok((spec, raw)) => Self::of(spec, &raw),
            Err(ViewError { field, message }) => {
                Err(vec![Misconfiguration { plugin: "", field, message }])
            }
        }
    }

    pub(crate) fn of(spec: PlacementSpec, raw: &Value) -> Result<Self, Vec<Misconfiguration>> {
        let mut reader = Reader::default();
        let policy = Self {
            predicates: reader.predicates(&spec),
            tolerations: reader.tolerations(&spec),
            prioritizers: reader.prioritizers(spec.prioritizer_policy.as_ref()),
            grouping: reader.grouping(&spec, raw),
            cluster_sets: spec.cluster_sets.into_iter().flatten().map(SmolStr::from).collect(),
            // A negative number selects nothing.
            wanted: spec.number_of_clusters.map(|wanted| usize::try_from(wanted).unwrap_or(0)),
        };
        if reader.wrong.is_empty() { Ok(policy) } else { Err(reader.wrong) }
    }
}

impl ClusterSelector {
    /// Whether labels and claims match; expressions are the caller's, who knows their scope.
    pub(crate) fn matches(&self, cluster: &Object) -> bool {
        self.labels.matches(cluster)
            && (self.claims.is_empty() || self.claims.matches_with(|key| claim(cluster, key)))
    }
}

/// Reads the parts of a placement and collects what is wrong with them.
#[derive(Default)]
struct Reader {
    wrong: Vec<Misconfiguration>,
}

impl Reader {
    fn object(&mut self, plugin: &'static str, field: String, message: impl Into<String>) {
        self.wrong.push(Misconfiguration { plugin, field, message: message.into() });
    }

    fn predicates(&mut self, spec: &PlacementSpec) -> Vec<ClusterSelector> {
        let mut predicates = Vec::new();
        for (index, predicate) in spec.predicates.iter().flatten().enumerate() {
            let at = format!("spec.predicates[{index}].requiredClusterSelector");
            let required = predicate.required_cluster_selector.clone().unwrap_or_default();
            let labels = self.selector(required.label_selector, "Predicate", &at, "labelSelector");
            let claims = self.selector(required.claim_selector, "Predicate", &at, "claimSelector");
            let sources = required.cel_selector.and_then(|cel| cel.cel_expressions);
            let expressions = self.expressions(sources.as_deref().unwrap_or_default(), &at);
            if let (Some(labels), Some(claims)) = (labels, claims) {
                predicates.push(ClusterSelector { labels, claims, expressions });
            }
        }
        predicates
    }

    fn expressions(&mut self, sources: &[String], at: &str) -> Vec<Program> {
        let mut programs = Vec::new();
        for (index, source) in sources.iter().enumerate() {
            match compile(source) {
                Ok(program) => programs.push(program),
                Err(message) => {
                    let field = format!("{at}.celSelector.celExpressions[{index}]");
                    self.object("Predicate", field, message);
                }
            }
        }
        programs
    }

    fn selector(
        &mut self,
        given: Option<impl Serialize>,
        plugin: &'static str,
        at: &str,
        part: &str,
    ) -> Option<Selector> {
        let given = given.and_then(|given| serde_json::to_value(given).ok());
        match Selector::from_value(&given.unwrap_or(Value::Null)) {
            Ok(selector) => Some(selector),
            Err(SelectorError { field, message }) => {
                let dot = if field.is_empty() { "" } else { "." };
                self.object(plugin, format!("{at}.{part}{dot}{field}"), message);
                None
            }
        }
    }

    fn tolerations(&mut self, spec: &PlacementSpec) -> Vec<Toleration> {
        let mut tolerations = Vec::new();
        for (index, given) in spec.tolerations.iter().flatten().enumerate() {
            let text = |text: &Option<String>| SmolStr::new(text.as_deref().unwrap_or_default());
            let [key, value, effect] = [&given.key, &given.value, &given.effect].map(text);
            let exists = given.operator.as_deref() == Some("Exists");
            let at = |field: &str| format!("spec.tolerations[{index}].{field}");
            if key.is_empty() && !exists {
                let message = "If the key is empty, operator must be Exists.";
                self.object("TaintToleration", at("operator"), message);
            }
            if exists && !value.is_empty() {
                let message = "If the operator is Exists, the value should be empty.";
                self.object("TaintToleration", at("value"), message);
            }
            tolerations.push(Toleration {
                key,
                exists,
                value,
                effect,
                secs: given.toleration_seconds,
            });
        }
        tolerations
    }

    /// A later entry for the same built-in replaces an earlier one; add-on entries all count.
    fn prioritizers(&mut self, policy: Option<&PrioritizerPolicy>) -> Vec<Weighted> {
        const FIELD: &str = "spec.prioritizerPolicy";
        let mode = policy.and_then(|policy| policy.mode.as_deref()).unwrap_or_default();
        let mut read = match mode {
            "" | "Additive" => [Prioritizer::Balance, Prioritizer::Steady]
                .map(|prioritizer| Weighted { prioritizer, weight: 1 })
                .to_vec(),
            "Exact" => Vec::new(),
            other => {
                let message = format!("incorrect prioritizer policy mode: {other}");
                self.object("", format!("{FIELD}.mode"), message);
                Vec::new()
            }
        };
        let entries = policy.and_then(|policy| policy.configurations.as_deref());
        for (index, entry) in entries.unwrap_or_default().iter().enumerate() {
            match configuration(entry) {
                Ok(Some(weighted)) => overwrite(&mut read, weighted),
                Ok(None) => {}
                Err((below, message)) => {
                    let field = format!("{FIELD}.configurations[{index}].scoreCoordinate.{below}");
                    self.object("", field, message);
                }
            }
        }
        read.retain(|weighted| weighted.weight != 0);
        read
    }

    fn grouping(&mut self, spec: &PlacementSpec, raw: &Value) -> Grouping {
        const FIELD: &str = "spec.decisionStrategy.groupStrategy";
        let strategy = spec.decision_strategy.as_ref();
        let strategy = strategy.and_then(|strategy| strategy.group_strategy.as_ref());
        let given = strategy.and_then(|strategy| strategy.clusters_per_decision_group.as_ref());
        let per_group = given.map_or(Ok(IntOrPercent::Percent(100)), int_or_percent);
        let per_group = per_group.unwrap_or_else(|error| {
            let got = serde_json::to_value(given).unwrap_or_default();
            let message = format!("{error}: got {got}");
            self.object("", format!("{FIELD}.clustersPerDecisionGroup"), message);
            IntOrPercent::Percent(100)
        });
        let groups = strategy.and_then(|strategy| strategy.decision_groups.as_deref());
        let mut named = Vec::new();
        for (index, group) in groups.unwrap_or_default().iter().enumerate() {
            named.extend(self.named_group(group, &format!("{FIELD}.decisionGroups[{index}]")));
        }
        Grouping { per_group, named, hash: strategy_hash(per_group, raw) }
    }

    fn named_group(&mut self, group: &DecisionGroup, at: &str) -> Option<NamedGroup> {
        let name = group.group_name.as_deref().unwrap_or_default();
        if !is_group_name(name) {
            let message = format!(
                "{name:?} is not a group name: want 2 to 63 letters, digits, '-', '_' or '.', \
                 beginning and ending with a letter or digit"
            );
            self.object("", format!("{at}.groupName"), message);
        }
        let at = format!("{at}.groupClusterSelector");
        let selector = group.group_cluster_selector.clone().unwrap_or_default();
        let labels = self.selector(selector.label_selector, "", &at, "labelSelector");
        let claims = self.selector(selector.claim_selector, "", &at, "claimSelector");
        let selector =
            ClusterSelector { labels: labels?, claims: claims?, expressions: Vec::new() };
        Some(NamedGroup { name: name.into(), selector })
    }
}

/// One configuration; none for an unknown built-in that is switched off.
fn configuration(entry: &PrioritizerConfig) -> Result<Option<Weighted>, (&'static str, String)> {
    let weight = i64::from(entry.weight.unwrap_or(1));
    let coordinate = &entry.score_coordinate;
    let prioritizer = if coordinate.kind.as_deref() == Some("AddOn") {
        let Some(add_on) = &coordinate.add_on else {
            return Err(("addOn", "addOn should not be empty".to_owned()));
        };
        let [resource, score] = [&add_on.resource_name, &add_on.score_name].map(SmolStr::new);
        Prioritizer::AddOn { resource, score }
    } else {
        match coordinate.built_in.as_deref().unwrap_or_default() {
            "Steady" => Prioritizer::Steady,
            "Balance" => Prioritizer::Balance,
            "ResourceAllocatableCPU" => Prioritizer::Allocatable("cpu"),
            "ResourceAllocatableMemory" => Prioritizer::Allocatable("memory"),
            _ if weight == 0 => return Ok(None),
            other => return Err(("builtIn", format!("incorrect builtin prioritizer: {other}"))),
        }
    };
    Ok(Some(Weighted { prioritizer, weight }))
}

fn overwrite(read: &mut Vec<Weighted>, weighted: Weighted) {
    let add_on = matches!(weighted.prioritizer, Prioritizer::AddOn { .. });
    let same = read.iter_mut().find(|other| !add_on && other.prioritizer == weighted.prioritizer);
    match same {
        Some(other) => *other = weighted,
        None => read.push(weighted),
    }
}

/// A number, or a percentage; any other text is an error.
pub(super) fn int_or_percent(value: &IntOrText) -> Result<IntOrPercent, BudgetError> {
    match value {
        IntOrText::Int(count) => Ok(IntOrPercent::Int(*count)),
        IntOrText::Text(text) => IntOrPercent::from_percent(text),
    }
}

/// Group names become label values, and upstream wants two characters at least.
fn is_group_name(name: &str) -> bool {
    name.len() >= 2 && is_label_value(name)
}

/// A short digest of how clusters are grouped, the same however the strategy is spelled. It is
/// taken of the JSON and not of its types, so that it stays as it is when the types learn a
/// field.
fn strategy_hash(per_group: IntOrPercent, raw: &Value) -> String {
    let length = match per_group {
        IntOrPercent::Int(count) => count.to_string(),
        IntOrPercent::Percent(percent) => format!("{percent}%"),
    };
    let strategy = raw.pointer("/decisionStrategy/groupStrategy").unwrap_or(&Value::Null);
    let groups = Value::Array(list(strategy, "decisionGroups").to_vec());
    digest(&[&length, &sorted_json(&groups)])
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

    #[test]
    fn the_hash_follows_the_strategy_and_not_its_spelling() {
        let hash = |spec| Policy::read(&placement(spec)).unwrap().grouping.hash;
        let seed = json!({"DecisionStrategy": {"clustersPerDecisionGroup": "None"}});
        assert_eq!(hash(seed), hash(json!({})));
        let today = json!({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": 2}}});
        assert_ne!(hash(today), hash(json!({})));
    }
}
