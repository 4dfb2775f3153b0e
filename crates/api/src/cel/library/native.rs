//! Types that Kubernetes adds to CEL: quantities, addresses, URLs, versions, formats. Each is a
//! plain Rust value inside a [`Native`].

use std::any::Any;
use std::fmt::Debug;

use cel::ExecutionError;
use cel::common::types::{CelBool, CelInt, CelString, Type};
use cel::common::value::{CowVal, StaticVal, Val};

use super::CallResult;

/// A Rust type as a CEL type.
pub(super) trait NativeType: Clone + Debug + PartialEq + Send + Sync + 'static {
    const TYPE: &'static Type;

    /// How a value is written.
    fn text(&self) -> String;
}

/// A value of a [`NativeType`].
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Native<T>(pub T);

impl<T: NativeType> Val for Native<T> {
    fn get_type(&self) -> &Type {
        T::TYPE
    }

    fn cel_type() -> &'static Type {
        T::TYPE
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self == other)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl<T: NativeType> StaticVal for Native<T> {}

/// The text of a value if it is a `T`.
pub(super) fn text_of<T: NativeType>(value: &dyn Val) -> Option<String> {
    Some(value.downcast_ref::<Native<T>>()?.0.text())
}

/// An argument that its overload declared to be a `T`.
pub(super) fn native<'a, T: NativeType>(
    argument: &'a CowVal<'_, '_>,
) -> Result<&'a T, ExecutionError> {
    match argument.downcast_ref::<Native<T>>() {
        Some(native) => Ok(&native.0),
        None => Err(ExecutionError::no_such_overload("", Vec::new())),
    }
}

pub(super) fn returned<'b, 'v, T: NativeType>(value: T) -> CallResult<'b, 'v> {
    Ok(CowVal::owned(Native(value)))
}

pub(super) fn truth<'b, 'v>(truth: bool) -> CallResult<'b, 'v> {
    Ok(CowVal::owned(CelBool::from(truth)))
}

pub(super) fn number<'b, 'v>(number: i64) -> CallResult<'b, 'v> {
    Ok(CowVal::owned(CelInt::from(number)))
}

pub(super) fn string<'b, 'v>(text: impl Into<String>) -> CallResult<'b, 'v> {
    Ok(CowVal::owned(CelString::from(text.into())))
}
