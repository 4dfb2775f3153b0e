//! JSON as CEL sees it through a schema: integers are `int`, numbers `double`, formats choose
//! timestamps, durations and bytes, and objects show the fields that the schema declares.

use cel::common::types::{CelDouble, CelInt};
use cel::common::value::Val;
use serde_json::{Map, Value};

use super::format::Format;
use super::node::{Additional, ListType, Node, Type};
use crate::cel::{self as language, Identity, RESERVED, SharedList, SharedMap, from_json};

/// `value` as rules on `node` see it. A resource shows its kind and name whatever its schema
/// declares.
pub(super) fn typed(node: &Node, value: &Value, resource: bool) -> Box<dyn Val> {
    match value {
        Value::Array(items) => match &node.items {
            Some(schema) => {
                let items = items.iter().map(|item| typed(schema, item, schema.embedded));
                Box::new(SharedList::new(items.collect(), identity(&node.list_type)))
            }
            None => from_json(value),
        },
        Value::Object(fields) if node.is(Type::Object) => object(node, fields, resource),
        Value::String(text) => string(node, text).unwrap_or_else(|| from_json(value)),
        Value::Number(number) if node.is(Type::Number) => {
            Box::new(CelDouble::from(number.as_f64().unwrap_or_default()))
        }
        #[expect(clippy::cast_possible_truncation, reason = "the type check refuses fractions")]
        Value::Number(number) if node.is(Type::Integer) && number.is_f64() => {
            Box::new(CelInt::from(number.as_f64().unwrap_or_default() as i64))
        }
        other => from_json(other),
    }
}

fn object(node: &Node, fields: &Map<String, Value>, resource: bool) -> Box<dyn Val> {
    let mut entries = Vec::new();
    for (name, value) in fields {
        if let Additional::Like(schema) = &node.additional {
            entries.push((name.clone(), typed(schema, value, schema.embedded)));
        } else if resource && name == "metadata" {
            entries.push((name.clone(), metadata(node.properties.get(name), value)));
        } else if resource && (name == "apiVersion" || name == "kind") {
            entries.push((name.clone(), from_json(value)));
        } else if let Some(schema) = node.properties.get(name)
            && let Some(name) = escaped(name)
            && !value.is_null()
        // a declared field that is null reads as absent
        {
            entries.push((name, typed(schema, value, schema.embedded)));
        }
    }
    Box::new(SharedMap::new(entries))
}

/// Of its metadata a resource shows what the schema declares, and the two names.
fn metadata(node: Option<&Node>, value: &Value) -> Box<dyn Val> {
    let is_shown = |name: &str| {
        name == "name"
            || name == "generateName"
            || node.is_some_and(|node| node.properties.contains_key(name))
    };
    let fields = value.as_object().into_iter().flatten();
    let entries = fields.filter(|(name, _)| is_shown(name)).filter_map(|(name, value)| {
        let schema = node.and_then(|node| node.properties.get(name));
        let value = schema.map_or_else(|| from_json(value), |node| typed(node, value, false));
        Some((escaped(name)?, value))
    });
    Box::new(SharedMap::new(entries.collect()))
}

fn string(node: &Node, text: &str) -> Option<Box<dyn Val>> {
    let Some(format @ Format::Text { .. }) = &node.format else { return None };
    match format.name() {
        "date-time" => language::converted("timestamp", text),
        "date" => language::converted("timestamp", &format!("{text}T00:00:00Z")),
        "duration" => language::converted("duration", text),
        "byte" => language::converted("base64.decode", text),
        _ => None,
    }
}

fn identity(list_type: &ListType) -> Identity {
    match list_type {
        ListType::Atomic => Identity::Ordered,
        ListType::Set => Identity::Set,
        ListType::Map { keys } => Identity::Map(keys.as_slice().into()),
    }
}

/// A field's name as rules spell it; None for names that they cannot spell.
pub fn escaped(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|letter: char| letter.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte)) {
        return None;
    }
    let underscores = name.replace("__", "__underscores__");
    let dots = underscores.replace('.', "__dot__");
    Some(dots.replace('-', "__dash__").replace('/', "__slash__"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_in_kubernetes() {
        let cases = [
            ("namespace", Some("__namespace__")),
            ("max-surge", Some("max__dash__surge")),
            ("a.b/c", Some("a__dot__b__slash__c")),
            ("a__b", Some("a__underscores__b")),
            ("plain_1", Some("plain_1")),
            ("1st", None),
            ("ümlaut", None),
        ];
        for (name, want) in cases {
            assert_eq!(escaped(name).as_deref(), want, "{name}");
        }
    }
}
