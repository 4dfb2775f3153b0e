//! From CEL values back to JSON: what an expression evaluated to, as the rest of Convoy reads it.

use cel::common::types::{
    CelBool, CelBytes, CelDouble, CelInt, CelOptional, CelString, CelType, CelUInt, Kind,
};
use cel::common::value::{CowVal, Val};
use serde_json::Value;

use super::items;
use crate::cel::library;

/// `value` as JSON. Timestamps, durations and the library's own types become their text,
/// bytes become base64, an empty optional becomes null.
pub(in crate::cel) fn from_val(value: &dyn Val) -> Value {
    match value.get_type().kind() {
        Kind::Boolean => value.downcast_ref::<CelBool>().map(|flag| (*flag.inner()).into()),
        Kind::Int => value.downcast_ref::<CelInt>().map(|number| (*number.inner()).into()),
        Kind::UInt => value.downcast_ref::<CelUInt>().map(|number| (*number.inner()).into()),
        Kind::Double => value.downcast_ref::<CelDouble>().map(|number| (*number.inner()).into()),
        Kind::String => value.downcast_ref::<CelString>().map(|text| text.inner().into()),
        Kind::Bytes => {
            value.downcast_ref::<CelBytes>().map(|_| text_through("base64.encode", value))
        }
        Kind::Type => value.downcast_ref::<CelType>().map(|name| name.name().into()),
        Kind::List => Some(items(value).into_iter().map(from_val).collect()),
        Kind::Map => Some(object(value)),
        Kind::Timestamp | Kind::Duration => Some(text_through("string", value)),
        Kind::Opaque => value
            .downcast_ref::<CelOptional>()
            .map(|optional| optional.option().map_or(Value::Null, from_val)),
        _ => None,
    }
    .unwrap_or_else(|| library::text_of(value).map_or(Value::Null, Value::String))
}

/// Strings as they are, everything else as JSON.
pub(in crate::cel) fn text_of(value: &dyn Val) -> String {
    match from_val(value) {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn object(value: &dyn Val) -> Value {
    let entry = |key: &dyn Val| {
        let found = value.as_indexer()?.get(key).ok()?;
        Some((text_of(key), from_val(found.as_ref())))
    };
    let mut entries: Vec<_> = items(value).into_iter().filter_map(entry).collect();
    entries.sort_by(|(left, _), (right, _)| left.cmp(right));
    Value::Object(entries.into_iter().collect())
}

fn text_through(function: &str, value: &dyn Val) -> Value {
    let arguments = vec![CowVal::Borrowed(value)];
    let Some(convert) = library::environment().find_overload(function, &arguments) else {
        return Value::Null;
    };
    match convert(arguments) {
        Ok(text) => {
            text.downcast_ref::<CelString>().map_or(Value::Null, |text| text.inner().into())
        }
        Err(_) => Value::Null,
    }
}
