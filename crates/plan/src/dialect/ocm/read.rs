//! Objects as domain types. This is the only role, beside those that write and validate, that
//! knows where fields are.
//!
//! Placements and replica sets are read through the types of `convoy_api`. Members, of which
//! there are many (clusters, works, decisions), and templates, which are large, are read where
//! they lie.

pub(crate) mod cluster;
pub(crate) mod decisions;
pub(crate) mod placement;
pub(crate) mod registration;
pub(crate) mod replica_set;
pub(crate) mod score;
pub(crate) mod strategy;
pub(crate) mod template;
pub(crate) mod work;
pub(crate) mod work_status;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// A short digest of several texts, in lower-case hexadecimal.
pub(crate) fn digest(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.as_bytes());
        hasher.update([0]); // so that "ab", "c" and "a", "bc" differ
    }
    let bytes = hasher.finalize();
    let (head, _) = bytes.split_first_chunk::<8>().expect("a SHA-256 has 32 bytes");
    format!("{:016x}", u64::from_be_bytes(*head))
}

/// JSON text that does not depend on the order in which keys were written.
fn sorted_json(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            let field = |(key, value): (&String, &Value)| format!("{key:?}:{}", sorted_json(value));
            format!("{{{}}}", fields.into_iter().map(field).collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(sorted_json).collect::<Vec<_>>().join(","))
        }
        plain => plain.to_string(),
    }
}
