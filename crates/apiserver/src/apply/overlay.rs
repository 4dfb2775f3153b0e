//! A configuration laid over an object whoever owns its fields, as admission policies change
//! objects.

use serde_json::Value;

use super::check::{Duplicates, Mismatches, check};
use super::grain::{Grain, child, grain};
use super::merge::merge;
use crate::shape::{Form, Shape};

/// Why a configuration cannot be laid over an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverlayError {
    #[error("failed to convert patch object to typed object: {0}")]
    Config(Mismatches),
    #[error("failed to convert original object to typed object: {0}")]
    Live(Mismatches),
    #[error("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {0}")]
    Atomics(String),
}

/// `live` with everything that `config` sets; nothing is recorded. What is atomic would be
/// replaced as a whole, so it cannot be set.
pub fn overlay(shape: Shape<'_>, live: &Value, config: &Value) -> Result<Value, OverlayError> {
    check(shape, config, Duplicates::Refused).map_err(OverlayError::Config)?;
    check(shape, live, Duplicates::Allowed).map_err(OverlayError::Live)?;
    let atomics = atomics(shape, config);
    if !atomics.is_empty() {
        return Err(OverlayError::Atomics(atomics.join(", ")));
    }
    Ok(merge(shape, live, config))
}

/// The paths of all atomic lists, maps and structs in `config`, `.spec.args`.
fn atomics(shape: Shape<'_>, config: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(shape, config, &mut String::new(), &mut found);
    found
}

fn collect(shape: Shape<'_>, value: &Value, path: &mut String, found: &mut Vec<String>) {
    let is_whole = grain(shape, value) == Grain::Whole;
    if is_whole && (value.is_object() || value.is_array()) {
        found.push(path.clone());
    }
    let outer = path.len();
    match value {
        // The values of a map are set one by one, whatever they are.
        Value::Object(fields) if matches!(shape.form(), Form::Struct(_)) => {
            for (key, value) in fields {
                path.extend([".", key]);
                collect(child(shape, key), value, path, found);
                path.truncate(outer);
            }
        }
        Value::Array(items) if matches!(shape.form(), Form::List(_)) => {
            for (index, item) in items.iter().enumerate() {
                path.extend(["[", &index.to_string(), "]"]);
                collect(shape.items(), item, path, found);
                path.truncate(outer);
            }
        }
        _ => {}
    }
}
