//! Putting values where there are none. An explicit null is none; what else counts as none is
//! the business of the function.

use serde_json::{Map, Value, json};

pub(super) type Fields = Map<String, Value>;

/// The fields of an object, if it is one.
pub(super) fn fields(value: Option<&mut Value>) -> Option<&mut Fields> {
    value.and_then(Value::as_object_mut)
}

/// Changes the fields of an object, if it is one.
pub(super) fn with(object: &mut Value, change: impl FnOnce(&mut Fields)) {
    if let Value::Object(fields) = object {
        change(fields);
    }
}

/// The fields of the object at `key`, which is made if nothing is there; none if something else
/// than an object is.
pub(super) fn make<'m>(map: &'m mut Fields, key: &str) -> Option<&'m mut Fields> {
    absent(map, key, || json!({}));
    fields(map.get_mut(key))
}

/// The fields of an object's `spec`, which is made if need be.
pub(super) fn spec(object: &mut Value) -> Option<&mut Fields> {
    make(object.as_object_mut()?, "spec")
}

/// Puts a value where there is none.
pub(super) fn absent(map: &mut Fields, key: &str, value: impl FnOnce() -> Value) {
    if map.get(key).is_none_or(Value::is_null) {
        map.insert(key.to_owned(), value());
    }
}

/// Puts a text where there is none; the empty text is none.
pub(super) fn text(map: &mut Fields, key: &str, text: &str) {
    if map.get(key).is_none_or(|given| given.is_null() || given == "") {
        map.insert(key.to_owned(), json!(text));
    }
}

/// Puts a number where there is none; zero is none.
pub(super) fn number(map: &mut Fields, key: &str, number: i64) {
    if map.get(key).is_none_or(|given| given.is_null() || given.as_i64() == Some(0)) {
        map.insert(key.to_owned(), json!(number));
    }
}

/// Does the same to every object of a list.
pub(super) fn each(list: Option<&mut Value>, change: impl FnMut(&mut Fields)) {
    let items = list.and_then(Value::as_array_mut).into_iter().flatten();
    items.filter_map(Value::as_object_mut).for_each(change);
}

/// The text at `key`; empty if there is none.
pub(super) fn given<'m>(map: &'m Fields, key: &str) -> &'m str {
    map.get(key).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn is_empty_list(map: &Fields, key: &str) -> bool {
    map.get(key).and_then(Value::as_array).is_none_or(Vec::is_empty)
}
