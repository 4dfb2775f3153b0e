//! The one spelling of a scalar, and whether a text is one at all.

use convoy_api::apps::quantity;
use convoy_api::text::duration::GoDuration;
use jiff::Timestamp;
use serde_json::Value;

use crate::shape::Scalar;

/// Go's zero instant, which its encoder writes as null.
const NO_TIME: &str = "0001-01-01T00:00:00Z";

pub(super) fn settle(of: Scalar, value: &mut Value) {
    let settled = match (of, &*value) {
        (Scalar::Quantity, Value::String(text)) => quantity(text).map(Value::String),
        (Scalar::Quantity, Value::Number(number)) => {
            quantity(&number.to_string()).map(Value::String)
        }
        (Scalar::Time, Value::String(text)) => instant(text).map(seconds),
        (Scalar::MicroTime, Value::String(text)) => instant(text).map(micros),
        (Scalar::Duration, Value::String(text)) => {
            text.parse::<GoDuration>().ok().map(|duration| duration.to_string().into())
        }
        (Scalar::Bytes, Value::String(text)) if text.contains(['\r', '\n']) => {
            Some(text.replace(['\r', '\n'], "").into())
        }
        (Scalar::Number, Value::Number(number)) => number.as_f64().and_then(whole),
        _ => None,
    };
    if let Some(settled) = settled {
        *value = settled;
    }
}

/// A quantity in the spelling that an API server keeps.
pub(crate) fn quantity(text: &str) -> Option<String> {
    quantity::stored(text, false)
}

/// Go writes a float without a fraction as an integer.
fn whole(number: f64) -> Option<Value> {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53: beyond it, i64 and f64 part ways
    #[expect(clippy::cast_possible_truncation, reason = "whole and within 53 bits")]
    (number.fract() == 0.0 && number.abs() <= EXACT).then(|| Value::from(number as i64))
}

/// An instant in RFC 3339, which is narrower than what `jiff` reads.
pub(crate) fn instant(text: &str) -> Option<Timestamp> {
    const PATTERN: &[u8; 19] = b"0000-00-00T00:00:00";
    let (meta, tail) = text.as_bytes().split_at_checked(PATTERN.len())?;
    let fits = |(byte, wanted): (&u8, &u8)| match wanted {
        b'0' => byte.is_ascii_digit(),
        other => byte == other,
    };
    if !meta.iter().zip(PATTERN).all(fits) || &meta[17..] == b"60" {
        return None;
    }
    let fraction = match tail.first()? {
        b'.' | b',' => 1 + tail[1..].iter().take_while(|byte| byte.is_ascii_digit()).count(),
        _ => 0,
    };
    let zone = match &tail[fraction..] {
        [b'Z'] => true,
        [b'+' | b'-', a, b, b':', c, d] => [a, b, c, d].iter().all(|byte| byte.is_ascii_digit()),
        _ => false,
    };
    if !zone || fraction == 1 {
        return None;
    }
    // More digits than nanoseconds are cut off by Go, and refused by jiff.
    let cut = fraction.min(10);
    let zone = std::str::from_utf8(&tail[fraction..]).ok()?;
    format!("{}{}{zone}", text.get(..19)?, text.get(19..19 + cut)?).parse().ok()
}

/// The encoding of an instant in whole seconds.
pub(crate) fn seconds(time: Timestamp) -> Value {
    let text = time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    if text == NO_TIME { Value::Null } else { text.into() }
}

/// The encoding of an instant with six decimals.
pub(crate) fn micros(time: Timestamp) -> Value {
    if time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string() == NO_TIME && time.subsec_nanosecond() == 0 {
        return Value::Null;
    }
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_as_go_reads_them() {
        let read = |text: &str| instant(text).map(micros);
        let cases = [
            ("2026-01-02T03:04:05Z", Some("2026-01-02T03:04:05.000000Z")),
            ("2026-01-02T03:04:05.1234567899999Z", Some("2026-01-02T03:04:05.123456Z")),
            ("2026-01-02T03:04:05+02:00", Some("2026-01-02T01:04:05.000000Z")),
            ("1969-12-31T23:59:58.5Z", Some("1969-12-31T23:59:58.500000Z")),
            ("0000-01-01T00:00:00Z", Some("0000-01-01T00:00:00.000000Z")),
            ("2026-01-02 03:04:05Z", None),
            ("2026-01-02T03:04:60Z", None),
            ("2026-01-02T03:04:05", None),
            ("2026-01-02T03:04:05.Z", None),
            ("2026-13-02T03:04:05Z", None),
            ("2026-01-02T03:04:05é", None),
            ("", None),
        ];
        for (text, wanted) in cases {
            assert_eq!(read(text), wanted.map(Value::from), "{text}");
        }
        let early: Timestamp = "1969-12-31T23:59:58.5Z".parse().unwrap();
        assert_eq!(seconds(early), Value::from("1969-12-31T23:59:58Z"));
    }
}
