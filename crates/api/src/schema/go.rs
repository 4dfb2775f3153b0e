//! How Go prints values, since field errors quote them that way.

use std::fmt::Write;

use serde_json::Value;

/// A value inside an error: strings quoted, numbers and booleans bare, the rest as JSON.
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => integer.to_string(),
            None => float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::Array(_) | Value::Object(_) => sorted(value).to_string(),
        other => other.to_string(),
    }
}

/// `%q`.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\0'..='\u{1f}' | '\u{7f}' => write_escape(&mut quoted, 'x', 2, letter),
            '\u{80}'..='\u{a0}' | '\u{ad}' | '\u{2028}' | '\u{2029}' | '\u{feff}' => {
                write_escape(&mut quoted, 'u', 4, letter);
            }
            _ => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// `%v` of a float64: the shortest digits, with an exponent from 1e21 on and below 1e-4.
pub(super) fn float(number: f64) -> String {
    let size = number.abs();
    if size != 0.0 && !(1e-4..1e21).contains(&size) && size.is_finite() {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    number.to_string()
}

fn write_escape(text: &mut String, kind: char, width: usize, letter: char) {
    write!(text, "\\{kind}{:0width$x}", u32::from(letter)).expect("strings take what is written");
}

/// The same value with object keys in order, as Go's encoder writes maps.
pub(super) fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            fields.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_look_as_go_prints_them() {
        let cases = [
            (serde_json::json!("a\"b\n\u{1}é"), r#""a\"b\n\x01é""#),
            (serde_json::json!(1.0), "1"),
            (serde_json::json!(0.5), "0.5"),
            (serde_json::json!(1e21), "1e+21"),
            (serde_json::json!(0.00001), "1e-05"),
            (serde_json::json!(-7), "-7"),
            (serde_json::json!({"b": [1, true], "a": null}), r#"{"a":null,"b":[1,true]}"#),
        ];
        for (value, want) in cases {
            assert_eq!(shown(&value), want);
        }
    }
}
