//! NodePools between `v1beta1` and `v1`. What a version meant, and what the other has no field for,
//! is kept in annotations: the pool means the same in both, and comes back as it was written.

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
    let only_v1 = take_note(&mut pool, annotation::ONLY_V1);
    if let Some(spec) = pool.get_mut("spec").and_then(Value::as_object_mut) {
        if let Some(written) = spec.get("disruption") {
            notes.push((annotation::DISRUPTION, written.to_string()));
        }
        let expire_after = disruption(spec);
        template(spec, expire_after, &mut notes);
    }
    if let Some(fields) = only_v1 {
        restore(&mut pool, &fields);
    }
    annotate(&mut pool, notes);
    pool
}

/// Fields of the spec that `v1beta1` does not have, or not with every value.
const ONLY_V1: [&str; 4] =
    ["/spec/replicas", "/spec/template/spec/terminationGracePeriod", POLICY, AFTER];
const POLICY: &str = "/spec/disruption/consolidationPolicy";
const AFTER: &str = "/spec/disruption/consolidateAfter";

/// Whether only `v1` can say what a field of the spec says.
fn is_only_v1(spec: &Value, pointer: &str, value: &Value) -> bool {
    match pointer {
        POLICY => value == "Balanced",
        // Under another policy than this one, `v1beta1` takes no time but `Never`.
        AFTER => {
            let policy = spec.pointer(POLICY);
            policy.is_none_or(|policy| policy != "WhenEmpty") && value != "Never" && value != "0s"
        }
        _ => true,
    }
}

/// The same pool as `v1beta1` JSON. Its disruption reads as it was written, unless it was changed
/// as `v1`.
pub fn to_v1beta1(pool: &Value) -> Value {
    let mut pool = pool.clone();
    if !pool.is_object() {
        return pool;
    }
    pool["apiVersion"] = json!("karpenter.sh/v1beta1");
    let only_v1: Map<String, Value> = ONLY_V1
        .iter()
        .filter_map(|pointer| Some(((*pointer).to_owned(), pool.pointer(pointer)?.clone())))
        .filter(|(pointer, value)| is_only_v1(&pool, pointer, value))
        .collect();
    let written = take_note(&mut pool, annotation::DISRUPTION);
    let kubelet = take_note(&mut pool, annotation::KUBELET);
    let resources = take_note(&mut pool, annotation::RESOURCES);
    let version = take_text(&mut pool, annotation::CLASS_VERSION);
    if let Some(spec) = pool.get_mut("spec").and_then(Value::as_object_mut) {
        spec.shift_remove("replicas");
        let expire_after = older_template(spec, kubelet, resources, version.as_deref());
        older_disruption(spec, expire_after, written);
    }
    say_otherwise(&mut pool, annotation::DEFAULT_BUDGET, "unlisted", "all");
    say_otherwise(&mut pool, annotation::EXPIRATION, "budgeted", "forceful");
    if !only_v1.is_empty() {
        annotate(&mut pool, vec![(annotation::ONLY_V1, Value::Object(only_v1).to_string())]);
    }
    if let Some(metadata) = pool.get_mut("metadata").and_then(Value::as_object_mut)
        && metadata.get("annotations").and_then(Value::as_object).is_some_and(Map::is_empty)
    {
        metadata.shift_remove("annotations");
    }
    pool
}

/// Drops a note that says what the version means anyway; without one, the other meaning is noted.
fn say_otherwise(pool: &mut Value, key: &'static str, own: &str, other: &str) {
    match take_text(pool, key) {
        Some(value) if value == own => {}
        Some(value) => annotate(pool, vec![(key, value)]),
        None => annotate(pool, vec![(key, other.to_owned())]),
    }
}

/// Rewrites the template, and gives back its `expireAfter`.
fn older_template(
    spec: &mut Map<String, Value>,
    kubelet: Option<Value>,
    resources: Option<Value>,
    version: Option<&str>,
) -> Option<Value> {
    let template = spec.get_mut("template")?.get_mut("spec")?.as_object_mut()?;
    template.shift_remove("terminationGracePeriod");
    for (field, value) in [("kubelet", kubelet), ("resources", resources)] {
        template.extend(value.map(|value| (field.to_owned(), value)));
    }
    if let Some(class) = template.get_mut("nodeClassRef").and_then(Value::as_object_mut)
        && let Some(Value::String(group)) = class.shift_remove("group")
    {
        let version = version.unwrap_or("v1");
        let group = if group.is_empty() { group } else { format!("{group}/") };
        class.insert("apiVersion".into(), json!(format!("{group}{version}")));
    }
    template.shift_remove("expireAfter")
}

fn older_disruption(
    spec: &mut Map<String, Value>,
    expire_after: Option<Value>,
    written: Option<Value>,
) {
    let current = spec.get("disruption").cloned().unwrap_or_else(|| json!({}));
    if let Some(written) = written {
        let mut newer = Map::from_iter([("disruption".to_owned(), written.clone())]);
        let expires = disruption(&mut newer);
        if newer.get("disruption") == Some(&current) && expires == expire_after {
            spec.insert("disruption".into(), written);
            return;
        }
    }
    let mut older = current.as_object().cloned().unwrap_or_default();
    if older.get("consolidationPolicy").is_none_or(|policy| policy != "WhenEmpty") {
        older.insert("consolidationPolicy".into(), json!("WhenUnderutilized"));
        if older.get("consolidateAfter").is_some_and(|after| after != "Never") {
            older.shift_remove("consolidateAfter");
        }
    }
    older.extend(expire_after.map(|value| ("expireAfter".to_owned(), value)));
    spec.insert("disruption".into(), Value::Object(older));
}

/// Puts fields back that only `v1` has, unless they were changed as `v1beta1`.
fn restore(pool: &mut Value, fields: &Value) {
    let is = |pointer: &str, text: &str| pool.pointer(pointer).is_some_and(|value| value == text);
    // What a pool has that says nothing about it as `v1beta1`.
    let is_policy_unchanged = is(POLICY, "WhenEmptyOrUnderutilized");
    let is_after_unchanged = is_policy_unchanged && is(AFTER, "0s");
    for (pointer, value) in fields.as_object().into_iter().flatten() {
        let Some((parent, name)) = pointer.rsplit_once('/') else { continue };
        let applies = match pointer.as_str() {
            POLICY => is_policy_unchanged,
            AFTER => is_after_unchanged,
            other => ONLY_V1.contains(&other),
        };
        let parent = pool.pointer_mut(parent).and_then(Value::as_object_mut).filter(|_| applies);
        if let Some(parent) = parent {
            parent.insert(name.to_owned(), value.clone());
        }
    }
}

/// Takes an annotation that holds JSON off the pool.
fn take_note(pool: &mut Value, key: &str) -> Option<Value> {
    serde_json::from_str(&take_text(pool, key)?).ok()
}

fn take_text(pool: &mut Value, key: &str) -> Option<String> {
    let annotations = pool.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()?;
    match annotations.shift_remove(key)? {
        Value::String(text) => Some(text),
        _ => None,
    }
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
    if let Some(resources) = template.shift_remove("resources") {
        notes.push((annotation::RESOURCES, resources.to_string()));
    }
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
                "convoy.dev/v1beta1-disruption": pool["spec"]["disruption"].to_string(),
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
        assert_eq!(to_v1beta1(&expected), pool, "it comes back as it was written");
    }

    #[test]
    fn a_change_as_v1_is_shown_as_v1beta1() {
        let written = json!({"apiVersion": "karpenter.sh/v1beta1", "metadata": {"name": "p"},
            "spec": {"disruption": {"consolidationPolicy": "WhenUnderutilized", "expireAfter": "90m",
                "budgets": [{"nodes": 10, "reasons": ["drift"]}]}}});
        let mut newer = to_v1(&written);
        newer["spec"]["disruption"]["budgets"][0]["nodes"] = json!("20%");
        let older = to_v1beta1(&newer);
        let budgets = json!([{"nodes": "20%", "reasons": ["Drifted"]}]);
        assert_eq!(older["spec"]["disruption"]["budgets"], budgets);
        assert_eq!(older["spec"]["disruption"]["consolidationPolicy"], "WhenUnderutilized");
        assert_eq!(older["metadata"], json!({"name": "p"}), "it means what the version means");
    }

    #[test]
    fn a_pool_of_v1_survives_being_written_back_as_v1beta1() {
        let pool = json!({"apiVersion": "karpenter.sh/v1", "metadata": {"name": "p"}, "spec": {
            "replicas": 3,
            "template": {"spec": {"requirements": [], "expireAfter": "Never",
                "terminationGracePeriod": "5m", "nodeClassRef":
                    {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}}},
            "disruption": {"consolidationPolicy": "Balanced", "consolidateAfter": "5m",
                "budgets": [{"nodes": "1", "reasons": ["Drifted"]}]}}});
        let mut older = to_v1beta1(&pool);
        assert!(older["spec"]["disruption"].get("consolidateAfter").is_none());
        assert_eq!(older["spec"]["disruption"]["expireAfter"], "Never");
        let class = &older["spec"]["template"]["spec"]["nodeClassRef"];
        assert_eq!(class["apiVersion"], "karpenter.kwok.sh/v1");
        let back = to_v1(&older);
        assert_eq!(back["spec"], pool["spec"]);
        let notes = &back["metadata"]["annotations"];
        assert_eq!(notes["convoy.dev/default-budget"], "all", "a budget still covers all reasons");
        assert_eq!(notes["convoy.dev/expiration"], "forceful");
        let empty = json!({"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"});
        older["spec"]["disruption"] = empty.clone();
        assert_eq!(to_v1(&older)["spec"]["disruption"], empty, "it was changed as v1beta1");
    }

    #[test]
    fn a_consolidation_that_is_switched_off_stays_off() {
        let pool = json!({"metadata": {}, "spec": {"disruption": {"consolidateAfter": "Never"}}});
        let converted = to_v1(&pool);
        assert_eq!(converted["spec"]["disruption"]["consolidateAfter"], "Never");
        assert_eq!(to_v1(&json!([])), json!([]));
    }
}
