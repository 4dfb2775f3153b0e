//! Typed views of raw objects, with the field at fault when one does not fit.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Object, reader};

/// Which field of an object does not fit its type, and how.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct ViewError {
    /// Dotted path as Kubernetes writes it, e.g. `spec.compartments[0].budget.percent`.
    pub field: String,
    pub message: String,
}

impl Object {
    /// The whole object as a typed struct.
    pub fn view<T: DeserializeOwned>(&self) -> Result<T, ViewError> {
        view_of(self.raw())
    }

    /// `spec` alone as a typed struct; an absent spec reads as an empty one.
    pub fn spec_view<T: DeserializeOwned>(&self) -> Result<T, ViewError> {
        let empty = Value::Object(serde_json::Map::new());
        let spec = if self.spec().is_null() { &empty } else { self.spec() };
        view_of(spec).map_err(|error: ViewError| error.below("spec"))
    }
}

impl ViewError {
    fn below(mut self, parent: &str) -> Self {
        self.field = match self.field.as_str() {
            "" | "." => parent.to_owned(),
            path => format!("{parent}.{path}"),
        };
        self
    }
}

/// Any JSON value as a typed struct.
pub fn view_of<T: DeserializeOwned>(value: &Value) -> Result<T, ViewError> {
    reader::read(value).map_err(|(field, message)| ViewError { field, message })
}
