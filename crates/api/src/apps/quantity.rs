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

/// The most units that Go keeps of a binary quantity.
const LARGEST: i128 = i64::MAX as i128 * NANO;

/// A quantity taken apart: `-1.50Gi` is negative, `1`, `50`, `Gi`.
struct WrittenQuantity<'t> {
    negative: bool,
    /// Without leading zeros.
    whole: &'t str,
    has_whole: bool,
    fraction: &'t str,
    suffix: &'t str,
}

/// How the server would store a quantity; `milli` rounds up to thousandths, as it does in
/// lists of resources. Absent if the text is no quantity.
pub fn stored(text: &str, milli: bool) -> Option<String> {
    let text = text.trim();
    let quantity = WrittenQuantity::of(text).filter(WrittenQuantity::is_sound)?;
    let format = quantity.format();
    let finest = if milli { -3 } else { -9 };
    if let Some(held) = quantity.fast(text)
        && (!milli || held.scale >= finest)
        && !held.text.is_empty()
    {
        return Some(held.text.to_owned());
    }
    let places = i32::try_from(quantity.fraction.len()).ok()?;
    let digits = format!("{}{}", quantity.whole, quantity.fraction);
    let magnitude = if format == BINARY {
        let digits = times(&digits, 1 << binary_power(quantity.suffix)?);
        binary(&rounded_up(digits, -places, finest))
    } else {
        let scale = exponent(quantity.suffix)?.saturating_sub(places);
        decimal(rounded_up(digits, scale, finest), format)
    };
    let sign = if quantity.negative && magnitude != "0" { "-" } else { "" };
    Some(format!("{sign}{magnitude}"))
}

/// What Go holds of a stored text; an absent one is all zeros.
pub(super) fn held(text: &str) -> Held<'_> {
    let zero = Held { value: 0, scale: 0, text: "", format: "", wide: None };
    let Some(quantity) = WrittenQuantity::of(text) else { return zero };
    if let Some(held) = quantity.fast(text) {
        return held;
    }
    let nanos = text.parse::<Quantity>().map_or(0, Quantity::as_nanos);
    let nanos = clamped(nanos, quantity.format());
    Held { format: quantity.format(), wide: Some((nanos < 0, nanos.unsigned_abs())), ..zero }
}

impl<'t> WrittenQuantity<'t> {
    fn of(text: &'t str) -> Option<Self> {
        let (negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let has_whole = !whole.is_empty();
        let whole = whole.trim_start_matches('0');
        let whole = if whole.is_empty() { "0" } else { whole };
        Some(Self { negative, whole, has_whole, fraction, suffix })
    }

    /// Digits with at most one point, and a suffix that exists.
    fn is_sound(&self) -> bool {
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        (self.has_whole || !self.fraction.is_empty())
            && is_number(self.fraction)
            && (binary_power(self.suffix).is_some() || exponent(self.suffix).is_some())
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
            let bits = binary_power(self.suffix)?;
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

/// Go caps binary quantities only.
fn clamped(nanos: i128, format: &str) -> i128 {
    if format == BINARY { nanos.clamp(-LARGEST, LARGEST) } else { nanos }
}

fn binary_power(suffix: &str) -> Option<u32> {
    let letter = suffix.strip_suffix('i').filter(|letter| letter.len() == 1)?;
    Some(10 * u32::try_from("KMGTPE".find(letter)? + 1).ok()?)
}

/// A whole number with a power of ten: no digit is lost, however many there are.
struct Decimal {
    digits: String,
    scale: i32,
}

/// Drops digits finer than `finest`, away from zero.
fn rounded_up(digits: String, scale: i32, finest: i32) -> Decimal {
    let digits = digits.trim_start_matches('0');
    let surplus = usize::try_from(i64::from(finest) - i64::from(scale)).unwrap_or(0);
    if surplus == 0 || digits.is_empty() {
        return Decimal { digits: digits.to_owned(), scale };
    }
    let (kept, gone) = digits.split_at(digits.len().saturating_sub(surplus));
    let is_exact = gone.bytes().all(|digit| digit == b'0');
    let digits = if is_exact { kept.to_owned() } else { times_plus(kept, 1, 1) };
    Decimal { digits, scale: finest }
}

fn times(digits: &str, factor: u64) -> String {
    times_plus(digits, factor, 0)
}

/// Long multiplication, with something carried in from the right.
fn times_plus(digits: &str, factor: u64, carry: u64) -> String {
    let mut carry = u128::from(carry);
    let mut reversed = Vec::with_capacity(digits.len() + 20);
    for digit in digits.bytes().rev() {
        let product = u128::from(digit - b'0') * u128::from(factor) + carry;
        reversed.push(char::from(b'0' + u8::try_from(product % 10).unwrap_or(0)));
        carry = product / 10;
    }
    let rest = if carry == 0 { String::new() } else { carry.to_string() };
    rest + &reversed.iter().rev().collect::<String>()
}

/// The shortest whole number with a suffix of the format.
fn decimal(number: Decimal, format: &str) -> String {
    let digits = number.digits.trim_start_matches('0');
    let shortest = digits.trim_end_matches('0');
    if shortest.is_empty() {
        return "0".to_owned();
    }
    let zeros = i32::try_from(digits.len() - shortest.len()).unwrap_or(0);
    let scale = number.scale.saturating_add(zeros);
    let mut step = scale.div_euclid(3);
    if format != EXPONENT {
        step = step.min(6); // there is no suffix beyond E
    }
    let zeros = usize::try_from(scale - step * 3).unwrap_or(0);
    let number = format!("{shortest}{}", "0".repeat(zeros));
    let letters = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
    match usize::try_from(step + 3).ok().and_then(|step| letters.get(step)) {
        Some(letter) if format != EXPONENT || step == 0 => format!("{number}{letter}"),
        _ => format!("{number}e{}", step * 3),
    }
}

/// As many factors of 1024 as there are, if it is a whole number of at least one.
fn binary(number: &Decimal) -> String {
    // Of more than 28 digits, at a scale of billionths or thousandths, it is past the largest.
    let nanos = match (number.digits.len(), number.scale) {
        (0, _) => 0,
        (29.., _) => LARGEST,
        (_, scale) => {
            let step = 10i128.pow(u32::try_from(scale + 9).unwrap_or(0));
            number.digits.parse::<i128>().unwrap_or(LARGEST).saturating_mul(step).min(LARGEST)
        }
    };
    if nanos < 1024 * NANO || nanos % NANO != 0 {
        return decimal(Decimal { digits: nanos.to_string(), scale: -9 }, DECIMAL);
    }
    let (mut units, mut power) = (nanos / NANO, 0);
    while units % 1024 == 0 && power < 6 {
        units /= 1024;
        power += 1;
    }
    format!("{units}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power])
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
            ("12345678901234567890", "12345678901234567890"),
            ("1e100", "10e99"),
            ("0.0000000001", "1n"),
            ("-1.0001Ki", "-1024102400u"),
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
