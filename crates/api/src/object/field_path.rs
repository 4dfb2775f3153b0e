//! Dotted paths of fields, as messages have them, and the values that they lead to.
//!
//! A path such as `metadata.labels.app.kubernetes.io/name` does not say where its keys end. The
//! value that it is about does.

use serde_json::Value;

/// One part of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathPart {
    Key(String),
    Index(usize),
}

/// The parts of `path` as far as they exist in `value`, and what of the path does not.
///
/// | value                      | path               | parts             | rest      |
/// |----------------------------|--------------------|-------------------|-----------|
/// | `{"a": {"b.c": [1]}}`      | `a.b.c[0]`         | `a`, `b.c`, `0`   |           |
/// | `{"a": {"b.c": [1]}}`      | `a[b.c]`           | `a`, `b.c`        |           |
/// | `{"a": {}}`                | `a.b.c`            | `a`               | `b.c`     |
pub fn parts<'p>(value: &Value, path: &'p str) -> (Vec<PathPart>, &'p str) {
    let (mut value, mut rest) = (value, path);
    let mut parts = Vec::new();
    loop {
        let found = match value {
            Value::Object(members) => {
                let keys = members.iter().filter_map(|(key, member)| {
                    let rest = after_key(rest, key)?;
                    Some((PathPart::Key(key.clone()), member, rest))
                });
                keys.min_by_key(|(_, _, rest)| rest.len())
            }
            Value::Array(items) => after_index(rest)
                .and_then(|(index, rest)| Some((PathPart::Index(index), items.get(index)?, rest))),
            _ => None,
        };
        let Some((part, next, remaining)) = found else {
            return (parts, rest.strip_prefix('.').unwrap_or(rest));
        };
        parts.push(part);
        (value, rest) = (next, remaining);
    }
}

/// The value at `path`; none if there is none.
pub fn get<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let (parts, rest) = parts(value, path);
    if !rest.is_empty() {
        return None;
    }
    parts.iter().try_fold(value, |value, part| match part {
        PathPart::Key(key) => value.get(key),
        PathPart::Index(index) => value.get(*index),
    })
}

/// [`get`], to change it.
pub fn get_mut<'v>(value: &'v mut Value, path: &str) -> Option<&'v mut Value> {
    let (parts, rest) = parts(value, path);
    if !rest.is_empty() {
        return None;
    }
    parts.iter().try_fold(value, |value, part| match part {
        PathPart::Key(key) => value.get_mut(key),
        PathPart::Index(index) => value.get_mut(*index),
    })
}

/// Whether the field at one path is the field at the other, or contains it.
pub fn is_within(inner: &str, outer: &str) -> bool {
    let Some(rest) = inner.strip_prefix(outer) else { return false };
    outer.is_empty() || rest.is_empty() || rest.starts_with(['.', '['])
}

/// What follows `key` at the beginning of a path: `.key` or `[key]`.
fn after_key<'p>(path: &'p str, key: &str) -> Option<&'p str> {
    if key.is_empty() {
        return None;
    }
    if let Some(bracketed) = path.strip_prefix('[') {
        return bracketed.strip_prefix(key)?.strip_prefix(']');
    }
    let rest = path.strip_prefix('.').unwrap_or(path).strip_prefix(key)?;
    (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
}

fn after_index(path: &str) -> Option<(usize, &str)> {
    let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
    Some((index.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_as_far_as_the_value_goes() {
        let value = json!({"a": {"b": 1, "b.c": [{"d": 2}]}, "labels": {"x/y": "z"}});
        assert_eq!(get(&value, "a.b"), Some(&json!(1)));
        assert_eq!(get(&value, "a.b.c[0].d"), Some(&json!(2)));
        assert_eq!(get(&value, "labels[x/y]"), Some(&json!("z")));
        assert_eq!(get(&value, "labels.x/y"), Some(&json!("z")));
        assert_eq!(get(&value, "a.b.c[1]"), None);
        assert_eq!(get(&value, ""), Some(&value));
        let (known, rest) = parts(&value, "a.b.c[0].e.f");
        assert_eq!((known.len(), rest), (3, "e.f"));
    }

    #[test]
    fn a_field_is_within_those_around_it() {
        for (inner, outer, expected) in [
            ("spec.a", "spec", true),
            ("spec[0]", "spec", true),
            ("spec", "spec", true),
            ("spec", "", true),
            ("specs", "spec", false),
            ("spec", "spec.a", false),
        ] {
            assert_eq!(is_within(inner, outer), expected, "{inner} {outer}");
        }
    }
}
