//! Which values fields of built-in types take, where they are a few and all are known:
//! `kubectl explain` shows them, and editors offer them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

/// `type.field: values`; with `[]` or `{}` behind the field they are those of its items.
const TABLE: &str = include_str!("enums.txt");

type Enums = BTreeMap<&'static str, Vec<(&'static str, Vec<&'static str>)>>;

static ENUMS: LazyLock<Enums> = LazyLock::new(|| {
    let mut enums = Enums::new();
    for line in TABLE.lines() {
        let (place, values) = line.split_once(": ").expect("a line of our own");
        let (of, field) = place.rsplit_once('.').expect("a type and a field");
        enums.entry(of).or_default().push((field, values.split('|').collect()));
    }
    enums
});

/// Puts them into the properties of a type.
pub(super) fn overlay(of: &str, properties: &mut Map<String, Value>) {
    for (field, values) in ENUMS.get(of).into_iter().flatten() {
        let (name, inner) = if let Some(name) = field.strip_suffix("[]") {
            (name, Some("items"))
        } else if let Some(name) = field.strip_suffix("{}") {
            (name, Some("additionalProperties"))
        } else {
            (*field, None)
        };
        let property = properties.get_mut(name);
        let schema = match inner {
            Some(inner) => property.and_then(|property| property.get_mut(inner)),
            None => property,
        };
        if let Some(Value::Object(schema)) = schema {
            schema.insert("enum".to_owned(), json!(values));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{self, Struct, Type};

    fn has_field(of: &Struct, name: &str) -> bool {
        of.fields.iter().any(|field| match (field.name, &field.of) {
            (None, Type::Struct(embedded)) => has_field(types::table().get(*embedded), name),
            (known, _) => known == Some(name),
        })
    }

    #[test]
    fn every_line_names_a_field_of_a_type() {
        for (of, fields) in &*ENUMS {
            let of = types::table().find(of).unwrap_or_else(|| panic!("no type {of}"));
            for (field, values) in fields {
                let name = field.trim_end_matches(['[', ']', '{', '}']);
                assert!(has_field(of, name), "{} {name}", of.name);
                assert!(values.len() > 1 && values.is_sorted(), "{} {name}", of.name);
            }
        }
    }
}
