//! A list of findings under construction, in Kubernetes' phrases.

use convoy_api::Object;
use serde_json::Value;

use crate::diagnostic::Diagnostic;

pub(crate) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

#[derive(Debug)]
pub(crate) struct Findings<'o> {
    object: &'o Object,
    list: Vec<Diagnostic>,
}

impl<'o> Findings<'o> {
    pub(crate) fn new(object: &'o Object) -> Self {
        Self { object, list: Vec::new() }
    }

    pub(crate) fn finish(self) -> Vec<Diagnostic> {
        self.list
    }

    pub(crate) fn error(&mut self, field: &str, message: String) {
        self.list.push(Diagnostic::error(self.object, field, message));
    }

    pub(crate) fn warn(&mut self, field: &str, message: String) {
        self.list.push(Diagnostic::warning(self.object, field, message));
    }

    pub(crate) fn invalid(&mut self, field: &str, value: &Value, right: &str) {
        self.list.push(Diagnostic::invalid(self.object, field, value, right));
    }

    pub(crate) fn required(&mut self, field: &str, why: &str) {
        self.list.push(Diagnostic::required(self.object, field, why));
    }

    pub(crate) fn unsupported(&mut self, field: &str, value: &str, supported: &[&str]) {
        self.list.push(Diagnostic::unsupported(self.object, field, value, supported));
    }

    pub(crate) fn not_negative(&mut self, value: Option<&Value>, field: &str) {
        if let Some(value) = value
            && value.as_i64().is_some_and(|number| number < 0)
        {
            self.invalid(field, value, NOT_NEGATIVE);
        }
    }

    /// The text of a required field; says so where it is missing.
    pub(crate) fn text<'v>(&mut self, of: &'v Value, key: &str, path: &str) -> Option<&'v str> {
        let text = of.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        if text.is_none() {
            self.required(&format!("{path}.{key}"), "");
        }
        text
    }

    /// A word out of a list, where it is given.
    pub(crate) fn word(&mut self, of: &Value, key: &str, path: &str, supported: &[&str]) {
        let given = of.get(key).and_then(Value::as_str).unwrap_or_default();
        if !given.is_empty() && !supported.contains(&given) {
            self.unsupported(&format!("{path}.{key}"), given, supported);
        }
    }
}

/// The entries of a list, with their paths.
pub(crate) fn entries<'v>(
    of: &'v Value,
    key: &str,
    path: &str,
) -> impl Iterator<Item = (String, &'v Value)> + use<'v> {
    let base = format!("{path}.{key}");
    let items = of.get(key).and_then(Value::as_array).into_iter().flatten();
    items.enumerate().map(move |(index, item)| (format!("{base}[{index}]"), item))
}
