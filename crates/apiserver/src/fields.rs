//! Field selectors: `metadata.name=x,spec.nodeName!=n1`.

use serde_json::Value;
use smol_str::{SmolStr, ToSmolStr};

use crate::kinds;
use crate::registry::Resource;
use crate::status::{ApiResult, Status};

/// Terms that all have to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    field: SmolStr,
    value: SmolStr,
    equal: bool,
}

impl FieldSelector {
    /// Reads a selector on a resource, which must know its fields.
    pub fn parse(text: &str, resource: &Resource) -> ApiResult<Self> {
        let mut terms = Vec::new();
        for part in split_unescaped(text) {
            if part.is_empty() {
                continue;
            }
            let term = read_term(&part).ok_or_else(|| {
                Status::bad_request(format!(
                    "invalid selector: '{text}'; can't understand '{part}'"
                ))
            })?;
            terms.push(Term { field: known_field(&term.field, resource)?, ..term });
        }
        Ok(Self { terms })
    }

    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The value that a field must have, if the selector pins it.
    pub fn pins(&self, field: &str) -> Option<&str> {
        let mut terms = self.terms.iter().filter(|term| term.equal && term.field == field);
        terms.next().map(|term| &*term.value)
    }

    /// Whether anything but name and namespace is asked for, so that the object must be read.
    pub fn reads_content(&self) -> bool {
        self.terms.iter().any(|term| !term.field.starts_with("metadata."))
    }

    pub fn matches(&self, namespace: &str, name: &str, content: impl Fn(&str) -> SmolStr) -> bool {
        self.terms.iter().all(|term| {
            let equal = match term.field.as_str() {
                "metadata.name" => name == term.value,
                "metadata.namespace" => namespace == term.value,
                field => content(field) == term.value,
            };
            equal == term.equal
        })
    }
}

/// The text that a field selector compares: empty for what is absent.
pub fn field_text(object: &Value, field: &str) -> SmolStr {
    let mut value = object;
    for part in field.split('.') {
        match value.get(part) {
            Some(inner) => value = inner,
            None => return absent(field),
        }
    }
    match value {
        Value::String(text) => SmolStr::new(text),
        Value::Null => absent(field),
        Value::Bool(_) | Value::Number(_) => value.to_smolstr(),
        // The addresses of a pod are written as their list.
        Value::Array(items) => {
            let texts = items.iter().filter_map(|item| item.get("ip")?.as_str());
            SmolStr::new(texts.collect::<Vec<_>>().join(","))
        }
        Value::Object(_) => SmolStr::default(),
    }
}

fn absent(field: &str) -> SmolStr {
    match field {
        "spec.unschedulable" | "spec.hostNetwork" => SmolStr::new("false"),
        "status.replicas" | "status.successful" => SmolStr::new("0"),
        _ => SmolStr::default(),
    }
}

fn known_field(field: &str, resource: &Resource) -> ApiResult<SmolStr> {
    let kind = kinds::of(resource);
    let generic = match field {
        "metadata.name" => true,
        "metadata.namespace" => resource.namespaced || kind.has_namespace_field(),
        _ => false,
    };
    if generic {
        return Ok(SmolStr::new(field));
    }
    if let Some(meant) = kind.field_alias(field) {
        return Ok(SmolStr::new(meant));
    }
    let own = kind.selectable_fields();
    let custom = resource.custom.iter().flat_map(|custom| &custom.selectable_fields);
    if own.contains(&field) || custom.into_iter().any(|known| known == field) {
        return Ok(SmolStr::new(field));
    }
    let message = if own.is_empty() && resource.custom.is_none() {
        format!(
            "{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        )
    } else {
        format!("field label not supported: {field}")
    };
    Err(Status::bad_request(message))
}

/// Splits at commas that no backslash precedes.
fn split_unescaped(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        if c == ',' && !escaped {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(c);
        }
        escaped = c == '\\' && !escaped;
    }
    parts
}

fn read_term(part: &str) -> Option<Term> {
    let at = part.find(['=', '!'])?;
    let (field, rest) = part.split_at(at);
    let (equal, value) = if let Some(value) = rest.strip_prefix("!=") {
        (false, value)
    } else if let Some(value) = rest.strip_prefix("==") {
        (true, value)
    } else {
        (true, rest.strip_prefix('=')?)
    };
    Some(Term { field: SmolStr::new(field), value: unescape(value)?, equal })
}

fn unescape(text: &str) -> Option<SmolStr> {
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                escaped @ ('\\' | ',' | '=') => plain.push(escaped),
                _ => return None,
            },
            '=' | ',' => return None,
            c => plain.push(c),
        }
    }
    Some(SmolStr::new(plain))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::builtin;

    #[test]
    fn terms_are_compared_with_the_fields_text() {
        let pods = builtin().get("", "v1", "pods").unwrap();
        let pod =
            json!({"spec": {"nodeName": "n1"}, "status": {"podIPs": [{"ip": "a"}, {"ip": "b"}]}});
        for (text, expected) in [
            ("spec.nodeName=n1,metadata.name==p", true),
            ("spec.nodeName!=n1", false),
            ("spec.host=n1", true),
            ("spec.hostNetwork=false", true),
            ("status.podIPs=a\\,b", true),
            ("metadata.namespace!=other", true),
            ("", true),
        ] {
            let selector = FieldSelector::parse(text, pods).unwrap();
            let matches = selector.matches("ns", "p", |field| field_text(&pod, field));
            assert_eq!(matches, expected, "{text}");
        }
    }

    #[test]
    fn unknown_fields_are_refused() {
        let pods = builtin().get("", "v1", "pods").unwrap();
        let refused = FieldSelector::parse("spec.foo=1", pods).unwrap_err();
        assert_eq!(refused.message, "field label not supported: spec.foo");
        let maps = builtin().get("", "v1", "configmaps").unwrap();
        let refused = FieldSelector::parse("spec.foo=1", maps).unwrap_err();
        assert!(refused.message.starts_with("\"spec.foo\" is not a known field selector"));
        assert!(FieldSelector::parse("metadata.name", maps).is_err());
    }
}
