//! Label selectors, over any map of strings: labels, cluster claims.

pub(crate) mod label_sets;
mod text;

use convoy_api::Object;
use convoy_api::k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;
use smol_str::SmolStr;

use crate::requirement::{Requirement, Requirements, Test};

/// A selector that is known to be sound. All requirements must hold; none means everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    requirements: Requirements,
}

impl FromIterator<Requirement> for Selector {
    fn from_iter<I: IntoIterator<Item = Requirement>>(requirements: I) -> Self {
        Self { requirements: requirements.into_iter().collect() }
    }
}

/// Which part of a selector is unsound, and how.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SelectorError {
    /// Relative to the selector, e.g. `matchExpressions[1].operator`; empty for the whole.
    pub field: String,
    pub message: String,
}

impl Selector {
    /// Reads `{matchLabels, matchExpressions}`. Null or absent is the empty selector, which
    /// selects everything; where absence means "nothing", the caller asks first.
    pub fn from_value(value: &Value) -> Result<Self, SelectorError> {
        let mut requirements = Vec::new();
        match value {
            Value::Null => return Ok(Self::default()),
            Value::Object(_) => {}
            other => return Err(wrong("", "a label selector", other)),
        }
        match value.get("matchLabels") {
            None | Some(Value::Null) => {}
            Some(Value::Object(labels)) => {
                for (key, label) in labels {
                    let Value::String(label) = label else {
                        return Err(wrong(&format!("matchLabels.{key}"), "a string", label));
                    };
                    requirements.push(equality(key, label)?);
                }
            }
            Some(other) => return Err(wrong("matchLabels", "a map of strings", other)),
        }
        match value.get("matchExpressions") {
            None | Some(Value::Null) => {}
            Some(Value::Array(expressions)) => {
                for (index, expression) in expressions.iter().enumerate() {
                    requirements.push(expressed(index, expression)?);
                }
            }
            Some(other) => return Err(wrong("matchExpressions", "a list", other)),
        }
        Ok(requirements.into_iter().collect())
    }

    /// The same of a typed view.
    pub fn from_view(given: Option<&LabelSelector>) -> Result<Self, SelectorError> {
        let Some(given) = given else { return Ok(Self::default()) };
        let mut requirements = Vec::new();
        for (key, label) in given.match_labels.iter().flatten() {
            requirements.push(equality(key, label)?);
        }
        for (index, expression) in given.match_expressions.iter().flatten().enumerate() {
            let at = |part: &str| format!("matchExpressions[{index}].{part}");
            check_key(&expression.key, &|| at("key"))?;
            let values = expression.values.iter().flatten().map(String::as_str).enumerate();
            let values = values.map(|(entry, text)| label_value(text, entry, &at("values")));
            let values = values.collect::<Result<_, _>>()?;
            requirements.push(tested(&expression.key, &expression.operator, values, &at)?);
        }
        Ok(requirements.into_iter().collect())
    }

    /// Whether it asks for nothing, and so selects everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The keys it asks about, in the order they were written.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.requirements.keys().map(SmolStr::as_str)
    }

    pub fn matches(&self, object: &Object) -> bool {
        self.matches_with(|key| object.label(key))
    }

    /// The same over any map, given how to look a key up.
    pub fn matches_with<'v>(&self, look_up: impl Fn(&str) -> Option<&'v str>) -> bool {
        self.requirements.first_unmet(look_up).is_none()
    }
}

fn equality(key: &str, label: &str) -> Result<Requirement, SelectorError> {
    let field = || format!("matchLabels.{key}");
    check_key(key, &field)?;
    check_label_value(label, &field)?;
    Ok(Requirement { key: SmolStr::new(key), test: Test::In(vec![SmolStr::new(label)]) })
}

fn expressed(index: usize, expression: &Value) -> Result<Requirement, SelectorError> {
    let at = |part: &str| format!("matchExpressions[{index}].{part}");
    let text = |part: &str| match expression.get(part) {
        Some(Value::String(text)) => Ok(text.as_str()),
        other => Err(wrong(&at(part), "a string", other.unwrap_or(&Value::Null))),
    };
    let key = text("key")?;
    check_key(key, &|| at("key"))?;
    let values = values(expression, &at("values"))?;
    tested(key, text("operator")?, values, &at)
}

fn tested(
    key: &str,
    operator: &str,
    values: Vec<SmolStr>,
    at: &dyn Fn(&str) -> String,
) -> Result<Requirement, SelectorError> {
    let unsound = |part: &str, message: String| SelectorError { field: at(part), message };
    let test = match (operator, values.len()) {
        ("In" | "NotIn", 0) => {
            return Err(unsound("values", format!("operator {operator} needs at least one value")));
        }
        ("Exists" | "DoesNotExist", 1..) => {
            return Err(unsound("values", format!("operator {operator} takes no values")));
        }
        ("In", _) => Test::In(values),
        ("NotIn", _) => Test::NotIn(values),
        ("Exists", _) => Test::Exists,
        ("DoesNotExist", _) => Test::DoesNotExist,
        (other, _) => {
            let message = format!(
                "{other:?} is not a valid label selector operator: want In, NotIn, Exists or DoesNotExist"
            );
            return Err(unsound("operator", message));
        }
    };
    Ok(Requirement { key: SmolStr::new(key), test })
}

fn values(expression: &Value, field: &str) -> Result<Vec<SmolStr>, SelectorError> {
    let list = match expression.get("values") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(other) => return Err(wrong(field, "a list of strings", other)),
    };
    let read = |(index, value): (usize, &Value)| match value.as_str() {
        Some(text) => label_value(text, index, field),
        None => Err(wrong(&format!("{field}[{index}]"), "a string", value)),
    };
    list.iter().enumerate().map(read).collect()
}

fn label_value(text: &str, index: usize, field: &str) -> Result<SmolStr, SelectorError> {
    check_label_value(text, &|| format!("{field}[{index}]"))?;
    Ok(SmolStr::new(text))
}

fn check_key(key: &str, field: &dyn Fn() -> String) -> Result<(), SelectorError> {
    if is_qualified_name(key) {
        return Ok(());
    }
    let message = format!(
        "{key:?} is not a valid label key: want at most 63 letters, digits, '-', '_' or '.', \
         beginning and ending with a letter or digit, after an optional DNS prefix and '/'"
    );
    Err(SelectorError { field: field(), message })
}

fn check_label_value(value: &str, field: &dyn Fn() -> String) -> Result<(), SelectorError> {
    if is_label_value(value) {
        return Ok(());
    }
    let message = format!(
        "{value:?} is not a valid label value: want at most 63 letters, digits, '-', '_' or '.', \
         beginning and ending with a letter or digit"
    );
    Err(SelectorError { field: field(), message })
}

fn wrong(field: &str, want: &str, got: &Value) -> SelectorError {
    let message = format!("want {want}, got {}", convoy_api::object::shape(got));
    SelectorError { field: field.to_owned(), message }
}

/// Whether a text may be a label or taint key: `[dns-subdomain/]name`.
pub fn is_qualified_name(text: &str) -> bool {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    !name.is_empty() && is_label_value(name) && prefix.is_none_or(is_dns_subdomain)
}

/// Whether a text may be a label value; the empty one may.
pub fn is_label_value(text: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    text.is_empty()
        || text.len() <= 63
            && edge(bytes.first())
            && edge(bytes.last())
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

/// Whether a text may be the name of most objects.
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(|part| !part.is_empty() && is_dns_label_shaped(part))
}

/// Whether a text may be the name of a namespace.
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && !text.is_empty() && is_dns_label_shaped(text)
}

fn is_dns_label_shaped(part: &str) -> bool {
    let inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    part.bytes().all(|byte| inner(&byte)) && !part.starts_with('-') && !part.ends_with('-')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(labels: &Value) -> Object {
        let raw = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": labels}});
        Object::from_value(raw).unwrap()
    }

    #[test]
    fn requirements_are_all_to_be_met() {
        let gpu = node(&json!({"env": "prod", "gpu": "a100"}));
        let cases = [
            (json!({}), true),
            (json!(null), true),
            (json!({"matchLabels": {"env": "prod"}}), true),
            (json!({"matchLabels": {"env": "prod", "gpu": "h100"}}), false),
            (
                json!({"matchExpressions": [{"key": "env", "operator": "In", "values": ["dev", "prod"]}]}),
                true,
            ),
            (
                json!({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}),
                true,
            ),
            (
                json!({"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}]}),
                false,
            ),
            (json!({"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}), true),
            (json!({"matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}]}), false),
        ];
        for (value, expected) in cases {
            let selector = Selector::from_value(&value).unwrap();
            assert_eq!(selector.matches(&gpu), expected, "{value}");
            let view: Option<LabelSelector> = serde_json::from_value(value).unwrap();
            assert_eq!(Selector::from_view(view.as_ref()), Ok(selector));
        }
    }

    #[test]
    fn an_unsound_selector_says_where() {
        let cases = [
            (json!([]), ""),
            (json!({"matchLabels": {"env": 1}}), "matchLabels.env"),
            (json!({"matchLabels": {"-env": "x"}}), "matchLabels.-env"),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Foo"}]}),
                "matchExpressions[0].operator",
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
                "matchExpressions[0].values",
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}),
                "matchExpressions[0].values",
            ),
        ];
        for (value, field) in cases {
            let error = Selector::from_value(&value).unwrap_err();
            assert_eq!(error.field, field, "{value}");
            if let Ok(view) = serde_json::from_value::<LabelSelector>(value) {
                assert_eq!(Selector::from_view(Some(&view)), Err(error));
            }
        }
    }
}
