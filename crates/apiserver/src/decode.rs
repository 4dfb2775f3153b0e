//! From the bytes of a body to an object: what is there twice, what no type knows, and what
//! has the wrong type.
//!
//! Unknown and repeated fields are findings, and the caller decides what becomes of them;
//! a wrong type in one of Kubernetes' own structs is an error. Names of fields are compared
//! exactly. Custom kinds have their values checked by their schema, after this.

mod fit;
pub(crate) mod go_json;
mod parse;
mod path;

use serde_json::Value;

use crate::shape::Shape;

pub use fit::fit;

/// An object without the fields that its type does not have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    pub value: Value,
    /// Paths of fields that were dropped: `spec.containers[0].foo`.
    pub unknown: Vec<String>,
    /// Paths of fields that came more than once; the last one counts.
    pub duplicates: Vec<String>,
}

/// Why a body is no object of its kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("{0}")]
    Syntax(String),
    #[error("json: cannot unmarshal {found} into Go {place} of type {wanted}")]
    WrongType { found: String, place: String, wanted: String },
    /// The JSON type is right, and its text is not.
    #[error("{0}")]
    Malformed(String),
}

/// Findings beyond this many are counted by nobody.
pub(crate) const FINDINGS_MAX: usize = 100;

/// The deepest nesting of a body.
const DEPTH_MAX: usize = 128;

/// Reads a JSON body.
pub fn decode_json(shape: Shape<'_>, body: &[u8]) -> Result<Decoded, DecodeError> {
    fitted(shape, parse::json(shape, body)?)
}

/// Reads a YAML body of one document, which may be JSON as well.
pub fn decode_yaml(shape: Shape<'_>, body: &[u8]) -> Result<Decoded, DecodeError> {
    fitted(shape, parse::yaml(shape, body)?)
}

/// Reads a YAML body with all that its type does not have.
pub(crate) fn as_sent(shape: Shape<'_>, body: &[u8]) -> Result<Decoded, DecodeError> {
    let (value, duplicates) = parse::yaml(shape, body)?;
    Ok(Decoded { value, duplicates, ..Decoded::default() })
}

/// How Go refuses a YAML body for a field that comes twice; none if there is none.
pub(crate) fn refused_duplicate(body: &[u8]) -> Option<String> {
    let first = parse::first_duplicate(body)?;
    Some(format!("error converting YAML to JSON: yaml: unmarshal errors:\n  {first}"))
}

fn fitted(
    shape: Shape<'_>,
    (mut value, duplicates): (Value, Vec<String>),
) -> Result<Decoded, DecodeError> {
    let unknown = fit(shape, &mut value)?;
    Ok(Decoded { value, unknown, duplicates })
}

#[cfg(test)]
mod tests;
