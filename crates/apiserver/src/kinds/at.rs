//! A value and where in its object it stands, so that what is wrong with it can be said.

use convoy_api::schema::{FieldError, Reason};
use convoy_api::text::Name;
use serde_json::{Value, json};

static NOTHING: Value = Value::Null;

/// A place in an object.
#[derive(Clone, Debug)]
pub(crate) struct At<'v> {
    pub path: String,
    pub value: &'v Value,
}

/// What is wrong with an object, in the order in which it was found.
pub(crate) type Errors = Vec<FieldError>;

impl<'v> At<'v> {
    pub(crate) fn root(value: &'v Value) -> Self {
        Self { path: String::new(), value }
    }

    pub(crate) fn new(path: &str, value: &'v Value) -> Self {
        Self { path: path.to_owned(), value }
    }

    /// The field of this name, or a dotted path of names.
    pub(crate) fn get(&self, names: &str) -> Self {
        let value =
            names.split('.').fold(self.value, |value, name| value.get(name).unwrap_or(&NOTHING));
        let path =
            if self.path.is_empty() { names.to_owned() } else { format!("{}.{names}", self.path) };
        Self { path, value }
    }

    /// The entry of a map.
    pub(crate) fn key(&self, key: &str) -> Self {
        let value = self.value.get(key).unwrap_or(&NOTHING);
        Self { path: format!("{}[{key}]", self.path), value }
    }

    pub(crate) fn items(&self) -> Vec<Self> {
        let items = self.value.as_array().into_iter().flatten().enumerate();
        items.map(|(at, value)| Self { path: format!("{}[{at}]", self.path), value }).collect()
    }

    pub(crate) fn entries(&self) -> Vec<(&'v str, Self)> {
        let entries = self.value.as_object().into_iter().flatten();
        entries.map(|(key, _)| (key.as_str(), self.key(key))).collect()
    }

    pub(crate) fn text(&self) -> &'v str {
        self.value.as_str().unwrap_or_default()
    }

    pub(crate) fn integer(&self) -> Option<i64> {
        self.value.as_i64()
    }

    pub(crate) fn is_true(&self) -> bool {
        self.value == &Value::Bool(true)
    }

    pub(crate) fn is_absent(&self) -> bool {
        self.value.is_null()
    }

    /// Absent, or a list, map or text without content.
    pub(crate) fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        }
    }

    pub(crate) fn required(&self, detail: &str) -> FieldError {
        FieldError::plain(Reason::Required, &self.path, detail)
    }

    pub(crate) fn invalid(&self, detail: &str) -> FieldError {
        FieldError::invalid(&self.path, self.value, detail)
    }

    /// The value is shown as something else than it is.
    pub(crate) fn invalid_as(&self, shown: impl Into<Value>, detail: &str) -> FieldError {
        FieldError::invalid(&self.path, &shown.into(), detail)
    }

    /// Shows all of an object, as Go shows a struct of its own: every field in its order, under
    /// the name that it has there.
    pub(crate) fn invalid_struct(&self, fields: &[&str], detail: &str) -> FieldError {
        let shown = fields.iter().map(|field| {
            let name = match field.strip_prefix("api") {
                Some(rest) => format!("API{rest}"),
                None => format!("{}{}", field[..1].to_uppercase(), &field[1..]),
            };
            format!("{name:?}:{}", self.get(field).value)
        });
        let shown = shown.collect::<Vec<_>>().join(",");
        FieldError::plain(Reason::Invalid, &self.path, &format!("{{{shown}}}: {detail}"))
    }

    pub(crate) fn forbidden(&self, detail: &str) -> FieldError {
        FieldError::plain(Reason::Forbidden, &self.path, detail)
    }

    pub(crate) fn duplicate(&self) -> FieldError {
        FieldError::about(Reason::Duplicate, &self.path, self.value, "")
    }

    pub(crate) fn not_found(&self) -> FieldError {
        let error = FieldError::about(Reason::Invalid, &self.path, self.value, "");
        let message = error.message.replacen("Invalid value", "Not found", 1);
        FieldError { message, ..error }
    }

    pub(crate) fn too_long(&self, most: usize) -> FieldError {
        let detail = format!("may not be more than {most} bytes");
        FieldError::plain(Reason::TooLong, &self.path, &detail)
    }

    pub(crate) fn unsupported(&self, supported: &[&str]) -> FieldError {
        let quoted: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
        let detail = format!("supported values: {}", quoted.join(", "));
        let shown = if self.is_absent() { json!("") } else { self.value.clone() };
        FieldError::about(Reason::NotSupported, &self.path, &shown, &detail)
    }

    /// One of a few texts; absent or empty is missing.
    pub(crate) fn one_of(&self, supported: &[&str], errors: &mut Errors) {
        match self.text() {
            "" => errors.push(self.required("")),
            text if supported.contains(&text) => {}
            _ => errors.push(self.unsupported(supported)),
        }
    }

    /// One of a few texts, if it is given.
    pub(crate) fn one_of_if_given(&self, supported: &[&str], errors: &mut Errors) {
        if !self.is_absent() && !supported.contains(&self.text()) {
            errors.push(self.unsupported(supported));
        }
    }

    /// A number that is not below zero, if it is given.
    pub(crate) fn not_negative(&self, errors: &mut Errors) {
        if self.integer().is_some_and(|number| number < 0) {
            errors.push(self.invalid("must be greater than or equal to 0"));
        }
    }

    pub(crate) fn within(&self, least: i64, most: i64, errors: &mut Errors) {
        if self.integer().is_some_and(|number| number < least || number > most) {
            let detail = format!("must be between {least} and {most}, inclusive");
            errors.push(self.invalid(&detail));
        }
    }

    pub(crate) fn port(&self, errors: &mut Errors) {
        self.within(1, 65_535, errors);
    }

    /// A name of some kind, if it is given.
    pub(crate) fn name(&self, kind: Name, errors: &mut Errors) {
        if !self.text().is_empty() {
            errors.extend(kind.errors(self.text()).iter().map(|detail| self.invalid(detail)));
        }
    }

    /// A name of some kind, which must be there.
    pub(crate) fn required_name(&self, kind: Name, errors: &mut Errors) {
        if self.text().is_empty() {
            errors.push(self.required(""));
        }
        self.name(kind, errors);
    }

    /// As it was: fields that an update leaves alone.
    pub(crate) fn immutable(&self, old: &Self, errors: &mut Errors) {
        if !same(self.value, old.value) {
            errors.push(self.invalid("field is immutable"));
        }
    }

    /// A map of labels.
    pub(crate) fn labels(&self, errors: &mut Errors) {
        self.labels_at(&self.path, errors);
    }

    /// A map of labels whose faults are reported elsewhere.
    pub(crate) fn labels_at(&self, path: &str, errors: &mut Errors) {
        let here = Self::new(path, self.value);
        for (key, value) in self.entries() {
            for detail in Name::QualifiedName.errors(key) {
                errors.push(here.invalid_as(key, &detail));
            }
            for detail in Name::LabelValue.errors(value.text()) {
                errors.push(here.invalid_as(value.text(), &detail));
            }
        }
    }
}

/// Equal, where nothing and something empty are the same.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    let is_empty = |value: &Value| At::root(value).is_empty();
    match (a, b) {
        (Value::Object(left), Value::Object(right)) => {
            let is_within = |these: &serde_json::Map<String, Value>, those: &Value| {
                these.iter().all(|(key, value)| same(value, those.get(key).unwrap_or(&NOTHING)))
            };
            is_within(left, b)
                && right.iter().all(|(key, value)| left.contains_key(key) || is_empty(value))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(a, b)| same(a, b))
        }
        _ => a == b || is_empty(a) && is_empty(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_where_they_are() {
        let object = json!({"spec": {"ports": [{"port": 0}]}});
        let ports = At::root(&object).get("spec.ports");
        let mut errors = Errors::new();
        ports.items()[0].get("port").port(&mut errors);
        ports.items()[0].get("name").one_of(&["a", "b"], &mut errors);
        At::new("x", &json!("c")).one_of(&["a", "b"], &mut errors);
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                "spec.ports[0].name: Required value",
                "x: Unsupported value: \"c\": supported values: \"a\", \"b\"",
            ]
        );
        assert_eq!(ports.not_found().to_string(), "spec.ports: Not found: [{\"port\":0}]");
    }

    #[test]
    fn nothing_and_something_empty_are_the_same() {
        for (a, b, expected) in [
            (json!({"a": {}}), json!({}), true),
            (json!({"a": 1}), json!({"a": 1, "b": []}), true),
            (json!({"a": 1}), json!({"a": 2}), false),
            (json!({}), json!({"a": 0}), false),
            (json!(null), json!([]), true),
            (json!([{"a": null}]), json!([{}]), true),
        ] {
            assert_eq!(same(&a, &b), expected, "{a} {b}");
        }
    }
}
