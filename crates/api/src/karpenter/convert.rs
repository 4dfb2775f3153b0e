//! A `v1beta1` NodePool in `v1` words. What it meant is kept in annotations, so that the pool
//! still means it after it was read back as `v1`.

use serde_json::{Map, Value, json};

use super::names::annotation;

/// Every word for a reason that `v1beta1` takes.
pub const REASON_WORDS: [&str; 10] = [
    "underutilized",
    "consolidation",
    "Underutilized",
    "empty",
    "Empty",
    "drifted",
    "drift",
    "Drifted",
    "expired",
    "Expired",
];

/// The reason a word of `v1beta1` stands for, as `v1` spells it.
pub fn reason(word: &str) -> Option<&'static str> {
    Some(match word {
        "underutilized" | "consolidation" | "Underutilized" => "Underutilized",
        "empty" | "Empty" => "Empty",
        "drifted" | "drift" | "Drifted" => "Drifted",
        "expired" | "Expired" => "Expired",
        _ => return None,
    })
}

/// The same pool as `v1` JSON. What is not understood stays where it was.
pub fn to_v1(pool: &Value) -> Value {
    let mut pool = pool.clone();
    if !pool.is_object() {
        return pool;
    }
    pool["apiVersion"] = json!("karpenter.sh/v1");
    let mut notes = vec![
        (annotation::DEFAULT_BUDGET, "unlisted".to_owned()),
        (annotation::EXPIRATION, "budgeted".to_owned()),
    ];
    if let Some(spec) = pool.get_mut("spec").and_then(Value::as_object_mut) {
        let expire_after = disruption(spec);
        template(spec, expire_after, &mut notes);
    }
    annotate(&mut pool, notes);
    pool
}

/// Rewrites `spec.disruption`, and gives back its `expireAfter`.
fn disruption(spec: &mut Map<String, Value>) -> Option<Value> {
    let disruption = spec.entry("disruption").or_insert_with(|| json!({}));
    let disruption = disruption.as_object_mut()?;
    let policy = disruption.get("consolidationPolicy").and_then(Value::as_str);
    if policy != Some("WhenEmpty") {
        disruption.insert("consolidationPolicy".into(), json!("WhenEmptyOrUnderutilized"));
        disruption.entry("consolidateAfter").or_insert_with(|| json!("0s"));
    }
    let budgets = disruption.get_mut("budgets").and_then(Value::as_array_mut);
    for budget in budgets.into_iter().flatten().filter_map(Value::as_object_mut) {
        rewrite_budget(budget);
    }
    Some(disruption.shift_remove("expireAfter").unwrap_or_else(|| json!("720h")))
}

fn rewrite_budget(budget: &mut Map<String, Value>) {
    if let Some(Value::Number(nodes)) = budget.get("nodes") {
        let nodes = nodes.to_string();
        budget.insert("nodes".into(), json!(nodes));
    }
    // Without a duration a schedule says nothing: the budget always applies.
    if !budget.contains_key("duration") {
        budget.shift_remove("schedule");
    }
    let mut words = Vec::new();
    for key in ["reasons", "reason"] {
        match budget.shift_remove(key) {
            Some(Value::Array(list)) => words.extend(list),
            Some(Value::Null) | None => {}
            Some(word) => words.push(word),
        }
    }
    let mut reasons: Vec<Value> = Vec::new();
    for word in words {
        let known = word.as_str().and_then(reason).map(|reason| json!(reason));
        let reason = known.unwrap_or(word);
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    if !reasons.is_empty() {
        budget.insert("reasons".into(), Value::Array(reasons));
    }
}

fn template(
    spec: &mut Map<String, Value>,
    expire_after: Option<Value>,
    notes: &mut Vec<(&'static str, String)>,
) {
    let template = spec.get_mut("template").and_then(|template| template.get_mut("spec"));
    let Some(template) = template.and_then(Value::as_object_mut) else { return };
    if let Some(expire_after) = expire_after {
        template.entry("expireAfter").or_insert(expire_after);
    }
    if let Some(kubelet) = template.shift_remove("kubelet") {
        notes.push((annotation::KUBELET, kubelet.to_string()));
    }
    template.shift_remove("resources");
    let class = template.get_mut("nodeClassRef").and_then(Value::as_object_mut);
    let Some(class) = class else { return };
    if let Some(Value::String(version)) = class.shift_remove("apiVersion") {
        let (group, version) = version.rsplit_once('/').unwrap_or(("", &version));
        class.entry("group").or_insert_with(|| json!(group));
        notes.push((annotation::CLASS_VERSION, version.to_owned()));
    }
}

/// Notes what the version meant, where the user has not said otherwise.
fn annotate(pool: &mut Value, notes: Vec<(&'static str, String)>) {
    let Some(metadata) = pool.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    let Some(annotations) = annotations.as_object_mut() else { return };
    for (key, value) in notes {
        annotations.entry(key).or_insert_with(|| json!(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_keeps_its_meaning_in_v1_words() {
        let pool = json!({"apiVersion": "karpenter.sh/v1beta1", "kind": "NodePool",
            "metadata": {"name": "default"},
            "spec": {
                "template": {"spec": {"requirements": [], "kubelet": {"maxPods": 20},
                    "nodeClassRef": {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "name": "default"}}},
                "disruption": {"consolidationPolicy": "WhenUnderutilized", "expireAfter": "90m", "budgets": [
                    {"nodes": 10, "schedule": "* * * * *", "reason": ["drift", "consolidation", "drifted"]},
                    {"nodes": "5", "schedule": "@daily", "duration": "1h", "reason": "empty"},
                    {}]}}});
        let expected = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool",
            "metadata": {"name": "default", "annotations": {
                "convoy.dev/default-budget": "unlisted", "convoy.dev/expiration": "budgeted",
                "convoy.dev/v1beta1-kubelet": "{\"maxPods\":20}",
                "convoy.dev/v1beta1-node-class-version": "v1alpha1"}},
            "spec": {
                "template": {"spec": {"requirements": [], "expireAfter": "90m",
                    "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}}},
                "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s", "budgets": [
                    {"nodes": "10", "reasons": ["Drifted", "Underutilized"]},
                    {"nodes": "5", "schedule": "@daily", "duration": "1h", "reasons": ["Empty"]},
                    {}]}}});
        assert_eq!(to_v1(&pool), expected);
    }

    #[test]
    fn a_consolidation_that_is_switched_off_stays_off() {
        let pool = json!({"metadata": {}, "spec": {"disruption": {"consolidateAfter": "Never"}}});
        let converted = to_v1(&pool);
        assert_eq!(converted["spec"]["disruption"]["consolidateAfter"], "Never");
        assert_eq!(to_v1(&json!([])), json!([]));
    }
}
