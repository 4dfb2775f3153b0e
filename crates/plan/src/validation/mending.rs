//! Objects with values of the wrong type, or with words that an API does not have, made readable: such
//! a value is an error, and everything else about the object can still be told.

use std::borrow::Cow;

use convoy_api::Object;
use convoy_api::object::field_path;
use serde_json::Value;

/// A field whose value is of the wrong type, or a word that the API does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistyped {
    pub(crate) field: String,
    /// Whether a text was wanted: a plain value is read as one, as if it were written in quotes.
    pub(crate) wants_text: bool,
    /// The word that is there instead: the nearest one that the API has.
    pub(crate) meant: Option<String>,
}

/// The object with texts instead of the plain values that should be texts, with words that the API has
/// instead of those that it does not have, and nothing instead of all other values of the wrong type.
pub(crate) fn mended<'o>(object: &'o Object, mistyped: &[Mistyped]) -> Cow<'o, Object> {
    if mistyped.is_empty() {
        return Cow::Borrowed(object);
    }
    let mut raw = object.raw().clone();
    for Mistyped { field, wants_text, meant } in mistyped {
        let Some(value) = field_path::get_mut(&mut raw, field) else { continue };
        *value = match (&*value, meant) {
            (Value::String(_), Some(meant)) => Value::String(meant.clone()),
            (Value::Bool(_) | Value::Number(_), _) if *wants_text => {
                Value::String(value.to_string())
            }
            _ => Value::Null,
        };
    }
    drop_nulls(&mut raw);
    Cow::Owned(object.with_raw(raw))
}

/// A field that is null reads as absent, and not every view takes it.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => {
            items.retain(|item| !item.is_null());
            items.iter_mut().for_each(drop_nulls);
        }
        _ => {}
    }
}
