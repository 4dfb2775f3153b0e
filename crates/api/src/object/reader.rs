//! Reads a JSON value into a type, and says where in the value the type did not fit.
//!
//! It accepts what `serde_json` accepts, with the same messages. The path is put together on the
//! way back from a failure, so reading a value that fits costs nothing extra, and the parser of
//! each type is compiled once; a wrapper that follows the path on the way down has each compiled
//! again.

use std::fmt::{self, Display};

use serde::Deserialize;
use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, Expected, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

/// The value as a type, or the dotted path to what does not fit (`.` for the value itself) and
/// the reason.
pub(super) fn read<'de, T: Deserialize<'de>>(value: &'de Value) -> Result<T, (String, String)> {
    T::deserialize(Reader(value)).map_err(|failure| (failure.path(), failure.0.message))
}

/// Boxed, because every result on the way has room for it.
#[derive(Debug)]
struct Failure(Box<Misfit>);

#[derive(Debug)]
struct Misfit {
    message: String,
    /// From the innermost outwards.
    path: Vec<Segment>,
}

#[derive(Debug)]
enum Segment {
    Field(String),
    Index(usize),
}

impl Failure {
    #[cold]
    fn below(mut self, segment: Segment) -> Self {
        self.0.path.push(segment);
        self
    }

    fn path(&self) -> String {
        let mut path = String::new();
        for segment in self.0.path.iter().rev() {
            match segment {
                Segment::Field(name) if path.is_empty() => path.push_str(name),
                Segment::Field(name) => path.extend([".", name]),
                Segment::Index(index) => path.extend(["[", &index.to_string(), "]"]),
            }
        }
        if path.is_empty() { ".".to_owned() } else { path }
    }
}

impl Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0.message)
    }
}

impl std::error::Error for Failure {}

impl Error for Failure {
    #[cold]
    fn custom<T: Display>(message: T) -> Self {
        Self(Box::new(Misfit { message: message.to_string(), path: Vec::new() }))
    }

    // In the words of JSON: null, not unit.
    #[cold]
    fn invalid_type(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::custom(serde_json::Error::invalid_type(found, wanted))
    }

    #[cold]
    fn invalid_value(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::custom(serde_json::Error::invalid_value(found, wanted))
    }
}

struct Reader<'de>(&'de Value);

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(value), _) => visitor.visit_u64(value),
                (None, Some(value)) => visitor.visit_i64(value),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(value) => visitor.visit_borrowed_str(value),
            Value::Array(items) => read_items(items, visitor),
            Value::Object(fields) => read_fields(fields, visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        match self.0 {
            Value::String(name) => visitor.visit_enum(Variant { name, content: None }),
            Value::Object(fields) => match fields.iter().next() {
                Some((name, content)) if fields.len() == 1 => {
                    visitor.visit_enum(Variant { name, content: Some(content) })
                }
                _ => Err(Failure::invalid_value(Unexpected::Map, &"map with a single key")),
            },
            other => Err(Failure::invalid_type(unexpected(other), &"string or map")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_unit()
    }

    // What a type does not expect its visitor refuses, in the same words.
    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct identifier
    }
}

fn unexpected(value: &Value) -> Unexpected<'_> {
    match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(value) => Unexpected::Bool(*value),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(value), _) => Unexpected::Unsigned(value),
            (None, Some(value)) => Unexpected::Signed(value),
            (None, None) => Unexpected::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(value) => Unexpected::Str(value),
        Value::Array(_) => Unexpected::Seq,
        Value::Object(_) => Unexpected::Map,
    }
}

fn read_items<'de, V: Visitor<'de>>(items: &'de [Value], visitor: V) -> Result<V::Value, Failure> {
    let mut rest = Items { all: items, next: 0 };
    let value = visitor.visit_seq(&mut rest)?;
    if rest.next < items.len() {
        return Err(Failure::invalid_length(items.len(), &"fewer elements in array"));
    }
    Ok(value)
}

struct Items<'de> {
    all: &'de [Value],
    next: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Failure;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Failure> {
        let index = self.next;
        let Some(item) = self.all.get(index) else { return Ok(None) };
        self.next += 1;
        match seed.deserialize(Reader(item)) {
            Ok(value) => Ok(Some(value)),
            Err(failure) => Err(failure.below(Segment::Index(index))),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.all.len() - self.next)
    }
}

fn read_fields<'de, V: Visitor<'de>>(
    fields: &'de Map<String, Value>,
    visitor: V,
) -> Result<V::Value, Failure> {
    let mut rest = Fields::of(fields);
    let value = visitor.visit_map(&mut rest)?;
    if rest.unread.len() > 0 {
        return Err(Failure::invalid_length(fields.len(), &"fewer elements in map"));
    }
    Ok(value)
}

struct Fields<'de> {
    unread: serde_json::map::Iter<'de>,
    /// The field whose key was read last.
    current: Option<(&'de String, &'de Value)>,
}

impl<'de> Fields<'de> {
    fn of(fields: &'de Map<String, Value>) -> Self {
        Self { unread: fields.iter(), current: None }
    }
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Failure;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Failure> {
        self.current = self.unread.next();
        let Some((key, _)) = self.current else { return Ok(None) };
        match seed.deserialize(BorrowedStrDeserializer::new(key)) {
            Ok(value) => Ok(Some(value)),
            Err(failure) => Err(Failure::below(failure, Segment::Field(key.clone()))),
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Failure> {
        let Some((key, value)) = self.current.take() else {
            return Err(Failure::custom("value is missing"));
        };
        match seed.deserialize(Reader(value)) {
            Ok(value) => Ok(value),
            Err(failure) => Err(failure.below(Segment::Field(key.clone()))),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.unread.len())
    }
}

/// A word, or an object with one field.
struct Variant<'de> {
    name: &'de str,
    content: Option<&'de Value>,
}

impl Variant<'_> {
    fn below(&self, failure: Failure) -> Failure {
        failure.below(Segment::Field(self.name.to_owned()))
    }

    fn refused(&self, wanted: &str) -> Failure {
        let found = self.content.map_or(Unexpected::UnitVariant, unexpected);
        self.below(Failure::invalid_type(found, &wanted))
    }
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Failure;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Failure> {
        let variant = seed.deserialize(BorrowedStrDeserializer::<Failure>::new(self.name))?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Failure;

    fn unit_variant(self) -> Result<(), Failure> {
        match self.content {
            Some(content) => <()>::deserialize(Reader(content)).map_err(|it| self.below(it)),
            None => Ok(()),
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Failure> {
        match self.content {
            Some(content) => seed.deserialize(Reader(content)).map_err(|it| self.below(it)),
            None => Err(self.refused("newtype variant")),
        }
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Failure> {
        match self.content {
            // As `serde_json` has it.
            Some(Value::Array(items)) if items.is_empty() => {
                visitor.visit_unit().map_err(|it| self.below(it))
            }
            Some(Value::Array(items)) => read_items(items, visitor).map_err(|it| self.below(it)),
            _ => Err(self.refused("tuple variant")),
        }
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        match self.content {
            Some(Value::Object(fields)) => {
                read_fields(fields, visitor).map_err(|it| self.below(it))
            }
            _ => Err(self.refused("struct variant")),
        }
    }
}

#[cfg(test)]
mod tests;
