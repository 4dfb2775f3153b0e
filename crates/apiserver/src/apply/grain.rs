//! How finely a value is owned: as one, by its keys, or by its items. All walks over objects use this.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::shape::{Form, ListKind, Scalar, Shape, untyped};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grain {
    /// A scalar, or something atomic.
    Whole,
    Keys,
    /// The items of a set or of a list with keys.
    Items,
}

/// The grain of `value`. Only where nothing is known does it depend on the value; a null there
/// counts as an object, as in Kubernetes.
pub(super) fn grain(shape: Shape<'_>, value: &Value) -> Grain {
    let atomic = match shape.form() {
        Form::Untyped => !matches!(value, Value::Object(_) | Value::Null),
        Form::Raw | Form::Scalar(_) => true,
        Form::Struct(form) => form.atomic,
        Form::Map { atomic, .. } => *atomic,
        Form::List(list) if list.kind == ListKind::Atomic => true,
        Form::List(_) => return Grain::Items,
    };
    if atomic { Grain::Whole } else { Grain::Keys }
}

/// The entries of an object, if there are any.
pub(super) fn entries(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object).filter(|entries| !entries.is_empty())
}

/// The items of a list, if there are any.
pub(super) fn items(value: Option<&Value>) -> Option<&[Value]> {
    value.and_then(Value::as_array).map(Vec::as_slice).filter(|items| !items.is_empty())
}

/// The shape under a key; values that a shape does not know were refused before.
pub(super) fn child<'s>(shape: Shape<'s>, key: &str) -> Shape<'s> {
    match shape.child(key) {
        Some(child) => child,
        None => untyped(),
    }
}

/// The value that a field of a built-in type has although nobody wrote it: there it is a part of
/// a struct that is always complete, so that writing it first does not make it new.
pub(super) fn unwritten(shape: Shape<'_>, key: &str) -> Option<&'static Value> {
    static EMPTY: LazyLock<Value> = LazyLock::new(|| json!({}));
    static ZERO: LazyLock<Value> = LazyLock::new(|| json!(0));
    static TEXT: Value = Value::String(String::new());
    static FALSE: Value = Value::Bool(false);
    static NULL: Value = Value::Null;
    let Form::Struct(form) = shape.form() else { return None };
    if !form.is_builtin() {
        return None;
    }
    let field = shape.field(key)?;
    match shape.of(field).form() {
        Form::Struct(_) if !field.pointer => Some(&EMPTY),
        _ if !field.required => None,
        Form::Scalar(_) if field.pointer => Some(&NULL),
        Form::Scalar(Scalar::Text) => Some(&TEXT),
        Form::Scalar(Scalar::Boolean) => Some(&FALSE),
        Form::Scalar(
            Scalar::Integer | Scalar::Integer32 | Scalar::Number | Scalar::IntOrString,
        ) => Some(&ZERO),
        _ => Some(&NULL),
    }
}
