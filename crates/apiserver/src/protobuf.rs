//! Bodies in protobuf, as clients of built-in kinds send them by default.
//!
//! An envelope names the kind and carries the kind's own message, which is read with the table
//! of types into the JSON that the same object would have. Numbers that the table does not
//! have are skipped: they are fields of newer releases.

mod message;
mod wire;

use serde_json::{Map, Value};

use crate::canonical::canonicalise;
use crate::types::{shape_of, table};
use wire::{Content, fields};

/// What every body begins with.
pub const MAGIC: &[u8; 4] = b"k8s\0";

/// The deepest nesting of messages.
const DEPTH_MAX: usize = 100;

/// Why a body could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    #[error("the body does not begin with the Kubernetes protobuf prefix")]
    NoEnvelope,
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownKind { api_version: String, kind: String },
    #[error("could not read the protobuf message: {0}")]
    Malformed(&'static str),
}

/// An object that came as protobuf, in the JSON spelling of its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    pub api_version: String,
    pub kind: String,
    pub value: Value,
}

/// Reads a body.
pub fn decode(body: &[u8]) -> Result<Received, ProtobufError> {
    let envelope = body.strip_prefix(MAGIC).ok_or(ProtobufError::NoEnvelope)?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for field in fields(envelope) {
        match field? {
            (1, Content::Bytes(types)) => (api_version, kind) = type_meta(types)?,
            (2, Content::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let unknown =
        || ProtobufError::UnknownKind { api_version: api_version.clone(), kind: kind.clone() };
    let id = table().kind(&api_version, &kind).ok_or_else(unknown)?;
    let shape = shape_of(&api_version, &kind).ok_or_else(unknown)?;
    let mut object = Map::new();
    message::read(table(), id, raw, &mut object, DEPTH_MAX)?;
    object.insert("kind".into(), kind.as_str().into());
    object.insert("apiVersion".into(), api_version.as_str().into());
    let mut value = Value::Object(object);
    canonicalise(shape, &mut value);
    Ok(Received { api_version, kind, value })
}

fn type_meta(bytes: &[u8]) -> Result<(String, String), ProtobufError> {
    let (mut api_version, mut kind) = (String::new(), String::new());
    for field in fields(bytes) {
        match field? {
            (1, content) => api_version = content.text()?,
            (2, content) => kind = content.text()?,
            _ => {}
        }
    }
    Ok((api_version, kind))
}

#[cfg(test)]
mod tests;
