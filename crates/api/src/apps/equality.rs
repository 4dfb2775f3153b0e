//! When two pod templates are the same: as Go's semantic equality sees the decoded structs.
//!
//! Empty and absent lists and maps are equal, quantities compare by value, times by instant;
//! optional structs and scalars tell absent from empty. Fields that the table does not know
//! are compared as they stand, so that a newer server's field still counts.

use std::cell::OnceCell;

use serde_json::{Map, Value};

use super::types::{Field, Release, Shape, Table, TypeId, table};
use super::{TEMPLATE_HASH, defaults};
use crate::object::member::{member, same};
use crate::text::quantity::Quantity;

/// A template to compare others with. Its stored form is made at most once, and only if
/// looking at the JSON as it came does not tell.
#[derive(Debug)]
pub struct Template<'t> {
    raw: &'t Value,
    stored: OnceCell<Value>,
}

impl<'t> Template<'t> {
    pub fn new(raw: &'t Value) -> Self {
        Self { raw, stored: OnceCell::new() }
    }

    /// Whether `other` asks for the same pods, the hash label aside.
    pub fn is_same(&self, other: &Value) -> bool {
        if same_as_written(self.raw, other) {
            return true;
        }
        if differs_at_sight(self.raw, other) {
            return false;
        }
        let ours = self.stored.get_or_init(|| defaults::template(self.raw));
        same_when_stored(ours, &defaults::template(other))
    }
}

/// Whether two templates ask for the same pods, the hash label aside.
pub fn same_template(left: &Value, right: &Value) -> bool {
    Template::new(left).is_same(right)
}

/// Equality of two stored templates.
fn same_when_stored(left: &Value, right: &Value) -> bool {
    let bare = |template: &Value| -> Value {
        let mut bare = template.clone();
        if let Some(labels) = bare.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
            labels.shift_remove(TEMPLATE_HASH);
        }
        bare
    };
    let comparer = Comparer { table: table(Release::default()) };
    let of = comparer.table.named("v1.PodTemplateSpec");
    comparer.same(Some(&bare(left)), Some(&bare(right)), of)
}

/// The JSON is the same, but for the hash label. True of what one server stored twice.
fn same_as_written(left: &Value, right: &Value) -> bool {
    let alike = match (member(left, "spec"), member(right, "spec")) {
        (Some(left), Some(right)) => same(left, right),
        (left, right) => left == right,
    };
    if !alike {
        return false;
    }
    let (left, right) = (member(left, "metadata"), member(right, "metadata"));
    let (Some(left), Some(right)) =
        (left.and_then(Value::as_object), right.and_then(Value::as_object))
    else {
        return false;
    };
    let others = |map: &Map<String, Value>| map.keys().filter(|key| *key != "labels").count();
    others(left) == others(right)
        && left.iter().all(|(key, value)| key == "labels" || right.get(key) == Some(value))
        && same_labels(left.get("labels"), right.get("labels"))
}

fn same_labels(left: Option<&Value>, right: Option<&Value>) -> bool {
    let (Some(left), Some(right)) =
        (left.and_then(Value::as_object), right.and_then(Value::as_object))
    else {
        return false;
    };
    let counted =
        |map: &Map<String, Value>| map.len() - usize::from(map.contains_key(TEMPLATE_HASH));
    counted(left) == counted(right)
        && left.iter().all(|(key, value)| key == TEMPLATE_HASH || right.get(key) == Some(value))
}

/// Whether a value that both sides give is different in a way no default and no notation
/// makes equal. False means only that a closer look is needed.
fn differs_at_sight(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(fields), Value::Object(_)) => fields.iter().any(|(key, value)| {
            // One of the two spellings of the service account overrides the other.
            key != TEMPLATE_HASH
                && key != "serviceAccount"
                && member(right, key).is_some_and(|other| differs_at_sight(value, other))
        }),
        (Value::Array(left), Value::Array(right)) => {
            left.len() != right.len()
                || left.iter().zip(right).any(|(left, right)| differs_at_sight(left, right))
        }
        // Quantities and instants begin with a digit or a sign, an empty text may be defaulted.
        (Value::String(left), Value::String(right)) => {
            left != right && is_plain_word(left) && is_plain_word(right)
        }
        _ => false,
    }
}

fn is_plain_word(text: &str) -> bool {
    text.bytes().next().is_some_and(|first| first.is_ascii_alphabetic())
}

struct Comparer<'t> {
    table: &'t Table,
}

impl Comparer<'_> {
    fn same(&self, left: Option<&Value>, right: Option<&Value>, of: TypeId) -> bool {
        let present = |value: &&Value| !value.is_null();
        let (left, right) = (left.filter(present), right.filter(present));
        if left == right {
            return true;
        }
        match &self.table.get(of).shape {
            Shape::Pointer(inner) => {
                left.is_some() && right.is_some() && self.same(left, right, *inner)
            }
            Shape::List(item) => self.lists(left, right, *item),
            Shape::Map(item) => self.maps(left, right, *item),
            Shape::Struct(fields) => self.structs(left, right, fields),
            Shape::Quantity => amount(left) == amount(right),
            Shape::Time => instant(left) == instant(right),
            Shape::Text => text(left) == text(right),
            Shape::Bool => flag(left) == flag(right),
            Shape::Int32 | Shape::Int64 | Shape::IntOrString => number(left) == number(right),
            Shape::Opaque => false,
        }
    }

    fn lists(&self, left: Option<&Value>, right: Option<&Value>, item: TypeId) -> bool {
        let (left, right) = (items(left), items(right));
        left.len() == right.len()
            && left.iter().zip(right).all(|(left, right)| self.same(Some(left), Some(right), item))
    }

    fn maps(&self, left: Option<&Value>, right: Option<&Value>, item: TypeId) -> bool {
        let empty = Map::new();
        let left = left.and_then(Value::as_object).unwrap_or(&empty);
        let right = right.and_then(Value::as_object).unwrap_or(&empty);
        left.len() == right.len()
            && left.iter().all(|(key, value)| {
                right.get(key).is_some_and(|other| self.same(Some(value), Some(other), item))
            })
    }

    fn structs(&self, left: Option<&Value>, right: Option<&Value>, fields: &[Field]) -> bool {
        let known = fields.iter().all(|field| match &field.json {
            None => self.same_embedded(left, right, field.of),
            Some(json) => self.same(
                left.and_then(|value| value.get(json)),
                right.and_then(|value| value.get(json)),
                field.of,
            ),
        });
        known && self.same_unknown(left, right, fields)
    }

    /// The members of an embedded struct, without the fields around it.
    fn same_embedded(&self, left: Option<&Value>, right: Option<&Value>, of: TypeId) -> bool {
        let Shape::Struct(fields) = &self.table.get(of).shape else { return left == right };
        fields.iter().all(|field| {
            let json = field.json.as_deref().unwrap_or_default();
            let (left, right) =
                (left.and_then(|of| of.get(json)), right.and_then(|of| of.get(json)));
            self.same(left, right, field.of)
        })
    }

    fn same_unknown(&self, left: Option<&Value>, right: Option<&Value>, fields: &[Field]) -> bool {
        let unknown = |value: Option<&Value>| -> Map<String, Value> {
            let all = value.and_then(Value::as_object).into_iter().flatten();
            all.filter(|(key, value)| !value.is_null() && !self.knows(fields, key))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect()
        };
        unknown(left) == unknown(right)
    }

    fn knows(&self, fields: &[Field], key: &str) -> bool {
        fields.iter().any(|field| match &field.json {
            Some(json) => json == key,
            None => match &self.table.get(field.of).shape {
                Shape::Struct(inner) => self.knows(inner, key),
                _ => false,
            },
        })
    }
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn amount(value: Option<&Value>) -> Option<Quantity> {
    match value {
        None => Some(Quantity::ZERO),
        Some(Value::String(text)) => text.parse().ok(),
        Some(other) => other.to_string().parse().ok(),
    }
}

fn instant(value: Option<&Value>) -> Option<jiff::Timestamp> {
    crate::object::meta::timestamp(value)
}

fn text(value: Option<&Value>) -> Option<&str> {
    value.map_or(Some(""), Value::as_str)
}

fn flag(value: Option<&Value>) -> Option<bool> {
    value.map_or(Some(false), Value::as_bool)
}

/// A number, or the text of an int-or-string.
fn number(value: Option<&Value>) -> Option<Result<i64, &str>> {
    match value {
        None => Some(Ok(0)),
        Some(Value::String(text)) => Some(Err(text)),
        Some(other) => other.as_i64().map(Ok),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn template(container: &Value) -> Value {
        let mut container = container.clone();
        container["name"] = json!("app");
        container["image"] = json!("web:v1");
        json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}})
    }

    #[test]
    fn containers_are_compared_as_go_decodes_them() {
        let bare = json!({});
        let cases = [
            ("as written", json!({}), true),
            ("defaults spelled out", json!({"imagePullPolicy": "IfNotPresent"}), true),
            ("empty list", json!({"env": []}), true),
            ("null", json!({"env": null, "lifecycle": null}), true),
            ("false where absent is false", json!({"stdin": false}), true),
            ("empty resources, which are no pointer", json!({"resources": {}}), true),
            ("empty struct behind a pointer", json!({"lifecycle": {}}), false),
            ("other pull policy", json!({"imagePullPolicy": "Always"}), false),
            ("a field nobody knows", json!({"futureField": 1}), false),
        ];
        for (name, container, same) in cases {
            assert_eq!(same_template(&template(&bare), &template(&container)), same, "{name}");
        }
    }

    #[test]
    fn amounts_compare_by_value() {
        let asking = |cpu: Value| template(&json!({"resources": {"requests": {"cpu": cpu}}}));
        assert!(same_template(&asking(json!("1")), &asking(json!("1000m"))));
        assert!(same_template(&asking(json!(1)), &asking(json!("1"))));
        assert!(!same_template(&asking(json!("1")), &asking(json!("2"))));
    }

    #[test]
    fn labels_count_but_for_the_hash() {
        let with = |labels: Value| json!({"metadata": {"labels": labels}, "spec": {}});
        let bare = with(json!({"app": "web"}));
        assert!(same_template(&bare, &with(json!({"app": "web", TEMPLATE_HASH: "x"}))));
        assert!(!same_template(&bare, &with(json!({"app": "web", "tier": "front"}))));
        assert!(!same_template(&bare, &with(json!({"app": "api"}))));
    }
}
