//! The values of YAML scalars. These are the rules of YAML 1.1 as Kubernetes applies them, so
//! that a manifest means here what it means to `kubectl`.

use serde_json::Value;

use crate::input::number;

/// Why a scalar has no meaning in JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InvalidYaml(pub(super) String);

/// A scalar that is neither quoted nor tagged.
///
/// | text                   | means        | because                                   |
/// |------------------------|--------------|-------------------------------------------|
/// | `yes`, `Off`, `y`      | a boolean    | YAML 1.1 has six words for each           |
/// | `~`, `null`, nothing   | null         |                                           |
/// | `0644`, `0o644`        | 420          | octal with and without the letter         |
/// | `0x1F`, `0b11`, `1_000`| 31, 3, 1000  |                                           |
/// | `08`, `1e3`, `1.0`     | 8, 1000, 1   | floats that are whole are integers        |
/// | `1e999`, 400 digits    | a string     | no number of 64 bits                      |
/// | `2026-01-01`, `1:30`   | a string     | dates and base 60 have no meaning in JSON |
/// | `.inf`, `.nan`         | an error     | JSON cannot say it                        |
pub(super) fn plain(text: &str) -> Result<Value, InvalidYaml> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Ok(Value::Bool(true));
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Ok(Value::Bool(false));
        }
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf" | "-.INF"
        | ".nan" | ".NaN" | ".NAN" => {
            let message = format!("{text} has no JSON representation; quote it if it is a string");
            return Err(InvalidYaml(message));
        }
        _ => {}
    }
    Ok(numeric(text).unwrap_or_else(|| Value::from(text)))
}

/// A scalar with a tag of YAML's own, e.g. `!!str 1`.
pub(super) fn tagged(tag: &str, text: &str) -> Result<Value, InvalidYaml> {
    let fits = |value: &Value| match tag {
        "bool" => value.is_boolean(),
        "int" => value.is_i64() || value.is_u64(),
        "float" => value.is_number(),
        "null" => value.is_null(),
        _ => true,
    };
    match tag {
        "str" | "timestamp" => Ok(Value::from(text)),
        "binary" => Err(InvalidYaml("!!binary is not supported; use a plain string".to_owned())),
        _ => match plain(text)? {
            value if fits(&value) => Ok(value),
            _ => Err(InvalidYaml(format!("{text:?} is not a !!{tag}"))),
        },
    }
}

/// A scalar as the key of a map. JSON has only strings there, so `yes:` is `"true":`.
pub(super) fn key(value: Value) -> Result<String, InvalidYaml> {
    match value {
        Value::String(text) => Ok(text),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => Ok(float_key(float)),
            _ => Ok(number.to_string()),
        },
        Value::Null => Err(InvalidYaml("null cannot be a key".to_owned())),
        Value::Array(_) => Err(InvalidYaml("a list cannot be a key".to_owned())),
        Value::Object(_) => Err(InvalidYaml("a map cannot be a key".to_owned())),
    }
}

fn numeric(text: &str) -> Option<Value> {
    let first = text.bytes().next()?;
    if first == b'.' {
        return is_decimal(text).then(|| float(text)).flatten();
    }
    if !(first.is_ascii_digit() || matches!(first, b'+' | b'-')) {
        return None;
    }
    let digits: String = text.chars().filter(|letter| *letter != '_').collect();
    integer(&digits).or_else(|| is_decimal(&digits).then(|| float(&digits)).flatten())
}

fn integer(text: &str) -> Option<Value> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = match unsigned.get(..2) {
        Some("0x" | "0X") => (16, &unsigned[2..]),
        Some("0o" | "0O") => (8, &unsigned[2..]),
        Some("0b" | "0B") => (2, &unsigned[2..]),
        _ if unsigned.len() > 1 && unsigned.starts_with('0') => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let value = u64::from_str_radix(digits, radix).ok()?;
    match (negative, i64::try_from(value)) {
        (false, _) => Some(Value::from(value)),
        (true, Ok(value)) => Some(Value::from(-value)),
        (true, Err(_)) => (value == i64::MIN.unsigned_abs()).then(|| Value::from(i64::MIN)),
    }
}

fn float(text: &str) -> Option<Value> {
    number(text.parse().ok()?)
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_decimal(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_is_good = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    all_digits(whole)
        && all_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent_is_good
}

/// A float as a key, with as many digits as 32 bits have and an exponent from a million on.
#[expect(clippy::cast_possible_truncation, reason = "keys have the precision of 32 bits")]
fn float_key(value: f64) -> String {
    let short = value as f32;
    let scientific = format!("{short:e}");
    match scientific.split_once('e').and_then(|(m, e)| Some((m, e.parse::<i32>().ok()?))) {
        Some((mantissa, exponent)) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.abs())
        }
        _ => short.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plain_scalars_mean_what_they_mean_to_kubernetes() {
        let cases = [
            ("", json!(null)),
            ("~", json!(null)),
            ("yes", json!(true)),
            ("Off", json!(false)),
            ("n", json!(false)),
            ("yep", json!("yep")),
            ("0644", json!(420)),
            ("0o644", json!(420)),
            ("08", json!(8)),
            ("0", json!(0)),
            ("-0", json!(0)),
            ("0x1F", json!(31)),
            ("0b11", json!(3)),
            ("1_000", json!(1000)),
            ("+7", json!(7)),
            ("-7", json!(-7)),
            ("--7", json!("--7")),
            ("0x-7", json!("0x-7")),
            ("1e3", json!(1000)),
            ("1.0", json!(1)),
            ("1.", json!(1)),
            (".5", json!(0.5)),
            (".5.5", json!(".5.5")),
            ("1.5", json!(1.5)),
            ("1e", json!("1e")),
            ("1e999", json!("1e999")),
            ("9223372036854775808", json!(9_223_372_036_854_775_808_u64)),
            ("-9223372036854775808", json!(i64::MIN)),
            ("18446744073709551616", json!(18_446_744_073_709_551_616.0)),
            ("2026-01-01", json!("2026-01-01")),
            ("1:30", json!("1:30")),
            ("10m", json!("10m")),
            ("infinity", json!("infinity")),
            ("-", json!("-")),
            ("é", json!("é")),
        ];
        for (text, value) in cases {
            assert_eq!(plain(text), Ok(value), "{text}");
        }
        assert!(plain("-.inf").is_err());
        assert!(plain(".NaN").is_err());
        assert!(plain(&"9".repeat(400)).unwrap().is_string());
    }

    #[test]
    fn tags_overrule_what_the_text_looks_like() {
        assert_eq!(tagged("str", "1"), Ok(json!("1")));
        assert_eq!(tagged("int", "0644"), Ok(json!(420)));
        assert_eq!(tagged("float", "1"), Ok(json!(1)));
        assert!(tagged("int", "one").is_err());
        assert!(tagged("bool", "1").is_err());
    }

    #[test]
    fn keys_become_strings() {
        let cases = [
            ("yes", "true"),
            ("0644", "420"),
            ("1.5", "1.5"),
            ("1e3", "1000"),
            ("1234567.5", "1.2345675e+06"),
            ("0.00001", "1e-05"),
            ("name", "name"),
        ];
        for (text, want) in cases {
            assert_eq!(key(plain(text).unwrap()), Ok(want.to_owned()), "{text}");
        }
        assert!(key(json!(null)).is_err());
    }
}
