//! Durations as Go writes and reads them: `1h30m`, `46s`, `1.5h`, `-2m`, `0`.

use std::fmt;
use std::str::FromStr;

use jiff::SignedDuration;

/// A length of time in Go's notation, exact to the nanosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoDuration(i64);

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid duration {text:?}; expected e.g. 90s, 15m or 1h30m")]
pub struct DurationError {
    pub text: String,
}

/// Unit suffixes, longest first where one is a prefix of another.
const UNITS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

impl GoDuration {
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    pub const fn as_secs(self) -> i64 {
        self.0 / 1_000_000_000
    }

    pub fn signed(self) -> SignedDuration {
        SignedDuration::from_nanos(self.0)
    }
}

impl FromStr for GoDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        parse(text).map(Self).ok_or_else(|| DurationError { text: text.to_owned() })
    }
}

/// Go's own spelling: `1h30m0s`, `46s`, `1.5s`, `250ms`, `0s`.
impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.unsigned_abs();
        if self.0 < 0 {
            f.write_str("-")?;
        }
        match nanos {
            0 => f.write_str("0s"),
            1..1_000 => write!(f, "{nanos}ns"),
            1_000..1_000_000 => write!(f, "{}µs", decimal(nanos, 1_000)),
            1_000_000..1_000_000_000 => write!(f, "{}ms", decimal(nanos, 1_000_000)),
            _ => {
                let (hours, rest) = (nanos / 3_600_000_000_000, nanos % 3_600_000_000_000);
                let (mins, rest) = (rest / 60_000_000_000, rest % 60_000_000_000);
                if hours > 0 {
                    write!(f, "{hours}h")?;
                }
                if hours > 0 || mins > 0 {
                    write!(f, "{mins}m")?;
                }
                write!(f, "{}s", decimal(rest, 1_000_000_000))
            }
        }
    }
}

fn decimal(nanos: u64, unit: u64) -> String {
    let width = unit.ilog10() as usize;
    let text = format!("{}.{:0width$}", nanos / unit, nanos % unit);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn parse(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let (nanos, after) = term(rest)?;
        total = total.checked_add(nanos)?;
        rest = after;
    }
    if text.len() == usize::from(negative) {
        return None;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// One `<number><unit>`, and what follows it.
fn term(text: &str) -> Option<(i128, &str)> {
    let digits_end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, rest) = text.split_at(digits_end);
    let (suffix, unit) = UNITS
        .iter()
        .filter(|(suffix, _)| rest.starts_with(suffix))
        .max_by_key(|(suffix, _)| suffix.len())?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let unit = i128::from(*unit);
    let mut nanos =
        if whole.is_empty() { 0 } else { whole.parse::<i128>().ok()? }.checked_mul(unit)?;
    let mut place = unit;
    for digit in fraction.bytes() {
        place /= 10; // beyond a nanosecond digits are dropped, as in Go
        nanos += i128::from(digit - b'0') * place;
    }
    Some((nanos, &rest[suffix.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_in_go() {
        let cases: [(&str, Option<i64>); 16] = [
            ("0", Some(0)),
            ("0s", Some(0)),
            ("46s", Some(46_000_000_000)),
            ("1h30m", Some(5_400_000_000_000)),
            ("1.5h", Some(5_400_000_000_000)),
            (".5s", Some(500_000_000)),
            ("1h10m0s", Some(4_200_000_000_000)),
            ("-2m", Some(-120_000_000_000)),
            ("250ms", Some(250_000_000)),
            ("3us", Some(3_000)),
            ("", None),
            ("-", None),
            ("5", None),
            ("2d", None),
            ("1h 5m", None),
            ("9999999999h", None),
        ];
        for (text, nanos) in cases {
            assert_eq!(
                text.parse::<GoDuration>().ok().map(GoDuration::as_nanos),
                nanos,
                "{text:?}"
            );
        }
    }

    #[test]
    fn durations_are_written_as_in_go() {
        let cases =
            [("90m", "1h30m0s"), ("46s", "46s"), ("1500ms", "1.5s"), ("0", "0s"), ("2us", "2µs")];
        for (text, written) in cases {
            assert_eq!(text.parse::<GoDuration>().unwrap().to_string(), written);
        }
    }
}
