//! Type checks: whether the JSON of an object fits the structs it is decoded into.
//!
//! A wrong type makes a server refuse the object, an unknown field only makes it warn: the
//! field may be newer than the table.

use serde_json::Value;

use super::types::{Field, Release, Shape, Table, TypeId, table};
use crate::object::shape_in_words;
use crate::text::quantity::Quantity;
use crate::text::similar::{self, UnknownField};

/// A field whose value is of the wrong type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    pub field: String,
    /// The value, what was wanted, and what was found.
    pub message: String,
    /// Whether a text was wanted: a plain value can be read as one.
    pub wants_text: bool,
}

/// What does not fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Misfits {
    pub errors: Vec<Misfit>,
    /// Fields that the types do not have.
    pub unknown: Vec<UnknownField>,
}

/// Checks `object` against a type of the table, e.g. `v1.Deployment`.
pub fn misfits(object: &Value, of: &str) -> Misfits {
    let table = table(Release::default());
    let mut checker = Checker { table, found: Misfits::default() };
    checker.value(object, table.named(of), "");
    checker.found
}

struct Checker<'t> {
    table: &'t Table,
    found: Misfits,
}

impl Checker<'_> {
    fn value(&mut self, value: &Value, of: TypeId, path: &str) {
        if value.is_null() {
            return; // reads as absent everywhere
        }
        match (&self.table.get(of).shape, value) {
            (Shape::Pointer(inner), _) => self.value(value, *inner, path),
            (Shape::Struct(fields), Value::Object(_)) => self.fields(value, fields, path),
            (Shape::List(item), Value::Array(items)) => {
                for (index, entry) in items.iter().enumerate() {
                    self.value(entry, *item, &format!("{path}[{index}]"));
                }
            }
            (Shape::Map(item), Value::Object(entries)) => {
                for (key, entry) in entries {
                    self.value(entry, *item, &format!("{path}[{key}]"));
                }
            }
            (Shape::Text | Shape::IntOrString, Value::String(_))
            | (Shape::Bool, Value::Bool(_))
            | (Shape::Opaque, _) => {}
            (Shape::Int32 | Shape::IntOrString, Value::Number(number))
                if number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()) => {}
            (Shape::Int64, Value::Number(number)) if number.is_i64() => {}
            (Shape::Quantity, Value::String(_) | Value::Number(_)) => self.quantity(value, path),
            (Shape::Time, Value::String(text)) if text.parse::<jiff::Timestamp>().is_ok() => {}
            (shape, _) => self.wrong(value, wanted(shape), path),
        }
    }

    fn fields(&mut self, value: &Value, fields: &[Field], path: &str) {
        let entries = value.as_object().into_iter().flatten();
        for (key, entry) in entries {
            let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            if let Some(of) = self.field(fields, key) {
                self.value(entry, of, &below);
            } else {
                let meant = similar::nearest(key, self.names(fields));
                self.found.unknown.push(UnknownField::new(path, below, meant));
            }
        }
    }

    /// The JSON names of fields, also those of embedded structs.
    fn names<'f>(&'f self, fields: &'f [Field]) -> Vec<&'f str> {
        let names = fields.iter().flat_map(|field| match &field.json {
            Some(json) => vec![json.as_ref()],
            None => match &self.table.get(field.of).shape {
                Shape::Struct(inner) => self.names(inner),
                _ => Vec::new(),
            },
        });
        names.collect()
    }

    /// The type of the field with this JSON name, also within embedded structs.
    fn field(&self, fields: &[Field], key: &str) -> Option<TypeId> {
        fields.iter().find_map(|field| match &field.json {
            Some(json) => (json == key).then_some(field.of),
            None => match &self.table.get(field.of).shape {
                Shape::Struct(inner) => self.field(inner, key),
                _ => None,
            },
        })
    }

    fn quantity(&mut self, value: &Value, path: &str) {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if text.trim().parse::<Quantity>().is_err() {
            self.wrong(value, "a quantity such as 500m, 2 or 4Gi", path);
        }
    }

    fn wrong(&mut self, value: &Value, wanted: &str, path: &str) {
        let got = shape_in_words(value);
        let message = match value {
            Value::Array(_) | Value::Object(_) => {
                format!("Invalid value: want {wanted}, got {got}")
            }
            _ if wanted == TEXT => {
                format!("Invalid value: {value}: want {wanted}, got {got}; write it in quotes")
            }
            _ => format!("Invalid value: {value}: want {wanted}, got {got}"),
        };
        let wants_text = wanted == TEXT;
        self.found.errors.push(Misfit { field: path.to_owned(), message, wants_text });
    }
}

const TEXT: &str = "a string";

fn wanted(shape: &Shape) -> &'static str {
    match shape {
        Shape::Text => TEXT,
        Shape::Bool => "true or false",
        Shape::Int32 => "an integer of 32 bits",
        Shape::Int64 => "an integer of 64 bits",
        Shape::IntOrString => "an integer of 32 bits or a string",
        Shape::Quantity => "a quantity such as 500m, 2 or 4Gi",
        Shape::Time => "an instant such as 2026-01-01T00:00:00Z",
        Shape::List(_) => "a list",
        Shape::Map(_) | Shape::Struct(_) => "an object",
        Shape::Pointer(_) | Shape::Opaque => "a value",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wrong_type_names_its_field() {
        let cases = [
            (json!({"spec": {"replicas": "3"}}), "spec.replicas"),
            (json!({"spec": {"replicas": 3_000_000_000_i64}}), "spec.replicas"),
            (json!({"spec": {"paused": 1}}), "spec.paused"),
            (json!({"spec": {"strategy": []}}), "spec.strategy"),
            (
                json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": 1.5}}}}),
                "spec.strategy.rollingUpdate.maxSurge",
            ),
            (json!({"metadata": {"labels": {"a": 1}}}), "metadata.labels[a]"),
            (
                json!({"spec": {"template": {"spec": {"containers": [{"resources": {"limits": {"cpu": "much"}}}]}}}}),
                "spec.template.spec.containers[0].resources.limits[cpu]",
            ),
            (
                json!({"spec": {"template": {"spec": {"volumes": [{"configMap": {"items": {}}}]}}}}),
                "spec.template.spec.volumes[0].configMap.items",
            ),
        ];
        for (object, field) in cases {
            let found = misfits(&object, "v1.Deployment").errors;
            let fields: Vec<&str> = found.iter().map(|error| error.field.as_str()).collect();
            assert_eq!(fields, [field], "{object}");
        }
    }

    #[test]
    fn null_and_unknown_fields_are_no_errors() {
        let object = json!({"spec": {"replicas": null, "future": {"a": 1},
            "template": {"metadata": {"creationTimestamp": null}}}});
        let found = misfits(&object, "v1.Deployment");
        assert_eq!(found.errors, []);
        let unknown: Vec<&str> = found.unknown.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(unknown, ["spec.future"]);
    }
}
