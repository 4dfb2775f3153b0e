//! A write that changes nothing but times is no write.

use serde_json::{Map, Value};

use super::managed_fields;

/// Gives `new` the times of `old`'s managed fields if nothing else differs, so that a write
/// which changed nothing is found to be none. To be called when `new` is otherwise complete.
pub fn revert_times(old: &Value, new: &mut Value) {
    let (Some(Value::Array(before)), Some(Value::Array(after))) =
        (managed_fields(old), managed_fields(new))
    else {
        return;
    };
    let pairs = || before.iter().zip(after);
    let reverts = before.len() == after.len()
        && pairs().any(|(before, after)| before != after)
        && pairs().all(|(before, after)| equal_but_for(before, after, &["time"]))
        && equal_but_for(old, new, &["metadata", "managedFields"]);
    if reverts {
        let before = Value::Array(before.clone());
        super::set_managed_fields(new, Some(before));
    }
}

/// Whether two values are equal, whatever they have at the path.
fn equal_but_for(a: &Value, b: &Value, path: &[&str]) -> bool {
    let (Some((first, rest)), Value::Object(a), Value::Object(b)) = (path.split_first(), a, b)
    else {
        return path.is_empty() || a == b;
    };
    let others =
        |fields: &Map<String, Value>| fields.len() - usize::from(fields.contains_key(*first));
    others(a) == others(b)
        && a.iter().filter(|(key, _)| key != first).all(|(key, a)| b.get(key) == Some(a))
        && match (a.get(*first), b.get(*first)) {
            (Some(a), Some(b)) => equal_but_for(a, b, rest),
            (None, None) => true,
            _ => rest.is_empty(),
        }
}
