//! Three-way merges, as `kubectl apply` makes them on the client: fields of the manifest are set,
//! fields that an earlier manifest had and this one has not are removed, all others stay.
//!
//! Lists of built-in kinds whose elements have a key are merged element by element. Any other
//! list is taken from the manifest as a whole, unless the live one says the same and more: then
//! the server has filled in defaults.

use convoy_api::text::Quantity;
use serde_json::{Map, Value};

/// Lists that are merged by key, and the fields that make the key. The first one that an element
/// has is taken.
const KEYED: [(&str, &[&str]); 12] = [
    ("containers", &["name"]),
    ("initContainers", &["name"]),
    ("ephemeralContainers", &["name"]),
    ("volumes", &["name"]),
    ("env", &["name"]),
    ("imagePullSecrets", &["name"]),
    ("secrets", &["name"]),
    ("webhooks", &["name"]),
    ("ports", &["containerPort", "port"]),
    ("volumeMounts", &["mountPath"]),
    ("volumeDevices", &["devicePath"]),
    ("hostAliases", &["ip"]),
];

/// Fields below which texts are quantities: `1000m` and `1` are the same there.
const QUANTITIES: [&str; 6] = ["requests", "limits", "hard", "capacity", "overhead", "sizeLimit"];

/// Rules for the value that is being merged, which depend on the fields above it.
#[derive(Clone, Copy, Debug)]
struct MergeContext<'p> {
    /// The field that the value is in.
    field: &'p str,
    /// Whether lists are merged by key.
    keyed: bool,
    is_quantity: bool,
}

/// `live` with what `wanted` says. `last` is the manifest that was applied before; null where
/// nobody knows. `keyed` says whether the object is of a built-in kind.
///
/// | last     | wanted   | live           | merged         |
/// |----------|----------|----------------|----------------|
/// | `{a, b}` | `{a: 2}` | `{a, b, c}`    | `{a: 2, c}`    |
/// | null     | `{a: 2}` | `{a, b}`       | `{a: 2, b}`    |
/// | `[x]`    | `[x]`    | `[x + default]`| `[x + default]`|
/// | `[x]`    | `[y]`    | `[x + default]`| `[y]`          |
pub fn merged(last: &Value, wanted: &Value, live: &Value, keyed: bool) -> Value {
    merge(last, wanted, live, MergeContext { field: "", keyed, is_quantity: false })
}

fn merge(last: &Value, wanted: &Value, live: &Value, context: MergeContext<'_>) -> Value {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => {
            Value::Object(merge_fields(last, wanted, live, context))
        }
        (Value::Array(wanted), Value::Array(live)) => match key_of(wanted, context) {
            Some(key) => Value::Array(merge_by_key(last, wanted, live, key, context)),
            None => merge_whole(last, wanted, live, context),
        },
        _ if is_same(wanted, live, context) => live.clone(),
        _ => without_nulls(wanted),
    }
}

fn merge_fields(
    last: &Value,
    wanted: &Map<String, Value>,
    live: &Map<String, Value>,
    context: MergeContext<'_>,
) -> Map<String, Value> {
    let mut merged = live.clone();
    for (name, _) in last.as_object().into_iter().flatten() {
        if !wanted.contains_key(name) {
            merged.shift_remove(name);
        }
    }
    for (name, value) in wanted {
        let below = MergeContext {
            field: name,
            is_quantity: context.is_quantity || QUANTITIES.contains(&name.as_str()),
            ..context
        };
        match live.get(name) {
            _ if value.is_null() => _ = merged.shift_remove(name),
            Some(found) => {
                let last = last.get(name).unwrap_or(&Value::Null);
                merged.insert(name.clone(), merge(last, value, found, below));
            }
            None if is_dropped(name, value) => {}
            None => _ = merged.insert(name.clone(), without_nulls(value)),
        }
    }
    merged
}

/// Elements of the manifest in its order, then those that somebody else has added.
fn merge_by_key(
    last: &Value,
    wanted: &[Value],
    live: &[Value],
    key: &str,
    context: MergeContext<'_>,
) -> Vec<Value> {
    let last = last.as_array().map_or(&[][..], Vec::as_slice);
    let find = |list: &'_ [Value], element: &Value| {
        list.iter().position(|other| has_key(other, element, key))
    };
    let mut merged: Vec<Value> = Vec::with_capacity(wanted.len());
    for element in wanted {
        let before = find(last, element).map_or(&Value::Null, |at| &last[at]);
        merged.push(match find(live, element) {
            Some(at) => merge(before, element, &live[at], context),
            None => without_nulls(element),
        });
    }
    let foreign =
        |element: &&Value| find(wanted, element).is_none() && find(last, element).is_none();
    merged.extend(live.iter().filter(foreign).cloned());
    merged
}

fn merge_whole(last: &Value, wanted: &[Value], live: &[Value], context: MergeContext<'_>) -> Value {
    let unchanged = last.as_array().is_some_and(|last| last == wanted);
    let covered = wanted.len() == live.len()
        && wanted.iter().zip(live).all(|(wanted, live)| {
            let with_defaults = merge(wanted, wanted, live, context);
            with_defaults == *live
        });
    if covered && (unchanged || wanted.iter().all(|value| !value.is_object())) {
        return Value::Array(live.to_vec());
    }
    without_nulls(&Value::Array(wanted.to_vec()))
}

/// The key by which a list is merged, if all its elements have one.
fn key_of<'k>(wanted: &[Value], context: MergeContext<'_>) -> Option<&'k str> {
    let (_, keys) = KEYED.iter().find(|(field, _)| context.keyed && *field == context.field)?;
    let has = |key: &&&str| wanted.iter().all(|element| element.get(**key).is_some());
    keys.iter().find(has).copied()
}

/// Whether two elements go by the same key; ports of different protocols are different ports.
fn has_key(one: &Value, other: &Value, key: &str) -> bool {
    let protocol = |element: &Value| {
        element.get("protocol").and_then(Value::as_str).unwrap_or("TCP").to_owned()
    };
    one.get(key) == other.get(key) && protocol(one) == protocol(other)
}

/// Whether two values mean the same.
fn is_same(wanted: &Value, live: &Value, context: MergeContext<'_>) -> bool {
    let amount = |value: &Value| -> Option<Quantity> {
        match value {
            Value::String(text) => text.parse().ok(),
            Value::Number(number) => number.to_string().parse().ok(),
            _ => None,
        }
    };
    wanted == live
        || context.is_quantity && amount(wanted).is_some_and(|wanted| amount(live) == Some(wanted))
}

/// Whether a server leaves a value out when it stores the object: it says nothing.
fn is_dropped(name: &str, value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty() && ["annotations", "labels"].contains(&name),
        _ => false,
    }
}

/// In a manifest, null says that a field is not to be there.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            kept.map(|(name, value)| (name.clone(), without_nulls(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Merges, and merges again: the second time nothing changes.
    fn check(cases: &[(&str, Value, Value, Value, Value)]) {
        for (name, last, wanted, live, expected) in cases {
            let once = merged(last, wanted, live, true);
            assert_eq!(once, *expected, "{name}");
            assert_eq!(merged(wanted, wanted, &once, true), once, "{name}: again");
        }
    }

    #[test]
    fn a_merge_sets_removes_and_leaves() {
        let both = json!({"a": 1, "b": 1});
        let live = json!({"a": 1, "b": 1, "c": 1});
        let limit = |cpu: &str| json!({"limits": {"cpu": cpu}});
        let data = |n: &str| json!({"data": {"n": n}});
        let null = || Value::Null;
        check(&[
            ("set and removed", both, json!({"a": 2}), live, json!({"a": 2, "c": 1})),
            ("unknown history", null(), json!({"a": 2}), json!({"b": 1}), json!({"b": 1, "a": 2})),
            ("null removes", null(), json!({"a": null}), json!({"a": 1, "b": 1}), json!({"b": 1})),
            ("the same quantity", null(), limit("1000m"), limit("1"), limit("1")),
            ("a text is no quantity", null(), data("1000m"), data("1"), data("1000m")),
            ("nothing said", null(), json!({"labels": {}, "list": []}), json!({}), json!({})),
        ]);
    }

    #[test]
    fn lists_are_merged_by_key_or_taken_whole() {
        let app = |image: &str| json!({"name": "app", "image": image});
        let live = |image: &str| json!({"name": "app", "image": image, "pullPolicy": "Always"});
        let sidecar = json!({"name": "sidecar", "image": "s"});
        let containers = |list: Value| json!({"containers": list});
        let rules = |rule: Value| json!({"rules": [rule]});
        let with_default = || rules(json!({"host": "a", "type": "x"}));
        let a = || rules(json!({"host": "a"}));
        let b = || rules(json!({"host": "b"}));
        check(&[
            (
                "containers by name",
                containers(json!([app("v1")])),
                containers(json!([app("v2")])),
                containers(json!([live("v1"), sidecar])),
                containers(json!([live("v2"), sidecar])),
            ),
            (
                "a container that left",
                containers(json!([app("v1"), sidecar])),
                containers(json!([app("v1")])),
                containers(json!([live("v1"), sidecar])),
                containers(json!([live("v1")])),
            ),
            ("a list with defaults", a(), a(), with_default(), with_default()),
            ("a list that changed", a(), b(), with_default(), b()),
        ]);
    }
}
