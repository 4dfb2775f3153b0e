//! Autoscalers of `v1`, which know one metric, the processor. What else a stored one has travels
//! in annotations, as Kubernetes keeps it: metrics in the spelling of a version before `v2`,
//! behaviour under the names that Go has for its fields.

use serde_json::{Map, Value, json};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOUR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// Rewrites a stored autoscaler, which is one of `v2`, into `v1`.
pub(super) fn to_v1(object: &mut Value) {
    let mut notes = Vec::new();
    if let Some(Value::Object(spec)) = object.get_mut("spec") {
        if let Some(Value::Array(metrics)) = spec.shift_remove("metrics") {
            let (processor, others): (Vec<Value>, Vec<Value>) =
                metrics.into_iter().partition(|metric| processor_target(metric).is_some());
            if let Some(target) = processor.iter().find_map(processor_target) {
                spec.insert("targetCPUUtilizationPercentage".into(), target.clone());
            }
            notes.push((METRICS, spelled(&others, older)));
        }
        if let Some(behaviour) = spec.shift_remove("behavior").filter(|value| !value.is_null()) {
            notes.push((BEHAVIOUR, capitalised(&behaviour).to_string()));
        }
    }
    if let Some(Value::Object(status)) = object.get_mut("status") {
        if let Some(Value::Array(metrics)) = status.shift_remove("currentMetrics") {
            let shown = metrics.iter().find_map(|metric| {
                let of = metric.get("resource").filter(|resource| resource["name"] == "cpu")?;
                of.pointer("/current/averageUtilization")
            });
            if let Some(shown) = shown {
                status.insert("currentCPUUtilizationPercentage".into(), shown.clone());
            }
            notes.push((CURRENT_METRICS, spelled(&metrics, older)));
        }
        if let Some(Value::Array(conditions)) = status.shift_remove("conditions") {
            notes.push((CONDITIONS, spelled(&conditions, Clone::clone)));
        }
        for count in ["currentReplicas", "desiredReplicas"] {
            status.entry(count).or_insert_with(|| json!(0));
        }
    }
    for (name, text) in notes.into_iter().filter(|(_, text)| !text.is_empty()) {
        super::annotations(object).insert(name.into(), Value::String(text));
    }
}

/// Rewrites an autoscaler of `v1` into `v2`, which is stored.
pub(super) fn to_v2(object: &mut Value) {
    let [others, current, conditions, behaviour] =
        [METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOUR].map(|name| noted(object, name));
    if let Some(Value::Object(metadata)) = object.get_mut("metadata")
        && metadata.get("annotations").is_some_and(|map| map.as_object().is_some_and(Map::is_empty))
    {
        metadata.shift_remove("annotations");
    }
    if let Some(Value::Object(spec)) = object.get_mut("spec") {
        let mut metrics = Vec::new();
        if let Some(target) = spec.shift_remove("targetCPUUtilizationPercentage") {
            metrics.push(json!({"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": target}}}));
        }
        metrics.extend(list(others).iter().map(|metric| newer(metric, false)));
        if !metrics.is_empty() {
            spec.insert("metrics".into(), Value::Array(metrics));
        }
        if let Some(behaviour) = behaviour {
            spec.insert("behavior".into(), uncapitalised(&behaviour));
        }
    }
    if let Some(Value::Object(status)) = object.get_mut("status") {
        let processor = status.shift_remove("currentCPUUtilizationPercentage");
        let mut metrics: Vec<Value> =
            list(current).iter().map(|metric| newer(metric, true)).collect();
        if let Some(shown) = processor.filter(|_| metrics.is_empty()) {
            metrics.push(json!({"type": "Resource", "resource": {
                "name": "cpu", "current": {"averageUtilization": shown}}}));
        }
        let metrics = if metrics.is_empty() { Value::Null } else { Value::Array(metrics) };
        status.insert("currentMetrics".into(), metrics);
        if let conditions @ [_, ..] = &list(conditions)[..] {
            status.insert("conditions".into(), conditions.to_vec().into());
        }
        if status.get("currentReplicas") == Some(&json!(0)) {
            status.shift_remove("currentReplicas");
        }
    }
}

fn processor_target(metric: &Value) -> Option<&Value> {
    let resource = metric.get("resource").filter(|resource| resource["name"] == "cpu")?;
    resource.pointer("/target/averageUtilization")
}

/// The text of a list, or nothing for none.
fn spelled(items: &[Value], spelling: impl Fn(&Value) -> Value) -> String {
    if items.is_empty() {
        return String::new();
    }
    items.iter().map(spelling).collect::<Value>().to_string()
}

/// Takes a value out of the annotation that carries it.
fn noted(object: &mut Value, name: &str) -> Option<Value> {
    let text = super::annotations(object).shift_remove(name)?;
    serde_json::from_str(text.as_str()?).ok()
}

fn list(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

/// A metric, or its current value, in the spelling before `v2`: what it is of comes first, and
/// the numbers stand beside it.
fn older(metric: &Value) -> Value {
    let Value::Object(fields) = metric else { return metric.clone() };
    let renamed = fields.iter().map(|(name, value)| {
        let Value::Object(source) = value else { return (name.clone(), value.clone()) };
        let mut spelled = Map::new();
        if let Some(described) = source.get("describedObject") {
            spelled.insert("target".into(), described.clone());
        }
        for (part, name) in [("name", "name"), ("container", "container")] {
            spelled.extend(source.get(part).map(|value| (name.to_owned(), value.clone())));
        }
        for (part, name) in [("name", "metricName"), ("selector", "metricSelector")] {
            let value = source.get("metric").and_then(|of| of.get(part));
            spelled.extend(value.map(|value| (name.to_owned(), value.clone())));
        }
        for (holder, prefix) in [("target", "target"), ("current", "current")] {
            for part in ["averageUtilization", "averageValue", "value"] {
                let value = source.get(holder).and_then(|of| of.get(part));
                spelled.extend(value.map(|value| (joined(prefix, part), value.clone())));
            }
        }
        (name.clone(), Value::Object(spelled))
    });
    Value::Object(renamed.collect())
}

/// The way back.
fn newer(metric: &Value, is_current: bool) -> Value {
    let Value::Object(fields) = metric else { return metric.clone() };
    let holder = if is_current { "current" } else { "target" };
    let renamed = fields.iter().map(|(name, value)| {
        let Value::Object(source) = value else { return (name.clone(), value.clone()) };
        let mut spelled = Map::new();
        for part in ["name", "container"] {
            spelled.extend(source.get(part).map(|value| (part.to_owned(), value.clone())));
        }
        spelled.extend(source.get("target").map(|of| ("describedObject".to_owned(), of.clone())));
        let metric: Map<String, Value> = [("metricName", "name"), ("metricSelector", "selector")]
            .into_iter()
            .filter_map(|(from, to)| Some((to.to_owned(), source.get(from)?.clone())))
            .collect();
        if !metric.is_empty() {
            spelled.insert("metric".into(), Value::Object(metric));
        }
        let mut numbers = Map::new();
        for (part, kind) in [
            ("averageUtilization", "Utilization"),
            ("averageValue", "AverageValue"),
            ("value", "Value"),
        ] {
            let Some(value) = source.get(&joined(holder, part)) else { continue };
            if !is_current {
                numbers.entry("type").or_insert_with(|| json!(kind));
            }
            numbers.insert(part.to_owned(), value.clone());
        }
        spelled.insert(holder.to_owned(), Value::Object(numbers));
        (name.clone(), Value::Object(spelled))
    });
    Value::Object(renamed.collect())
}

/// `target` and `averageValue` as `targetAverageValue`.
fn joined(prefix: &str, part: &str) -> String {
    format!("{prefix}{}", with_first(part, char::to_ascii_uppercase))
}

fn with_first(text: &str, change: impl Fn(&char) -> char) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| change(&first));
    first.into_iter().chain(characters).collect()
}

/// Behaviour with Go's own names, in the order of Go's fields, absent ones included.
fn capitalised(behaviour: &Value) -> Value {
    let rules = |name: &str| {
        let rules = behaviour.get(name)?.as_object()?;
        let policy = |policy: &Value| {
            json!({"Type": policy["type"], "Value": policy["value"],
                "PeriodSeconds": policy["periodSeconds"]})
        };
        let policies = rules.get("policies").and_then(Value::as_array);
        let part = |name: &str| rules.get(name).cloned().unwrap_or_default();
        Some(json!({
            "StabilizationWindowSeconds": part("stabilizationWindowSeconds"),
            "SelectPolicy": part("selectPolicy"),
            "Policies": policies.map(|all| all.iter().map(policy).collect::<Value>()),
            "Tolerance": part("tolerance"),
        }))
    };
    json!({"ScaleUp": rules("scaleUp"), "ScaleDown": rules("scaleDown")})
}

fn uncapitalised(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let present = fields.iter().filter(|(_, value)| !value.is_null());
            let renamed = present.map(|(name, value)| {
                (with_first(name, char::to_ascii_lowercase), uncapitalised(value))
            });
            Value::Object(renamed.collect())
        }
        Value::Array(items) => items.iter().map(uncapitalised).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_on_the_way_to_v1_and_back() {
        let stored = json!({"metadata": {"name": "h", "annotations": {"a": "b"}},
            "spec": {"maxReplicas": 3, "metrics": [
                {"type": "Resource", "resource": {"name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": 80}}},
                {"type": "Pods", "pods": {"metric": {"name": "qps", "selector": {}},
                    "target": {"type": "AverageValue", "averageValue": "10"}}},
                {"type": "Object", "object": {"describedObject": {"kind": "K", "name": "n"},
                    "metric": {"name": "m"}, "target": {"type": "Value", "value": "5"}}},
                {"type": "ContainerResource", "containerResource": {"name": "memory",
                    "container": "c", "target": {"type": "Utilization", "averageUtilization": 7}}}],
                "behavior": {"scaleDown": {"policies": [
                    {"type": "Pods", "value": 4, "periodSeconds": 15}], "selectPolicy": "Max"}}},
            "status": {"currentMetrics": [{"type": "Resource", "resource": {"name": "cpu",
                "current": {"averageUtilization": 50, "averageValue": "5m"}}}],
                "conditions": [{"type": "AbleToScale", "status": "True"}], "desiredReplicas": 2}});
        let mut object = stored.clone();
        to_v1(&mut object);
        assert_eq!(object["spec"], json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 80}));
        let status = json!({"desiredReplicas": 2, "currentCPUUtilizationPercentage": 50,
            "currentReplicas": 0});
        assert_eq!(object["status"], status);
        to_v2(&mut object);
        assert_eq!(object, stored);
    }
}
