//! From a legacy `interruptionBudget` to a DeploymentPolicy that says the same.

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::object::member::{field, member};
use serde_json::{Value, json};

/// The name of the policy; with several budgets each has a suffix that tells it apart.
const NAME: &str = "legacy-equivalent";

/// The policies that take the place of legacy budgets, then the Skyhooks that used them, changed
/// to name their policy. Skyhooks without such a budget are left out.
pub fn migrated<'o>(skyhooks: impl IntoIterator<Item = &'o Object>) -> Vec<Value> {
    let legacy = skyhooks.into_iter().filter_map(|skyhook| Some((skyhook, budget(skyhook)?)));
    let legacy: Vec<(&Object, Budget)> = legacy.collect();
    let mut names: BTreeMap<Budget, String> = BTreeMap::new();
    for (_, budget) in &legacy {
        names.entry(*budget).or_insert_with(|| format!("{NAME}-{}", budget.suffix()));
    }
    if let (1, Some(only)) = (names.len(), names.values_mut().next()) {
        NAME.clone_into(only);
    }
    let policies = names.iter().map(|(budget, name)| policy(name, *budget));
    let changed = legacy.iter().map(|(skyhook, budget)| renamed(skyhook, &names[budget]));
    policies.chain(changed).collect()
}

/// How many nodes a legacy Skyhook may interrupt at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Budget {
    Count(i64),
    Percent(i64),
}

impl Budget {
    fn suffix(self) -> String {
        match self {
            Self::Count(count) => count.to_string(),
            Self::Percent(percent) => format!("{percent}-percent"),
        }
    }

    fn wire(self) -> Value {
        match self {
            Self::Count(count) => json!({"count": count}),
            Self::Percent(percent) => json!({"percent": percent}),
        }
    }
}

/// A percentage goes before a count, as the engine reads it.
fn budget(skyhook: &Object) -> Option<Budget> {
    let legacy = field(skyhook.spec(), "interruptionBudget");
    let number = |name: &str| member(legacy, name).and_then(Value::as_i64);
    number("percent").map(Budget::Percent).or_else(|| number("count").map(Budget::Count))
}

fn policy(name: &str, budget: Budget) -> Value {
    json!({
        "apiVersion": "skyhook.nvidia.com/v1alpha1",
        "kind": "DeploymentPolicy",
        "metadata": {"name": name},
        "spec": {"default": {
            "budget": budget.wire(),
            "strategy": {"fixed": {"initialBatch": 1, "batchThreshold": 100, "safetyLimit": 50}},
        }},
    })
}

fn renamed(skyhook: &Object, policy: &str) -> Value {
    let mut raw = skyhook.raw().clone();
    if let Some(spec) = raw["spec"].as_object_mut() {
        spec.shift_remove("interruptionBudget");
        spec.insert("deploymentPolicy".to_owned(), json!(policy));
    }
    raw
}

#[cfg(test)]
mod tests {
    use convoy_testkit::object;

    use super::*;

    fn skyhook(name: &str, budget: Value) -> Object {
        let spec = json!({"interruptionBudget": budget, "packages": {}});
        object("skyhook.nvidia.com/v1alpha1", "Skyhook", name).spec(spec).build()
    }

    #[test]
    fn one_budget_gives_one_policy() {
        let all = [
            skyhook("a", json!({"percent": 25})),
            skyhook("b", json!({"percent": 25, "count": 3})),
        ];
        let made = migrated(&all);
        assert_eq!(made.len(), 3);
        assert_eq!(made[0]["metadata"]["name"], "legacy-equivalent");
        assert_eq!(made[0]["spec"]["default"]["budget"], json!({"percent": 25}));
        for changed in &made[1..] {
            assert_eq!(
                changed["spec"],
                json!({"packages": {}, "deploymentPolicy": "legacy-equivalent"})
            );
        }
    }

    #[test]
    fn several_budgets_are_told_apart_and_others_left_alone() {
        let plain = object("skyhook.nvidia.com/v1alpha1", "Skyhook", "c").spec(json!({})).build();
        let all = [skyhook("a", json!({"percent": 25})), skyhook("b", json!({"count": 3})), plain];
        let names: Vec<Value> =
            migrated(&all).iter().map(|object| object["metadata"]["name"].clone()).collect();
        assert_eq!(names, ["legacy-equivalent-3", "legacy-equivalent-25-percent", "a", "b"]);
        assert!(migrated(&all[2..]).is_empty());
    }
}
