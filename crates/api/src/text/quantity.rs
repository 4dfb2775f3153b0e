//! Kubernetes quantities: `100m`, `1.5`, `2Gi`, `1e3`. Compared by value, exact to the
//! billionth, which is the finest step the notation has.

use std::str::FromStr;

/// An amount of a resource, in billionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity(i128);

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid quantity {text:?}; expected a number with an optional suffix, e.g. 500m, 2 or 4Gi"
)]
pub struct QuantityError {
    pub text: String,
}

const NANO: i128 = 1_000_000_000;

/// Beyond this, amounts saturate; it is more than any suffix can express of 64 bits.
const LARGEST: i128 = i128::MAX / NANO;

impl Quantity {
    pub const ZERO: Self = Self(0);

    pub const fn from_units(units: i64) -> Self {
        Self(units as i128 * NANO)
    }

    /// The value in billionths of the unit.
    pub const fn as_nanos(self) -> i128 {
        self.0
    }

    /// The value in whole units, rounded up as Kubernetes rounds `Value()`.
    pub fn as_units(self) -> i64 {
        let units = self.0.div_euclid(NANO) + i128::from(self.0.rem_euclid(NANO) != 0);
        i64::try_from(units).unwrap_or(if units < 0 { i64::MIN } else { i64::MAX })
    }

    /// The value in thousandths, rounded up as Kubernetes rounds `MilliValue()`.
    pub fn as_millis(self) -> i64 {
        let step = NANO / 1_000;
        let millis = self.0.div_euclid(step) + i128::from(self.0.rem_euclid(step) != 0);
        i64::try_from(millis).unwrap_or(if millis < 0 { i64::MIN } else { i64::MAX })
    }

    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        parse(text).map(Self).ok_or_else(|| QuantityError { text: text.to_owned() })
    }
}

fn parse(text: &str) -> Option<i128> {
    let (negative, rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let (base, exponent) = scale(suffix)?;
    let nanos = value(whole, fraction, base, exponent)?;
    Some(if negative { -nanos } else { nanos })
}

/// What a suffix multiplies by: a power of two or of ten.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    let power = |letter: &str| "KMGTPE".find(letter).and_then(|at| i32::try_from(at + 1).ok());
    Some(match suffix {
        "" => (10, 0),
        "n" => (10, -9),
        "u" => (10, -6),
        "m" => (10, -3),
        "k" => (10, 3),
        "M" | "G" | "T" | "P" | "E" => (10, power(suffix)? * 3),
        "Ki" | "Mi" | "Gi" | "Ti" | "Pi" | "Ei" => (2, power(&suffix[..1])? * 10),
        _ => (10, suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
    })
}

/// The number in billionths; digits finer than that round away from zero, as in Kubernetes.
fn value(whole: &str, fraction: &str, base: i128, exponent: i32) -> Option<i128> {
    if exponent.unsigned_abs() > 60 {
        return if exponent < 0 { Some(0) } else { Some(LARGEST) };
    }
    let mut digits: i128 = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        digits = digits.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
    }
    let fraction_places = u32::try_from(fraction.len()).ok()?;
    let mut numerator = digits;
    let mut denominator = 10i128.checked_pow(fraction_places)?;
    let factor = base.checked_pow(exponent.unsigned_abs())?;
    if exponent >= 0 {
        numerator = numerator.saturating_mul(factor);
    } else {
        denominator = denominator.checked_mul(factor)?;
    }
    let nanos = numerator.saturating_mul(NANO);
    Some((nanos / denominator + i128::from(nanos % denominator != 0)).min(LARGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_compared_by_value() {
        let equal = [
            ("1", "1000m"),
            ("1Gi", "1073741824"),
            ("1.5", "1500m"),
            ("1e3", "1k"),
            ("0.1", "100m"),
        ];
        for (left, right) in equal {
            assert_eq!(left.parse::<Quantity>(), right.parse(), "{left} {right}");
        }
        assert!("9".parse::<Quantity>().unwrap() < "10".parse().unwrap());
        assert!("1Ki".parse::<Quantity>().unwrap() > "1k".parse().unwrap());
        assert!("-1".parse::<Quantity>().unwrap() < Quantity::ZERO);
    }

    #[test]
    fn what_is_not_a_quantity_is_refused() {
        for text in ["", "-", ".", "1.2.3", "abc", "1KiB", "1 Gi", "0x10", "1e"] {
            assert!(text.parse::<Quantity>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn whole_units_round_up() {
        assert_eq!("1500m".parse::<Quantity>().unwrap().as_units(), 2);
        assert_eq!("100u".parse::<Quantity>().unwrap().as_millis(), 1);
    }
}
