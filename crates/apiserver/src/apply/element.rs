//! One step of a field path: a field, an item of a list by its identity, a position.
//!
//! Elements are ordered as Kubernetes orders them, since `fieldsV1` and conflicts are listed in
//! that order: fields, keys, values, positions; values by kind and then by size.

use std::cmp::Ordering;
use std::fmt::{self, Write};

use convoy_api::schema::go;
use serde_json::{Map, Value};
use smol_str::SmolStr;

use super::grain::unwritten;
use crate::shape::{Form, ListKind, Shape};

/// A step of a path that is kept.
#[derive(Clone, Debug, PartialEq)]
pub enum Element {
    Field(SmolStr),
    /// An item of a list by the fields that identify it, sorted by name.
    Key(Box<[(SmolStr, Value)]>),
    /// An item of a list that is its own identity.
    Value(Box<Value>),
    /// A position, which only old data has.
    Index(i64),
}

/// What identifies an item, borrowed from the item itself or from the defaults of its fields.
#[derive(Clone, Debug)]
pub(super) enum Identity<'v> {
    /// By far the most frequent case, kept free of allocations.
    Key(&'v str, &'v Value),
    Keys(Vec<(&'v str, &'v Value)>),
    Value(&'v Value),
}

/// Why an item of a list has no identity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoIdentity {
    #[error("associative list with keys may not have a null element")]
    NullItem,
    #[error("associative list with keys may not have non-map elements")]
    NotAnObject,
    #[error(
        "associative list with keys has an element that omits all key fields [{0}] (and doesn't have default values for any key fields)"
    )]
    NoKey(String),
    #[error("associative list without keys has an element that's a map type")]
    ObjectInSet,
    #[error("not supported: associative list with lists as elements")]
    ListInSet,
    #[error("associative list without keys has an element that's an explicit null")]
    NullInSet,
}

/// Why a key of `fieldsV1` is no element.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadElement {
    #[error("key must be 2 characters long")]
    Short,
    #[error("missing colon: {0}")]
    NoColon(String),
    #[error("cannot read the path element {0}")]
    Content(String),
}

impl Element {
    /// Reads `f:name`, `k:{"name":"c"}`, `v:"x"` or `i:3`. None for a letter that some later
    /// version may know.
    pub(super) fn parse(text: &str) -> Result<Option<Self>, BadElement> {
        let bytes = text.as_bytes();
        if bytes.len() < 2 {
            return Err(BadElement::Short);
        }
        if bytes[1] != b':' {
            return Err(BadElement::NoColon(text.to_owned()));
        }
        let content = &text[2..];
        let bad = || BadElement::Content(text.to_owned());
        Ok(Some(match bytes[0] {
            b'f' => Self::Field(content.into()),
            b'k' => {
                let fields: Map<String, Value> =
                    serde_json::from_str(content).map_err(|_| bad())?;
                let mut fields: Vec<_> =
                    fields.into_iter().map(|(name, value)| (name.into(), plain(value))).collect();
                fields.sort_by(|(a, _): &(SmolStr, Value), (b, _)| a.cmp(b));
                Self::Key(fields.into())
            }
            b'v' => Self::Value(plain(serde_json::from_str(content).map_err(|_| bad())?).into()),
            b'i' => Self::Index(content.parse().map_err(|_| bad())?),
            _ => return Ok(None),
        }))
    }

    /// The key of `fieldsV1`.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(fields) => {
                let mut text = String::from("k:{");
                for (position, (name, value)) in fields.iter().enumerate() {
                    if position > 0 {
                        text.push(',');
                    }
                    write_text(&mut text, name, false);
                    text.push(':');
                    write_value(&mut text, value);
                }
                text.push('}');
                text
            }
            Self::Value(value) => {
                let mut text = String::from("v:");
                write_value(&mut text, value);
                text
            }
            Self::Index(position) => format!("i:{position}"),
        }
    }

    pub(super) fn is_field(&self, name: &str) -> bool {
        matches!(self, Self::Field(own) if own == name)
    }

    pub(super) fn cmp_field(&self, name: &str) -> Ordering {
        match self {
            Self::Field(own) => own.as_str().cmp(name),
            _ => Ordering::Greater,
        }
    }

    pub(super) fn cmp_identity(&self, identity: &Identity<'_>) -> Ordering {
        match (self, identity) {
            (Self::Key(own), Identity::Key(name, value)) => {
                cmp_fields(borrowed(own), [(*name, *value)].into_iter())
            }
            (Self::Key(own), Identity::Keys(fields)) => {
                cmp_fields(borrowed(own), fields.iter().copied())
            }
            (Self::Value(own), Identity::Value(value)) => cmp_values(own, value),
            _ => self.rank().cmp(&identity.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Eq for Element {}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => cmp_fields(borrowed(a), borrowed(b)),
            (Self::Value(a), Self::Value(b)) => cmp_values(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

/// As conflicts print it: `.spec`, `[name="c"]`, `[="x"]`, `[3]`.
impl fmt::Display for Element {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(out, ".{name}"),
            Self::Key(fields) => {
                out.write_char('[')?;
                for (position, (name, value)) in fields.iter().enumerate() {
                    let comma = if position > 0 { "," } else { "" };
                    write!(out, "{comma}{name}={}", go::shown(value))?;
                }
                out.write_char(']')
            }
            Self::Value(value) => write!(out, "[={}]", go::shown(value)),
            Self::Index(position) => write!(out, "[{position}]"),
        }
    }
}

impl<'v> Identity<'v> {
    /// What identifies `item` in a list of this shape, which is a set or a map.
    pub(super) fn of(list: Shape<'v>, item: &'v Value) -> Result<Self, NoIdentity> {
        let Form::List(form) = list.form() else {
            return Ok(Self::Value(item));
        };
        let ListKind::Map(keys) = &form.kind else {
            return match item {
                Value::Object(_) => Err(NoIdentity::ObjectInSet),
                Value::Array(_) => Err(NoIdentity::ListInSet),
                Value::Null => Err(NoIdentity::NullInSet),
                _ => Ok(Self::Value(item)),
            };
        };
        let fields = match item {
            Value::Object(fields) => fields,
            Value::Null => return Err(NoIdentity::NullItem),
            _ => return Err(NoIdentity::NotAnObject),
        };
        // A key that is absent takes its default; without one it is no part of the identity.
        let value_of = |key: &'v SmolStr| {
            let value = fields.get(key.as_str());
            let value = value.or_else(|| list.items().field(key)?.default.as_ref());
            let value = value.or_else(|| unwritten(list.items(), key).filter(|it| !it.is_null()));
            value.map(|value| (key.as_str(), value))
        };
        if let [key] = keys.as_slice() {
            let (key, value) = value_of(key).ok_or_else(|| NoIdentity::NoKey(go::quoted(key)))?;
            return Ok(Self::Key(key, value));
        }
        let mut found: Vec<_> = keys.iter().filter_map(value_of).collect();
        if found.is_empty() {
            let keys: Vec<_> = keys.iter().map(|key| go::quoted(key)).collect();
            return Err(NoIdentity::NoKey(keys.join(" ")));
        }
        found.sort_by_key(|(key, _)| *key);
        Ok(Self::Keys(found))
    }

    pub(super) fn element(&self) -> Element {
        let field = |name: &str, value: &Value| (SmolStr::new(name), plain(value.clone()));
        match self {
            Self::Key(name, value) => Element::Key([field(name, value)].into()),
            Self::Keys(fields) => {
                Element::Key(fields.iter().map(|(name, value)| field(name, value)).collect())
            }
            Self::Value(value) => Element::Value(plain((*value).clone()).into()),
        }
    }

    fn rank(&self) -> u8 {
        if matches!(self, Self::Value(_)) { 2 } else { 1 }
    }

    fn fields(&self) -> impl Iterator<Item = (&'v str, &'v Value)> {
        let (one, many) = match self {
            Self::Key(name, value) => (Some((*name, *value)), &[][..]),
            Self::Keys(fields) => (None, fields.as_slice()),
            Self::Value(_) => (None, &[][..]),
        };
        one.into_iter().chain(many.iter().copied())
    }
}

impl Ord for Identity<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Value(a), Self::Value(b)) => cmp_values(a, b),
            (Self::Value(_), _) | (_, Self::Value(_)) => self.rank().cmp(&other.rank()),
            _ => cmp_fields(self.fields(), other.fields()),
        }
    }
}

impl PartialOrd for Identity<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Identity<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Identity<'_> {}

/// Equality of values, in which `1` and `1.0` are one number.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || Number::of(a) == Number::of(b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

fn borrowed(fields: &[(SmolStr, Value)]) -> impl Iterator<Item = (&str, &Value)> {
    fields.iter().map(|(name, value)| (name.as_str(), value))
}

fn cmp_fields<'a>(
    a: impl Iterator<Item = (&'a str, &'a Value)>,
    mut b: impl Iterator<Item = (&'a str, &'a Value)>,
) -> Ordering {
    for (name, value) in a {
        let Some((other_name, other)) = b.next() else {
            return Ordering::Greater;
        };
        let order = name.cmp(other_name).then_with(|| cmp_values(value, other));
        if order.is_ne() {
            return order;
        }
    }
    if b.next().is_some() { Ordering::Less } else { Ordering::Equal }
}

/// Numbers, text, booleans, lists, objects, null; a total order, since whoever sorts relies on
/// one.
fn cmp_values(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Number::of(a).cmp(Number::of(b)),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let pairs = a.iter().zip(b).map(|(a, b)| cmp_values(a, b));
            pairs.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => {
            let (a, b) = (sorted(a), sorted(b));
            cmp_fields(a.into_iter(), b.into_iter())
        }
        _ => value_rank(a).cmp(&value_rank(b)),
    }
}

fn sorted(fields: &Map<String, Value>) -> Vec<(&str, &Value)> {
    let mut fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value)).collect();
    fields.sort_by_key(|(name, _)| *name);
    fields
}

fn value_rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// A number such that each quantity has one form: a float is never a whole number that fits an
/// integer. Without that, comparing integers with floats would not be transitive.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Integer(i64),
    Float(f64),
}

impl Number {
    fn of(number: &serde_json::Number) -> Self {
        if let Some(integer) = number.as_i64() {
            return Self::Integer(integer);
        }
        let float = number.as_f64().unwrap_or(f64::MAX);
        whole(float).map_or(Self::Float(float), Self::Integer)
    }

    #[expect(clippy::cast_precision_loss, reason = "the float is no whole number, or beyond i64")]
    fn cmp(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => a.cmp(&b),
            (Self::Float(a), Self::Float(b)) => a.total_cmp(&b),
            // Only 2^63 rounds to the same float as an integer, and every integer is below it.
            (Self::Integer(a), Self::Float(b)) => (a as f64).total_cmp(&b).then(Ordering::Less),
            (Self::Float(_), Self::Integer(_)) => other.cmp(self).reverse(),
        }
    }
}

/// The integer that a float is, if it is one.
fn whole(float: f64) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0; // 2^63
    let fits = float.fract() == 0.0 && (-LIMIT..LIMIT).contains(&float);
    #[expect(clippy::cast_possible_truncation, reason = "just checked to be whole and to fit")]
    fits.then_some(float as i64)
}

/// A value as elements keep it: whole numbers without a fraction, as they are printed.
fn plain(value: Value) -> Value {
    match &value {
        Value::Number(number) if number.is_f64() => match Number::of(number) {
            Number::Integer(integer) => integer.into(),
            Number::Float(_) => value,
        },
        _ => value,
    }
}

/// Compact JSON with the letters escaped that Go's encoder escapes inside values.
fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => write_text(out, text, true),
        Value::Array(items) => {
            out.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                write_value(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (position, (name, value)) in sorted(fields).into_iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                write_text(out, name, true);
                out.push(':');
                write_value(out, value);
            }
            out.push('}');
        }
        plain => out.push_str(&plain.to_string()),
    }
}

/// JSON text as Go writes it; `for_html`, with the letters escaped that mean something in HTML.
pub(super) fn write_text(out: &mut String, text: &str, for_html: bool) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\u{1f}' => write_code(out, letter),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' if for_html => write_code(out, letter),
            _ => out.push(letter),
        }
    }
    out.push('"');
}

fn write_code(out: &mut String, letter: char) {
    write!(out, "\\u{:04x}", u32::from(letter)).expect("writing to a string does not fail");
}
