//! Policies as snapshots carry them, and what makes two of them equal.

use convoy_api::Object;
use serde_json::{Map, Value, json};

use crate::dialect::fleet::read::placement::field;
use crate::hash::content as hash;

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

/// The policy as a snapshot carries it: without `numberOfClusters`, fields in order.
pub(crate) fn canonical(policy: &Value) -> Value {
    let Some(fields) = policy.as_object() else {
        return Value::Null;
    };
    let mut fields = fields.clone();
    fields.shift_remove("numberOfClusters");
    fields.entry("placementType").or_insert_with(|| json!("PickAll"));
    hash::ordered(&Value::Object(fields), &ORDER, &["matchLabels"])
}

/// What two equal policies have in common: defaults filled in, an absent policy being `PickAll`.
pub(crate) fn content(policy: &Value) -> Value {
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

/// The content of a policy snapshot.
pub(crate) fn content_of(snapshot: &Object) -> Value {
    content(field(snapshot.spec(), "policy"))
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
