//! Checks an object against its type: drops and reports unknown fields, rejects wrong types.

use base64::DecodeError as DecodeError64;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use convoy_api::text::duration::GoDuration;
use serde_json::Value;

use super::path::Path;
use super::{DecodeError, FINDINGS_MAX};
use crate::canonical::{instant, quantity};
use crate::shape::InsteadOfSchema;
use crate::shape::{Form, Scalar, Shape};

/// Drops the fields of `value` that its type does not have, and gives their paths.
pub fn fit(shape: Shape<'_>, value: &mut Value) -> Result<Vec<String>, DecodeError> {
    let root = match shape.form() {
        Form::Struct(of) => of.name.rsplit('.').next().unwrap_or_default(),
        _ => "",
    };
    let mut fitter = Fitter { root: root.to_owned(), fields: Vec::new(), unknown: Vec::new() };
    fitter.value(shape, value, &Path::Root, false)?;
    Ok(fitter.unknown)
}

struct Fitter {
    /// The kind, for messages.
    root: String,
    /// Names of the fields that lead here; Go's messages have no indices.
    fields: Vec<String>,
    unknown: Vec<String>,
}

impl Fitter {
    /// `typed` holds below one of Kubernetes' own structs.
    fn value(
        &mut self,
        shape: Shape<'_>,
        value: &mut Value,
        path: &Path<'_>,
        typed: bool,
    ) -> Result<(), DecodeError> {
        let typed = typed || matches!(shape.form(), Form::Struct(of) if of.is_builtin());
        match (shape.form(), &mut *value) {
            (_, Value::Null) => Ok(()),
            (Form::Struct(_), Value::Object(_)) => self.object(shape, value, path, typed),
            (Form::Map { .. }, Value::Object(entries)) => {
                for (key, entry) in entries.iter_mut() {
                    let Some(child) = shape.child(key) else { continue };
                    self.value(child, entry, &Path::Field(path, key), typed)?;
                }
                Ok(())
            }
            (Form::List(_), Value::Array(items)) => self.items(shape.items(), items, path, typed),
            (Form::Untyped | Form::Raw, _) => self.schema(shape, value, path),
            (Form::Scalar(of), _) if typed => self.scalar(*of, value),
            _ if typed => Err(self.wrong(value, go_type(shape))),
            _ => Ok(()),
        }
    }

    fn object(
        &mut self,
        shape: Shape<'_>,
        value: &mut Value,
        path: &Path<'_>,
        typed: bool,
    ) -> Result<(), DecodeError> {
        let Value::Object(entries) = value else { return Ok(()) };
        let mut has_unknown = false;
        for (key, entry) in entries.iter_mut() {
            let Some(child) = shape.child(key) else {
                has_unknown = true;
                self.tell(&Path::Field(path, key));
                continue;
            };
            self.fields.push(key.clone());
            self.value(child, entry, &Path::Field(path, key), typed)?;
            self.fields.pop();
        }
        if has_unknown {
            entries.retain(|key, _| shape.child(key).is_some());
        }
        Ok(())
    }

    fn items(
        &mut self,
        shape: Shape<'_>,
        items: &mut [Value],
        path: &Path<'_>,
        typed: bool,
    ) -> Result<(), DecodeError> {
        for (index, item) in items.iter_mut().enumerate() {
            self.value(shape, item, &Path::Item(path, index), typed)?;
        }
        Ok(())
    }

    /// A place for a JSON schema or something shorter. Upstream's decoder of these tells no
    /// unknown fields, so definitions that have some are taken there, and here.
    fn schema(
        &mut self,
        shape: Shape<'_>,
        value: &mut Value,
        path: &Path<'_>,
    ) -> Result<(), DecodeError> {
        let Some((schema, instead)) = shape.alternative() else { return Ok(()) };
        let told = self.unknown.len();
        let fitted = match (instead, &mut *value) {
            (_, Value::Object(_)) => self.value(schema, value, path, true),
            (InsteadOfSchema::Schemas, Value::Array(items)) => {
                self.items(schema, items, path, true)
            }
            (InsteadOfSchema::Texts, Value::Array(items)) => {
                match items.iter().find(|item| !item.is_string()) {
                    Some(item) => Err(self.wrong(item, "string".into())),
                    None => Ok(()),
                }
            }
            (InsteadOfSchema::Boolean, Value::Bool(_)) => Ok(()),
            (InsteadOfSchema::Boolean, _) => {
                Err(DecodeError::Malformed("boolean or JSON schema expected".into()))
            }
            _ => Ok(()), // reads as absent
        };
        self.unknown.truncate(told);
        fitted
    }

    fn scalar(&self, of: Scalar, value: &Value) -> Result<(), DecodeError> {
        let malformed = |message: String| Err(DecodeError::Malformed(message));
        match (of, value) {
            (Scalar::Text | Scalar::IntOrString, Value::String(_))
            | (Scalar::Boolean, Value::Bool(_))
            | (Scalar::Number, Value::Number(_)) => Ok(()),
            (Scalar::Integer, Value::Number(number)) if number.is_i64() => Ok(()),
            (Scalar::Integer32 | Scalar::IntOrString, Value::Number(number))
                if number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()) =>
            {
                Ok(())
            }
            (Scalar::Quantity, Value::String(_) | Value::Number(_)) => {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                match quantity(&text) {
                    Some(_) => Ok(()),
                    None => malformed(format!("{text:?} is not a quantity such as 500m, 2 or 4Gi")),
                }
            }
            (Scalar::Time | Scalar::MicroTime, Value::String(text)) => match instant(text) {
                Some(_) if of == Scalar::Time || has_six_decimals(text) => Ok(()),
                _ => malformed(time_error(text, of == Scalar::MicroTime)),
            },
            (Scalar::Duration, Value::String(text)) => match text.parse::<GoDuration>() {
                Ok(_) => Ok(()),
                Err(_) => malformed(format!("time: invalid duration {text:?}")),
            },
            (Scalar::Bytes, Value::String(text)) => match base64_error(text) {
                None => Ok(()),
                Some(error) => malformed(format!("illegal base64 data at input byte {error}")),
            },
            (of, _) => Err(self.wrong(value, scalar_type(of).into())),
        }
    }

    fn wrong(&self, value: &Value, wanted: String) -> DecodeError {
        let is_numeric = ["int32", "int64", "float64"].contains(&wanted.as_str());
        let found = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            Value::Number(number) if is_numeric => format!("number {number}"),
            Value::Number(_) => "number".to_owned(),
            Value::String(_) => "string".to_owned(),
            Value::Array(_) => "array".to_owned(),
            Value::Object(_) => "object".to_owned(),
        };
        let place = if self.fields.is_empty() {
            "value".to_owned()
        } else {
            // Go names the struct that has the field; metadata are one that every kind has.
            let in_metadata = self.fields.len() > 1 && self.fields[0] == "metadata";
            let of = if in_metadata { "ObjectMeta" } else { &self.root };
            format!("struct field {of}.{}", self.fields.join("."))
        };
        DecodeError::WrongType { found, place, wanted }
    }

    fn tell(&mut self, path: &Path<'_>) {
        if self.unknown.len() < FINDINGS_MAX {
            self.unknown.push(path.to_string());
        }
    }
}

/// Where a text ceases to be a time, by the parts that Go expects one after the other.
fn time_error(text: &str, is_micro: bool) -> String {
    let (fraction, layout) = if is_micro {
        (".000000", "2006-01-02T15:04:05.000000Z07:00")
    } else {
        ("", "2006-01-02T15:04:05Z07:00")
    };
    let parts = ["2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05", fraction];
    let mut rest = text;
    for part in parts {
        let fits = rest.len() >= part.len()
            && part.bytes().zip(rest.bytes()).all(|(wanted, byte)| {
                if wanted.is_ascii_digit() { byte.is_ascii_digit() } else { byte == wanted }
            });
        if !fits {
            return format!(
                "parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {part:?}"
            );
        }
        rest = &rest[part.len()..];
    }
    format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as \"Z07:00\"")
}

/// Go's layout of micro times wants exactly these.
fn has_six_decimals(text: &str) -> bool {
    let fraction = text.get(19..).and_then(|tail| tail.strip_prefix(['.', ',']));
    fraction.is_some_and(|tail| tail.bytes().take_while(u8::is_ascii_digit).count() == 6)
}

/// Where a text ceases to be base64.
fn base64_error(text: &str) -> Option<usize> {
    let plain = text.replace(['\r', '\n'], "");
    Some(match STANDARD.decode(&plain).err()? {
        DecodeError64::InvalidByte(at, _) | DecodeError64::InvalidLastSymbol(at, _) => at,
        DecodeError64::InvalidLength(length) => length - length % 4,
        DecodeError64::InvalidPadding => plain.len(),
    })
}

/// How Go prints the type of a place.
fn go_type(shape: Shape<'_>) -> String {
    match shape.form() {
        Form::Scalar(of) => scalar_type(*of).to_owned(),
        Form::Struct(of) => {
            let mut parts = of.name.rsplitn(3, '.');
            let (name, package) = (parts.next().unwrap_or_default(), parts.next());
            format!("{}.{name}", package.unwrap_or_default())
        }
        Form::List(_) => format!("[]{}", go_type(shape.items())),
        Form::Map { .. } => match shape.child("") {
            Some(values) => format!("map[string]{}", go_type(values)),
            None => "map[string]string".to_owned(),
        },
        Form::Untyped | Form::Raw => "runtime.RawExtension".to_owned(),
    }
}

fn scalar_type(of: Scalar) -> &'static str {
    match of {
        Scalar::Text | Scalar::Time | Scalar::MicroTime | Scalar::Duration => "string",
        Scalar::Boolean => "bool",
        Scalar::Integer => "int64",
        Scalar::Integer32 | Scalar::IntOrString => "int32",
        Scalar::Number => "float64",
        Scalar::Quantity => "resource.Quantity",
        Scalar::Bytes => "[]uint8",
    }
}
