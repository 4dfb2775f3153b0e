//! The line of policy snapshots of a placement. `numberOfClusters` is kept beside the policy,
//! so changing it alone never makes a new one.

use convoy_api::Object;
use serde_json::{Map, Value, json};
use smol_str::{SmolStr, format_smolstr};

use crate::dialect::fleet::names;
use crate::dialect::fleet::read::hash;
use crate::dialect::fleet::read::placement::{Pick, Placement, field};
use crate::snapshot::Snapshot;
use crate::step::{Action, Propagation, Verb, Why};

/// Fields of a policy in the order in which they are declared, which is how they are hashed.
const ORDER: [&str; 25] = [
    "placementType",
    "clusterNames",
    "affinity",
    "topologySpreadConstraints",
    "tolerations",
    "clusterAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
    "clusterSelectorTerms",
    "weight",
    "preference",
    "labelSelector",
    "propertySelector",
    "propertySorter",
    "matchLabels",
    "matchExpressions",
    "key",
    "name",
    "operator",
    "values",
    "value",
    "effect",
    "sortOrder",
    "maxSkew",
    "topologyKey",
];

/// The policy snapshots of one placement, and which of them is in force.
#[derive(Clone, Debug)]
pub struct Line<'w> {
    /// The snapshot in force, whether it exists already or is created now.
    pub active_name: SmolStr,
    pub active_index: u32,
    /// The snapshot in force, if it exists.
    active: Option<&'w Object>,
    /// By index, the oldest first.
    all: Vec<&'w Object>,
    /// What brings the snapshots in line with the placement, in order.
    pub actions: Vec<Action>,
}

impl<'w> Line<'w> {
    pub fn read(snapshot: &Snapshot<'w>, placement: &Placement<'w>) -> Self {
        let kind = placement.family.policy_snapshot();
        let index = |object: &&Object| names::index(object, names::POLICY_INDEX).unwrap_or(0);
        let owned = |object: &&'w Object| placement.owns(object) && !object.is_deleting();
        let mut all: Vec<&Object> = snapshot.of(&kind).iter().copied().filter(owned).collect();
        all.sort_by_key(index);
        let newest = all.iter().rfind(|object| names::is_latest(object)).or(all.last()).copied();
        let wanted = content(placement.policy.raw);
        let active = newest.filter(|found| content(field(found.spec(), "policy")) == wanted);
        let active_index = match (active, all.last()) {
            (Some(active), _) => index(&active),
            (None, Some(last)) => index(last).saturating_add(1),
            (None, None) => 0,
        };
        let fresh = || format_smolstr!("{}-{active_index}", placement.name());
        let active_name = active.map_or_else(fresh, |active| active.name().clone());
        let mut line = Self { active_name, active_index, active, all, actions: Vec::new() };
        line.actions = line.decided(placement);
        line
    }

    /// The snapshot in force as it stands, unless something about it is written now.
    pub fn unchanged(&self) -> Option<&'w Object> {
        self.active
            .filter(|active| self.actions.iter().all(|action| action.target != *active.key()))
    }

    pub fn active(&self) -> Option<&'w Object> {
        self.active
    }

    fn decided(&self, placement: &Placement<'_>) -> Vec<Action> {
        let mut actions = Vec::new();
        let is_active =
            |object: &Object| self.active.is_some_and(|active| active.key() == object.key());
        for old in self.all.iter().filter(|old| names::is_latest(old) && !is_active(old)) {
            let patch = json!({"metadata": {"labels": {names::LATEST: "false"}}});
            let why = Why::new("PolicySuperseded", format!("{} is in force", self.active_name));
            actions.push(Action::patch(Verb::Record, old, patch, why));
        }
        if let Some(active) = self.active {
            actions.extend(refreshed(placement, active));
        } else {
            actions.extend(self.pruned(placement));
            actions.push(self.created(placement));
        }
        actions
    }

    /// Deletes the oldest, so that the limit holds once the new one is there.
    fn pruned(&self, placement: &Placement<'_>) -> Vec<Action> {
        let keep = placement.revision_history_limit.saturating_sub(1);
        let surplus = self.all.len().saturating_sub(keep);
        let why = || {
            let limit = placement.revision_history_limit;
            Why::new("HistoryLimit", format!("revisionHistoryLimit is {limit}"))
        };
        let oldest = self.all.iter().take(surplus);
        oldest
            .map(|old| Action::delete(Verb::Delete, old, Propagation::Background, why()))
            .collect()
    }

    fn created(&self, placement: &Placement<'_>) -> Action {
        let kind = placement.family.policy_snapshot();
        let namespace = placement.namespace();
        let mut metadata = json!({
            "name": self.active_name,
            "labels": {
                names::PARENT: placement.name(),
                names::LATEST: "true",
                names::POLICY_INDEX: self.active_index.to_string(),
            },
            "annotations": annotations(placement),
        });
        if !namespace.is_empty() {
            metadata["namespace"] = json!(namespace);
        }
        let policy = canonical(placement.policy.raw);
        let mut spec = json!({"policyHash": hash::base64_hex(&policy)});
        if !policy.is_null() {
            spec["policy"] = policy;
        }
        let object = json!({
            "apiVersion": format!("{}/v1beta1", names::PLACEMENT_GROUP),
            "kind": kind.kind,
            "metadata": metadata,
            "spec": spec,
        });
        let target = placement.object.key().sibling(&kind, namespace, &self.active_name);
        let why = Why::new("PolicyChanged", format!("policy {} is new", self.active_index));
        Action::create(Verb::Record, target, object, why)
    }
}

/// Keeps the labels and annotations of the snapshot in force up to date.
fn refreshed(placement: &Placement<'_>, active: &Object) -> Option<Action> {
    let mut metadata = Map::new();
    if !names::is_latest(active) {
        metadata.insert("labels".into(), json!({names::LATEST: "true"}));
    }
    let stale: Map<String, Value> = annotations(placement)
        .into_iter()
        .filter(|(key, value)| active.annotation(key) != value.as_str())
        .collect();
    if !stale.is_empty() {
        metadata.insert("annotations".into(), Value::Object(stale));
    }
    let why = Why::new("PolicyRefreshed", "the placement changed without a new policy");
    let patch = json!({"metadata": metadata});
    (!metadata.is_empty()).then(|| Action::patch(Verb::Record, active, patch, why))
}

fn annotations(placement: &Placement<'_>) -> Map<String, Value> {
    let mut annotations = Map::new();
    let generation = placement.object.generation().to_string();
    annotations.insert(names::GENERATION.into(), json!(generation));
    if let Pick::Number(wanted) = placement.policy.pick {
        annotations.insert(names::NUMBER_OF_CLUSTERS.into(), json!(wanted.to_string()));
    }
    annotations
}

/// The policy as a snapshot carries it: without `numberOfClusters`, fields in order.
fn canonical(policy: &Value) -> Value {
    let Some(fields) = policy.as_object() else {
        return Value::Null;
    };
    let mut fields = fields.clone();
    fields.shift_remove("numberOfClusters");
    fields.entry("placementType").or_insert_with(|| json!("PickAll"));
    hash::ordered(&Value::Object(fields), &ORDER, &["matchLabels"])
}

/// What two equal policies have in common: defaults filled in, an absent policy being `PickAll`.
fn content(policy: &Value) -> Value {
    let mut content = match canonical(policy) {
        Value::Null => json!({"placementType": "PickAll"}),
        policy => policy,
    };
    for constraint in entries(&mut content, "topologySpreadConstraints") {
        constraint.entry("maxSkew").or_insert_with(|| json!(1));
        constraint.entry("whenUnsatisfiable").or_insert_with(|| json!("DoNotSchedule"));
    }
    for toleration in entries(&mut content, "tolerations") {
        toleration.entry("operator").or_insert_with(|| json!("Equal"));
    }
    content
}

fn entries<'v>(
    policy: &'v mut Value,
    list: &str,
) -> impl Iterator<Item = &'v mut Map<String, Value>> {
    let items = policy.get_mut(list).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_object_mut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_hashes_as_elsewhere() {
        // The digest of this policy in snapshots that the upstream controller made.
        let policy = json!({"numberOfClusters": 3, "affinity": {"clusterAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"clusterSelectorTerms": [
                {"labelSelector": {"matchLabels": {"env": "prod"}}}]}}},
            "placementType": "PickN"});
        let known = "ZjE0Yjk4YjYyMTVjY2U3NzQ1MTZkNWRhZjRiNjQ1NzQ4NjllNTUyMzZkODBkYzkyYmRkMGU3OTI3MWEwOTkyNQ==";
        assert_eq!(hash::base64_hex(&canonical(&policy)), known);
    }

    #[test]
    fn policies_that_ask_for_the_same_are_equal() {
        let cases = [
            (json!(null), json!({"placementType": "PickAll"}), true),
            (json!({}), json!({"placementType": "PickAll", "tolerations": []}), true),
            (
                json!({"placementType": "PickN", "numberOfClusters": 3}),
                json!({"placementType": "PickN"}),
                true,
            ),
            (
                json!({"topologySpreadConstraints": [{"topologyKey": "a"}]}),
                json!({"topologySpreadConstraints": [{"topologyKey": "a", "maxSkew": 1}]}),
                true,
            ),
            (json!(null), json!({"placementType": "PickFixed"}), false),
        ];
        for (left, right, equal) in cases {
            assert_eq!(content(&left) == content(&right), equal, "{left} {right}");
        }
    }
}
