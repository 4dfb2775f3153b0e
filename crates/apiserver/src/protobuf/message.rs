//! The fields of a message as the JSON of its struct. Empty values are written as they come;
//! which of them mean "absent" is for the canonical spelling to say.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use convoy_api::text::duration::GoDuration;
use jiff::Timestamp;
use serde_json::{Map, Number, Value};

use super::ProtobufError;
use super::wire::{Content, fields, varint};
use crate::canonical::{micros, seconds};
use crate::shape::InsteadOfSchema;
use crate::shape::Scalar;
use crate::types::{StructId, Table, Type};

const SCHEMA: &str = "apiextensions.v1.JSONSchemaProps";

/// Adds the fields of `message` to `object`.
pub(super) fn read(
    table: &Table,
    id: StructId,
    message: &[u8],
    object: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), ProtobufError> {
    let depth = depth.checked_sub(1).ok_or(ProtobufError::Malformed("it is nested too deeply"))?;
    let reader = Reader { table, depth };
    for field in fields(message) {
        let (number, content) = field?;
        let known = table.get(id).fields.iter().find(|known| known.number == number);
        match known.map(|known| (known.name, &known.of)) {
            Some((Some(name), of)) => reader.field(of, content, object, name)?,
            Some((None, Type::Struct(embedded))) => {
                read(table, *embedded, content.bytes()?, object, depth)?;
            }
            Some((None, _)) | None => {}
        }
    }
    Ok(())
}

struct Reader<'t> {
    table: &'t Table,
    depth: usize,
}

impl Reader<'_> {
    fn field(
        &self,
        of: &Type,
        content: Content<'_>,
        object: &mut Map<String, Value>,
        name: &str,
    ) -> Result<(), ProtobufError> {
        match of {
            Type::Pointer(inner) => self.field(inner, content, object, name),
            Type::List(items) => {
                let list = object.entry(name).or_insert_with(|| Value::Array(Vec::new()));
                let Value::Array(list) = list else { return Ok(()) };
                self.push(items, content, list)
            }
            Type::Map(values) => {
                let entries = object.entry(name).or_insert_with(|| Value::Object(Map::new()));
                let Value::Object(entries) = entries else { return Ok(()) };
                let (key, value) = self.entry(values, content.bytes()?)?;
                entries.insert(key, value);
                Ok(())
            }
            other => {
                let value = self.value(other, content)?;
                object.insert(name.to_owned(), value);
                Ok(())
            }
        }
    }

    /// Numbers may come packed into one run of bytes.
    fn push(
        &self,
        items: &Type,
        content: Content<'_>,
        list: &mut Vec<Value>,
    ) -> Result<(), ProtobufError> {
        let packed =
            matches!(items, Type::Scalar(Scalar::Integer | Scalar::Integer32 | Scalar::Boolean));
        match content {
            Content::Bytes(mut rest) if packed => {
                while !rest.is_empty() {
                    let number = varint(&mut rest);
                    let number = number.ok_or(ProtobufError::Malformed("a list is cut short"))?;
                    list.push(self.value(items, Content::Varint(number))?);
                }
            }
            _ => list.push(self.value(items, content)?),
        }
        Ok(())
    }

    fn entry(&self, values: &Type, bytes: &[u8]) -> Result<(String, Value), ProtobufError> {
        let (mut key, mut value) = (String::new(), None);
        for field in fields(bytes) {
            match field? {
                (1, content) => key = content.text()?,
                (2, content) => value = Some(content),
                _ => {}
            }
        }
        let value = match value {
            Some(content) => self.value(values, content)?,
            None if *values == Type::Scalar(Scalar::Bytes) => Value::from(""),
            None => Value::Null,
        };
        Ok((key, value))
    }

    fn value(&self, of: &Type, content: Content<'_>) -> Result<Value, ProtobufError> {
        match of {
            Type::Scalar(of) => scalar(*of, content),
            Type::Raw => raw(content.bytes()?),
            Type::Texts => self.list(&Type::Scalar(Scalar::Text), content.bytes()?),
            Type::List(items) => self.list(items, content.bytes()?),
            Type::Schema(instead) => self.schema(*instead, content.bytes()?),
            Type::Struct(id) => {
                let mut object = Map::new();
                read(self.table, *id, content.bytes()?, &mut object, self.depth)?;
                Ok(Value::Object(object))
            }
            Type::Pointer(inner) => self.value(inner, content),
            Type::Map(_) => Err(ProtobufError::Malformed("no type has a list of maps")),
        }
    }

    /// A list that is not a field of its own is a message around its items.
    fn list(&self, items: &Type, bytes: &[u8]) -> Result<Value, ProtobufError> {
        let mut list = Vec::new();
        for field in fields(bytes) {
            if let (1, content) = field? {
                list.push(self.value(items, content)?);
            }
        }
        Ok(Value::Array(list))
    }

    fn schema(&self, instead: InsteadOfSchema, bytes: &[u8]) -> Result<Value, ProtobufError> {
        let schema = Type::Struct(self.table.named(SCHEMA));
        let (mut whole, mut list, mut allowed) = (None, Vec::new(), false);
        for field in fields(bytes) {
            match (instead, field?) {
                (InsteadOfSchema::Boolean, (1, content)) => allowed = content.integer()? != 0,
                (InsteadOfSchema::Boolean, (2, content))
                | (InsteadOfSchema::Schemas | InsteadOfSchema::Texts, (1, content)) => {
                    whole = Some(self.value(&schema, content)?);
                }
                (InsteadOfSchema::Schemas, (2, content)) => {
                    list.push(self.value(&schema, content)?);
                }
                (InsteadOfSchema::Texts, (2, content)) => list.push(content.text()?.into()),
                _ => {}
            }
        }
        Ok(match (instead, whole) {
            (InsteadOfSchema::Boolean, None) => Value::Bool(allowed),
            (InsteadOfSchema::Boolean, Some(whole)) => whole,
            (_, _) if !list.is_empty() => Value::Array(list),
            (_, whole) => whole.unwrap_or_default(),
        })
    }
}

fn scalar(of: Scalar, content: Content<'_>) -> Result<Value, ProtobufError> {
    Ok(match of {
        Scalar::Text => content.text()?.into(),
        Scalar::Boolean => Value::Bool(content.integer()? != 0),
        Scalar::Integer => content.integer()?.into(),
        Scalar::Integer32 => low_bits(content.integer()?).into(),
        Scalar::Number => match content {
            Content::Fixed64(bits) => {
                Number::from_f64(f64::from_bits(bits)).map_or(Value::Null, Value::Number)
            }
            _ => return Err(ProtobufError::Malformed("no float stands where one was expected")),
        },
        Scalar::IntOrString => int_or_string(content.bytes()?)?,
        Scalar::Quantity => quantity(content.bytes()?)?,
        Scalar::Time => instant(content.bytes()?)?.map_or(Value::Null, seconds),
        Scalar::MicroTime => instant(content.bytes()?)?.map_or(Value::Null, micros),
        Scalar::Duration => {
            GoDuration::from_nanos(numbers(content.bytes()?)?[0]).to_string().into()
        }
        Scalar::Bytes => STANDARD.encode(content.bytes()?).into(),
    })
}

/// Kubernetes' own decoder keeps the low 32 bits of a longer number.
fn low_bits(number: i64) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "what upstream's decoder does")]
    let low = number as i32;
    low
}

/// The first two numbers of a message; 0 for what it does not have.
fn numbers(bytes: &[u8]) -> Result<[i64; 2], ProtobufError> {
    let mut numbers = [0; 2];
    for field in fields(bytes) {
        match field? {
            (1, content) => numbers[0] = content.integer()?,
            (2, content) => numbers[1] = content.integer()?,
            _ => {}
        }
    }
    Ok(numbers)
}

/// An empty message is the instant that nobody has set.
fn instant(bytes: &[u8]) -> Result<Option<Timestamp>, ProtobufError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let [seconds, nanos] = numbers(bytes)?;
    let time = Timestamp::new(seconds, low_bits(nanos));
    time.map(Some).map_err(|_| ProtobufError::Malformed("an instant is out of range"))
}

fn quantity(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let mut text = String::from("0");
    for field in fields(bytes) {
        if let (1, content) = field? {
            text = content.text()?;
        }
    }
    match crate::canonical::quantity(&text) {
        Some(stored) => Ok(stored.into()),
        None => Err(ProtobufError::Malformed("a quantity is not one")),
    }
}

fn int_or_string(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let (mut is_text, mut number, mut text) = (false, 0, String::new());
    for field in fields(bytes) {
        match field? {
            (1, content) => is_text = content.integer()? != 0,
            (2, content) => number = low_bits(content.integer()?),
            (3, content) => text = content.text()?,
            _ => {}
        }
    }
    Ok(if is_text { text.into() } else { number.into() })
}

fn raw(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let mut text = &[][..];
    for field in fields(bytes) {
        if let (1, content) = field? {
            text = content.bytes()?;
        }
    }
    if text.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(text).map_err(|_| ProtobufError::Malformed("embedded JSON is not JSON"))
}
