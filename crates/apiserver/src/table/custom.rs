//! The columns that a definition gives its kind.

use convoy_api::json_path::JsonPath;
use serde_json::{Value, json};

use crate::column::{Row, age, definition};
use crate::custom::Column;

pub(super) enum CustomColumn<'c> {
    Name,
    /// Where a definition says nothing.
    Age,
    Given(&'c Column, Option<JsonPath>),
}

/// The name first, then what the definition says.
pub(super) fn columns(given: &[Column]) -> Vec<CustomColumn<'_>> {
    if given.is_empty() {
        return vec![CustomColumn::Name, CustomColumn::Age];
    }
    let given = given.iter();
    let given =
        given.map(|column| CustomColumn::Given(column, JsonPath::parse(&column.json_path).ok()));
    std::iter::once(CustomColumn::Name).chain(given).collect()
}

impl CustomColumn<'_> {
    pub(super) fn definition(&self) -> Value {
        match self {
            Self::Name => definition("Name", "string", "name", "", 0),
            // A type that kubectl knows to be a time.
            Self::Age => definition("Age", "date", "", "", 0),
            Self::Given(column, _) => definition(
                &column.name,
                &column.kind,
                &column.format,
                &column.description,
                column.priority,
            ),
        }
    }

    pub(super) fn cell(&self, row: &Row<'_>) -> Value {
        match self {
            Self::Name => json!(row.text("/metadata/name")),
            Self::Age => json!(row.age("/metadata/creationTimestamp")),
            Self::Given(_, None) => Value::Null,
            Self::Given(column, Some(path)) => {
                let found = path.find(row.object).and_then(|found| found.first().copied());
                found.map_or(Value::Null, |value| cell(&column.kind, value, row))
            }
        }
    }
}

/// A value as its column's type says; nothing where it does not fit.
fn cell(of: &str, value: &Value, row: &Row<'_>) -> Value {
    match (of, value) {
        ("string", value) => json!(printed(value)),
        ("integer", Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => json!(whole),
            #[expect(clippy::cast_possible_truncation, reason = "the fraction is not shown")]
            (None, Some(number)) => json!(number as i64),
            (None, None) => Value::Null,
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(time)) if time.parse::<jiff::Timestamp>().is_ok() => {
            json!(age(Some(time), row.now))
        }
        ("date", Value::String(_)) => json!("<invalid>"),
        _ => Value::Null,
    }
}

/// A value as text: scalars without quotes, the rest as JSON with sorted keys.
fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(number) => printed_number(number),
            None => number.to_string(),
        },
        Value::Bool(_) => value.to_string(),
        Value::Array(_) | Value::Object(_) => {
            let mut sorted = value.clone();
            sorted.sort_all_objects();
            // Upstream's encoder is wary of browsers.
            let escapes = [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026")];
            escapes
                .iter()
                .fold(sorted.to_string(), |text, (sign, escape)| text.replace(*sign, escape))
        }
    }
}

/// Very large and very small numbers have an exponent, of two digits at least.
fn printed_number(number: f64) -> String {
    let size = number.abs();
    if size == 0.0 || (1e-4..1e21).contains(&size) {
        return number.to_string();
    }
    let text = format!("{number:e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent),
            };
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => text,
    }
}
