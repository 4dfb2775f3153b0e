//! Objects without `metadata.managedFields`, which is up to half of an object and which nothing
//! here reads. It is skipped while parsing.

use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Number, Value};

/// The JSON of an object that lacks `metadata.managedFields`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trimmed(pub(crate) Value);

impl<'de> Deserialize<'de> for Trimmed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Section::Object.deserialize(deserializer).map(Self)
    }
}

/// The section of an object that is being read.
#[derive(Clone, Copy)]
enum Section {
    Object,
    Metadata,
    Elsewhere,
}

impl Section {
    /// The section that a field holds; `None` if the field is skipped.
    fn field(self, name: &str) -> Option<Self> {
        match (self, name) {
            (Self::Object, "metadata") => Some(Self::Metadata),
            (Self::Metadata, "managedFields") => None,
            _ => Some(Self::Elsewhere),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Section {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self {
            Self::Elsewhere => Value::deserialize(deserializer),
            Self::Object | Self::Metadata => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Section {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            match self.field(&name) {
                Some(section) => _ = object.insert(name, fields.next_value_seed(section)?),
                None => _ = fields.next_value::<IgnoredAny>()?,
            }
        }
        Ok(Value::Object(object))
    }

    // A value that is not an object is kept, so that validation can report it.

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(json: &Value) -> Value {
        let from_text: Trimmed = serde_json::from_str(&json.to_string()).unwrap();
        let from_value: Trimmed = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(from_text, from_value);
        from_text.0
    }

    #[test]
    fn only_who_owns_which_field_is_left_out() {
        let data = json!({"managedFields": "mine", "metadata": {"managedFields": [1]}});
        let metadata =
            json!({"name": "a", "labels": {"managedFields": "b"}, "managedFields": [{}]});
        let config = json!({"kind": "ConfigMap", "metadata": metadata, "data": data,
            "managedFields": 7, "numbers": [1, -2, 1.5, true, null]});
        let mut want = config.clone();
        want["metadata"].as_object_mut().unwrap().shift_remove("managedFields");
        assert_eq!(read(&config).to_string(), want.to_string());
    }

    #[test]
    fn what_is_no_object_stays_as_it_is() {
        for json in [json!(null), json!([1, {"metadata": {"managedFields": 1}}]), json!("a")] {
            assert_eq!(read(&json), json);
        }
        for metadata in [json!(true), json!(-1), json!(1), json!(0.5), json!([]), json!("a")] {
            let object = json!({ "metadata": metadata });
            assert_eq!(read(&object), object);
        }
    }
}
