//! Why a selector matches nothing: the first label that no object has, and what objects have instead.

use std::collections::BTreeSet;

use convoy_api::text::similar;
use serde_json::Value;

/// The most values of a label that are listed.
const LISTED_MAX: usize = 5;

/// What people are told about a selector that matches none of the objects with these `labels`.
pub(super) fn no_match(kind: &str, labels: &[&Value], selector: &Value) -> String {
    let told = format!("matches no {kind}");
    if labels.is_empty() {
        return format!("{told}: there is none");
    }
    let wanted = selector.get("matchLabels").or(Some(selector)).and_then(Value::as_object);
    let wanted = wanted.into_iter().flatten();
    let wanted = wanted.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
    let missing = wanted.filter(|(key, value)| !has(labels, key, value)).map(|(key, value)| {
        let values: BTreeSet<&str> =
            labels.iter().filter_map(|labels| labels.get(key)?.as_str()).collect();
        if values.is_empty() {
            let keys: BTreeSet<&str> = labels
                .iter()
                .filter_map(|it| it.as_object())
                .flat_map(|it| it.keys())
                .map(String::as_str)
                .collect();
            return format!(": none has the label {key:?}{}", similar::question(key, keys));
        }
        let more = if values.len() > LISTED_MAX { ", …" } else { "" };
        let listed: Vec<&str> = values.iter().take(LISTED_MAX).copied().collect();
        let question = similar::question(value, values.iter().copied());
        format!(": none has {key}={value}, the values are {}{more}{question}", listed.join(", "))
    });
    let reason = missing.into_iter().next();
    reason
        .map_or_else(|| format!("{told}: {} were read", labels.len()), |why| format!("{told}{why}"))
}

fn has(labels: &[&Value], key: &str, value: &str) -> bool {
    labels.iter().any(|labels| labels.get(key).and_then(Value::as_str) == Some(value))
}
