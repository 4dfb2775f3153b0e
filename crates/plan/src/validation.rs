//! What every dialect's validation begins with: the object against its own schema.

use convoy_api::{Object, schema};

use crate::diagnostic::Diagnostic;

/// What the schema of its kind and version says about `object`; a version that is not served
/// is an error of its own. Kinds without a schema (built-in ones) pass.
pub fn schema(object: &Object) -> Vec<Diagnostic> {
    let Some(schema) = schema::of(object.kind(), object.version()) else {
        return Vec::new();
    };
    let broken = schema.validate(object.raw(), None).into_iter();
    broken.map(|error| Diagnostic::error(object, error.field, error.message)).collect()
}
