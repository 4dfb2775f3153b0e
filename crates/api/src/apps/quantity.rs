//! Quantities as a Kubernetes API server stores them, and as its Go type holds them in memory.
//!
//! The stored text decides the hash of a template, so `2000`, `2k` and `2e3` are told apart
//! here the way the server tells them apart; comparing by value is [`Quantity`]'s part.

use crate::text::quantity::Quantity;

/// What Go's `resource.Quantity` holds after reading a stored text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held<'t> {
    pub(super) value: i64,
    pub(super) scale: i32,
    /// The text itself, where Go keeps it beside the number.
    pub(super) text: &'t str,
    pub(super) format: &'static str,
    /// The amount in billionths where 64 bits did not hold it, sign and magnitude.
    pub(super) wide: Option<(bool, u128)>,
}

const DECIMAL: &str = "DecimalSI";
const EXPONENT: &str = "DecimalExponent";
const BINARY: &str = "BinarySI";

const NANO: i128 = 1_000_000_000;
const MILLI: i128 = NANO / 1_000;

/// The most units that Go's arbitrary precision keeps.
const LARGEST: i128 = i64::MAX as i128 * NANO;

/// A quantity taken apart: `-1.50Gi` is negative, `1`, `50`, `Gi`.
struct Parts<'t> {
    negative: bool,
    whole: &'t str,
    fraction: &'t str,
    suffix: &'t str,
}

/// How the server would store a quantity; `milli` rounds up to thousandths, as it does in
/// lists of resources. Absent if the text is no quantity.
pub fn stored(text: &str, milli: bool) -> Option<String> {
    let text = text.trim();
    let nanos = text.parse::<Quantity>().ok()?.as_nanos();
    let parts = Parts::of(text)?;
    let format = parts.format();
    match parts.fast(text) {
        Some(held) if !milli || held.scale >= -3 => Some(match held.text {
            "" => canonical(nanos, format),
            kept => kept.to_owned(),
        }),
        _ => {
            let nanos = nanos.clamp(-LARGEST, LARGEST);
            Some(canonical(if milli { rounded_up(nanos) } else { nanos }, format))
        }
    }
}

/// What Go holds of a stored text; an absent one is all zeros.
pub(super) fn held(text: &str) -> Held<'_> {
    let zero = Held { value: 0, scale: 0, text: "", format: "", wide: None };
    let Some(parts) = Parts::of(text) else { return zero };
    if let Some(held) = parts.fast(text) {
        return held;
    }
    let nanos = text.parse::<Quantity>().map_or(0, Quantity::as_nanos).clamp(-LARGEST, LARGEST);
    Held { format: parts.format(), wide: Some((nanos < 0, nanos.unsigned_abs())), ..zero }
}

impl<'t> Parts<'t> {
    fn of(text: &'t str) -> Option<Self> {
        let (negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let whole = whole.trim_start_matches('0');
        Some(Self { negative, whole: if whole.is_empty() { "0" } else { whole }, fraction, suffix })
    }

    fn format(&self) -> &'static str {
        match self.suffix {
            suffix if suffix.ends_with('i') => BINARY,
            suffix if suffix.len() > 1 => EXPONENT,
            _ => DECIMAL,
        }
    }

    /// The 64-bit form, which Go takes where the digits are few enough.
    fn fast(&self, text: &'t str) -> Option<Held<'t>> {
        if text == "0" {
            return Some(Held { value: 0, scale: 0, text, format: DECIMAL, wide: None });
        }
        let digits = format!("{}{}", self.whole, self.fraction);
        let (value, scale, keeps) = if self.format() == BINARY {
            let letter = self.suffix.chars().next()?;
            let bits = 10 * u32::try_from("KMGTPE".find(letter)? + 1).ok()?;
            let room = 15 - i64::try_from(self.whole.len()).ok()? - i64::from(bits * 3 / 10) - 1;
            if room < 0 || !self.fraction.is_empty() {
                return None;
            }
            let number: i64 = self.whole.parse().ok()?;
            (number.checked_mul(1 << bits)?, 0, number % 8 != 0)
        } else {
            let places = i32::try_from(self.fraction.len()).ok()?;
            let scale = exponent(self.suffix)?.checked_sub(places)?;
            if digits.len() > 18 || scale < -9 {
                return None;
            }
            let keeps = scale % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0');
            (digits.parse::<i64>().ok()?, scale, keeps)
        };
        let value = if self.negative { -value } else { value };
        let text = if keeps { text } else { "" };
        Some(Held { value, scale, text, format: self.format(), wide: None })
    }
}

fn exponent(suffix: &str) -> Option<i32> {
    let letters = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
    match letters.iter().position(|letter| *letter == suffix) {
        Some(at) => Some(i32::try_from(at).ok()? * 3 - 9),
        None => suffix.strip_prefix(['e', 'E'])?.parse().ok(),
    }
}

fn rounded_up(nanos: i128) -> i128 {
    let up = (nanos.abs() + MILLI - 1) / MILLI * MILLI;
    if nanos < 0 { -up } else { up }
}

/// The shortest whole number with a suffix of the format: no digit is lost.
fn canonical(nanos: i128, format: &str) -> String {
    let binary = format == BINARY && nanos.abs() >= 1024 * NANO && nanos % NANO == 0;
    if binary {
        let mut number = nanos / NANO;
        let mut power = 0;
        while number % 1024 == 0 && power < 6 {
            number /= 1024;
            power += 1;
        }
        return format!("{number}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power]);
    }
    if nanos == 0 {
        return "0".to_owned();
    }
    let (mut number, mut step) = (nanos, 0);
    while number % 1000 == 0 && step < 9 {
        number /= 1000;
        step += 1;
    }
    if format == EXPONENT && step != 3 {
        return format!("{number}e{}", i32::try_from(step).unwrap_or(0) * 3 - 9);
    }
    format!("{number}{}", ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"][step])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_stored_in_their_shortest_form() {
        let cases = [
            ("2000", "2k"),
            ("0.5", "500m"),
            ("1024Mi", "1Gi"),
            ("1", "1"),
            ("1000m", "1"),
            ("100Mi", "100Mi"),
            ("1.5Gi", "1536Mi"),
            ("1e3", "1e3"),
            ("1000e3", "1e6"),
            ("0", "0"),
            ("0Gi", "0"),
            ("1.500", "1.500"), // Go keeps a text whose digits it finds sound
            ("7Pi", "7Pi"),
            ("8Ei", "9223372036854775807"),
            ("512Ki", "512Ki"),
            ("-1500m", "-1500m"),
        ];
        for (given, expected) in cases {
            assert_eq!(stored(given, false).as_deref(), Some(expected), "{given}");
        }
        assert_eq!(stored("100u", true).as_deref(), Some("1m"));
        assert_eq!(stored("100u", false).as_deref(), Some("100u"));
        assert_eq!(stored("much", false), None);
        for odd in ["1\u{e9}i", "i", "1e-2147483648", "-", "1.2.3", "Ei"] {
            held(odd); // no text makes it panic
            stored(odd, true);
        }
    }

    #[test]
    fn go_holds_small_numbers_in_64_bits_and_keeps_some_texts() {
        let cases = [
            ("500m", (500, -3, "500m", DECIMAL)),
            ("128Mi", (134_217_728, 0, "", BINARY)),
            ("1Gi", (1_073_741_824, 0, "1Gi", BINARY)),
            ("2G", (2, 9, "2G", DECIMAL)),
            ("0", (0, 0, "0", DECIMAL)),
            ("1e3", (1, 3, "1e3", EXPONENT)),
        ];
        for (text, (value, scale, kept, format)) in cases {
            assert_eq!(held(text), Held { value, scale, text: kept, format, wide: None }, "{text}");
        }
        let wide = held("7Pi").wide.expect("too many digits for the fast path");
        assert_eq!(wide, (false, 7 * (1 << 50) * 1_000_000_000));
    }
}
