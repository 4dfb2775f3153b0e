//! One pass over a body that keeps the last of repeated fields and remembers their paths.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::path::Path;
use super::{DEPTH_MAX, DecodeError, FINDINGS_MAX, go_json};
use crate::shape::{Form, Shape};

pub(super) fn json(shape: Shape<'_>, body: &[u8]) -> Result<(Value, Vec<String>), DecodeError> {
    let duplicates = RefCell::default();
    let syntax = |error: serde_json::Error| {
        DecodeError::Syntax(go_json::error(body).unwrap_or_else(|| error.to_string()))
    };
    let mut reader = serde_json::Deserializer::from_slice(body);
    let value = ValueSeed::root(shape, &duplicates).deserialize(&mut reader).map_err(syntax)?;
    reader.end().map_err(syntax)?;
    Ok((value, duplicates.into_inner()))
}

pub(super) fn yaml(shape: Shape<'_>, body: &[u8]) -> Result<(Value, Vec<String>), DecodeError> {
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
        && let Ok(read) = json(shape, body)
    {
        return Ok(read);
    }
    let text =
        std::str::from_utf8(body).map_err(|error| DecodeError::Syntax(format!("yaml: {error}")))?;
    let duplicates = RefCell::default();
    let options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
        with_snippet: false,
    };
    let value = serde_saphyr::with_deserializer_from_str_with_options(text, options, |reader| {
        ValueSeed::root(shape, &duplicates).deserialize(reader)
    });
    let value = value.map_err(|error| DecodeError::Syntax(format!("yaml: {error}")))?;
    Ok((value, duplicates.into_inner()))
}

/// The first field that comes twice, as Go's reader of YAML tells it.
pub(super) fn first_duplicate(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?;
    let options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::Error,
        with_snippet: false,
    };
    match serde_saphyr::from_str_with_options::<Value>(text, options) {
        Err(serde_saphyr::Error::DuplicateMappingKey { key: Some(key), location }) => {
            Some(format!("line {}: key {key:?} already set in map", location.line()))
        }
        _ => None,
    }
}

/// Deserializes a value at one position in the body, with the shape that is known for it.
struct ValueSeed<'s, 'd, 'p> {
    /// Absent where no type knows the field.
    shape: Option<Shape<'s>>,
    /// Within one of Kubernetes' own structs, where JSON of no type is kept unread.
    builtin: bool,
    path: Path<'p>,
    depth: usize,
    duplicates: &'d RefCell<Vec<String>>,
}

impl<'s, 'd> ValueSeed<'s, 'd, '_> {
    fn root(shape: Shape<'s>, duplicates: &'d RefCell<Vec<String>>) -> Self {
        Self { shape: Some(shape), builtin: false, path: Path::Root, depth: 0, duplicates }
    }

    fn child<'p>(&self, shape: Option<Shape<'s>>, path: Path<'p>) -> ValueSeed<'s, 'd, 'p> {
        let builtin =
            self.builtin || matches!(self.form(), Some(Form::Struct(of)) if of.is_builtin());
        ValueSeed { shape, builtin, path, depth: self.depth + 1, duplicates: self.duplicates }
    }

    fn form(&self) -> Option<&'s Form> {
        self.shape.map(Shape::form)
    }

    fn under(&self, key: &str) -> Option<Shape<'s>> {
        self.shape?.child(key)
    }

    /// Whether duplicate keys of this object are reported.
    fn is_read(&self) -> bool {
        let Some(shape) = self.shape else { return false };
        !(self.builtin && matches!(shape.form(), Form::Untyped | Form::Raw))
    }

    fn repeated(&self, key: &str) {
        let mut duplicates = self.duplicates.borrow_mut();
        if !self.is_read() || self.under(key).is_none() || duplicates.len() >= FINDINGS_MAX {
            return;
        }
        let path = Path::Field(&self.path, key).to_string();
        if !duplicates.contains(&path) {
            duplicates.push(path);
        }
    }

    fn go_deeper<E: Error>(&self) -> Result<(), E> {
        if self.depth >= DEPTH_MAX {
            return Err(E::custom("nested too deeply"));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_, '_, '_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_, '_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        self.go_deeper()?;
        let items = self.shape.map(Shape::items);
        let mut read = Vec::new();
        loop {
            let seed = self.child(items, Path::Item(&self.path, read.len()));
            match access.next_element_seed(seed)? {
                Some(item) => read.push(item),
                None => return Ok(Value::Array(read)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        self.go_deeper()?;
        let mut entries = Map::new();
        while let Some(key) = access.next_key_seed(Key)? {
            if entries.contains_key(&key) {
                self.repeated(&key);
            }
            let seed = self.child(self.under(&key), Path::Field(&self.path, &key));
            let value = access.next_value_seed(seed)?;
            entries.insert(key, value);
        }
        Ok(Value::Object(entries))
    }
}

/// A key; YAML has others than texts, which count as their spelling.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = String;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<String, D::Error> {
        reader.deserialize_any(self)
    }
}

impl Visitor<'_> for Key {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<String, E> {
        Ok(key.to_owned())
    }

    fn visit_string<E>(self, key: String) -> Result<String, E> {
        Ok(key)
    }

    fn visit_bool<E>(self, key: bool) -> Result<String, E> {
        Ok(key.to_string())
    }

    fn visit_i64<E>(self, key: i64) -> Result<String, E> {
        Ok(key.to_string())
    }

    fn visit_u64<E>(self, key: u64) -> Result<String, E> {
        Ok(key.to_string())
    }

    fn visit_f64<E>(self, key: f64) -> Result<String, E> {
        Ok(key.to_string())
    }
}
