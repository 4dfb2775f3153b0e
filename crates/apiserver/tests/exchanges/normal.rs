//! Takes out of answers what every server draws for itself: identities, versions, times,
//! addresses, digests, and the order of several errors. What was equal stays equal. The words
//! that describe a column are left out too: they are each project's own.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Names for drawn values, each after the request where it was first seen.
#[derive(Default)]
pub(crate) struct Names {
    known: BTreeMap<String, String>,
    step: usize,
    next: usize,
}

impl Names {
    pub(crate) fn normal(
        &mut self,
        step: usize,
        kept: &BTreeMap<String, String>,
        answer: Value,
    ) -> Value {
        (self.step, self.next) = (step, 0);
        // Short ones are versions and plain words, which have rules of their own.
        let kept: Vec<(&String, &String)> =
            kept.iter().filter(|(name, value)| *name != "ns" && value.len() > 5).collect();
        let mut answer = answer;
        settle_causes(&mut answer["body"]);
        self.value("", answer, &kept)
    }

    fn value(&mut self, field: &str, value: Value, kept: &[(&String, &String)]) -> Value {
        match value {
            Value::Object(fields) => {
                let is_list =
                    fields.contains_key("items") || fields.contains_key("columnDefinitions");
                let is_column = fields.contains_key("priority") && fields.contains_key("format");
                let is_told = |name: &str| {
                    !(name == "storageVersionHash" || is_column && name == "description")
                };
                let kept_fields = fields.into_iter().filter(|(name, _)| is_told(name));
                let mut sorted: Vec<(String, Value)> = kept_fields.collect();
                sorted.sort_by(|(left, _), (right, _)| left.cmp(right));
                let fields = sorted.into_iter().map(|(name, value)| {
                    let value = match value {
                        Value::Object(mut metadata) if is_list && name == "metadata" => {
                            Self::list(&mut metadata);
                            metadata.into()
                        }
                        value => self.value(&name, value, kept),
                    };
                    (self.text(&name, kept), value)
                });
                Value::Object(fields.collect())
            }
            Value::Array(mut items) => {
                // Their order depends on the second in which each of them wrote.
                if field == "managedFields" {
                    let names = ["manager", "operation", "apiVersion", "subresource"];
                    items.sort_by_cached_key(|item| {
                        names.map(|name| item[name].as_str().unwrap_or_default().to_owned())
                    });
                }
                items.into_iter().map(|item| self.value(field, item, kept)).collect()
            }
            Value::String(text) if field == "resourceVersion" => match text.as_str() {
                "" | "0" => text.into(),
                _ => self.named("version", &text).into(),
            },
            Value::String(_) if field == "serverAddress" => "<address>".into(),
            Value::String(text) if field == "serverRelativeURL" => {
                text.split("hash=").next().unwrap_or_default().into()
            }
            Value::String(text) if field == "cells" && is_age(&text) => "<age>".into(),
            Value::String(text) => self.text(&text, kept).into(),
            Value::Number(_) if matches!(field, "nodePort" | "healthCheckNodePort") => {
                "<port>".into()
            }
            other => other,
        }
    }

    /// The version of a list is that of the whole store, which others write to as well.
    fn list(metadata: &mut Map<String, Value>) {
        for name in ["resourceVersion", "continue"] {
            if let Some(value) = metadata.get_mut(name).filter(|value| *value != "") {
                *value = format!("<{name}>").into();
            }
        }
    }

    fn named(&mut self, what: &str, value: &str) -> String {
        if let Some(name) = self.known.get(value) {
            return name.clone();
        }
        let name = format!("<{what} {}.{}>", self.step, self.next);
        self.next += 1;
        self.known.insert(value.to_owned(), name.clone());
        name
    }

    fn text(&mut self, text: &str, kept: &[(&String, &String)]) -> String {
        let mut text = text.to_owned();
        for (name, value) in kept {
            text = text.replace(value.as_str(), &format!("${name}"));
        }
        let mut result = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (taken, replaced) = if is_identity(rest) {
                (36, self.named("uid", &rest[..36]))
            } else if let Some(length) = time_length(rest) {
                (length, "<time>".to_owned())
            } else if let Some(length) = address_length(rest, &result) {
                (length, "<address>".to_owned())
            } else if fits(rest, ":99999/") {
                (7, ":<port>/".to_owned())
            } else if let Some(digits) = rest.strip_prefix("current: ").map(leading_digits) {
                ("current: ".len() + digits, "current: <version>".to_owned())
            } else {
                let length = rest.chars().next().map_or(1, char::len_utf8);
                (length, rest[..length].to_owned())
            };
            result.push_str(&replaced);
            rest = &rest[taken..];
        }
        result
    }
}

/// Servers of Go find several errors in an order of chance, so they are put into one of ours.
fn settle_causes(body: &mut Value) {
    let causes = body.pointer_mut("/details/causes").and_then(Value::as_array_mut);
    let Some(causes) = causes.filter(|causes| causes.len() > 1) else { return };
    causes.sort_by_cached_key(|cause| (cause["field"].to_string(), cause["message"].to_string()));
    let message = body["message"].as_str().unwrap_or_default();
    if let Some((whose, _)) = message.split_once(" is invalid: [") {
        body["message"] = format!("{whose} is invalid: [<causes>]").into();
    }
}

fn fits(text: &str, pattern: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= pattern.len()
        && pattern.bytes().zip(bytes).all(|(wanted, byte)| match wanted {
            b'h' => byte.is_ascii_hexdigit(),
            b'9' => byte.is_ascii_digit(),
            other => other == *byte,
        })
}

fn is_identity(text: &str) -> bool {
    fits(text, "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh")
}

fn leading_digits(text: &str) -> usize {
    text.len() - text.trim_start_matches(|character: char| character.is_ascii_digit()).len()
}

/// `7s` or `2m8s`, as tables show how old a thing is; a busy machine takes its time.
fn is_age(text: &str) -> bool {
    let seconds = text.split_once('m').map_or(text, |(_, seconds)| seconds);
    let minutes = &text[..text.len() - seconds.len()];
    let digits = |part: &str, unit: char| {
        part.strip_suffix(unit).is_some_and(|digits| leading_digits(digits) == digits.len())
    };
    digits(seconds, 's') && (minutes.is_empty() || digits(minutes, 'm'))
}

/// Of a time at the beginning, with or without a fraction of the second.
fn time_length(text: &str) -> Option<usize> {
    let seconds = "9999-99-99T99:99:99";
    if !fits(text, seconds) {
        return None;
    }
    let rest = &text[seconds.len()..];
    let digits =
        rest.trim_start_matches(|character: char| character == '.' || character.is_ascii_digit());
    let fraction = rest.len() - digits.len();
    digits.starts_with('Z').then_some(seconds.len() + fraction + 1)
}

/// Of an address that a Service was given.
fn address_length(text: &str, before: &str) -> Option<usize> {
    if !text.starts_with("10.96.") || before.ends_with(|last: char| last.is_ascii_digit()) {
        return None;
    }
    text.find(|character: char| character != '.' && !character.is_ascii_digit())
        .or(Some(text.len()))
}
