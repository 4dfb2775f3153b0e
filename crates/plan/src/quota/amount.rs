//! An amount that keeps the notation it was written in, since people read sums of it.

use std::cmp::Ordering;

use convoy_api::apps::quantity::stored;
use convoy_api::text::Quantity;
use serde_json::Value;

use crate::resources::quantity;

const NANO: i128 = 1_000_000_000;

/// An amount in billionths, and whether it is written in powers of two.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Amount {
    nanos: i128,
    is_binary: bool,
}

impl Amount {
    pub(super) fn read(value: &Value) -> Option<Self> {
        let is_binary = value.as_str().is_some_and(|text| text.ends_with('i'));
        Some(Self { nanos: quantity(value)?.as_nanos(), is_binary })
    }

    pub(super) fn of_units(units: i64) -> Self {
        Self { nanos: Quantity::from_units(units).as_nanos(), is_binary: false }
    }

    /// The sum, in the notation of the first one that is not zero.
    #[must_use]
    pub(super) fn plus(self, other: Self) -> Self {
        let is_binary = if self.nanos == 0 { other.is_binary } else { self.is_binary };
        Self { nanos: self.nanos.saturating_add(other.nanos), is_binary }
    }

    /// The difference, but not less than nothing.
    #[must_use]
    pub(super) fn minus(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_sub(other.nanos).max(0), ..self }
    }

    /// The whole units that hold it.
    #[must_use]
    pub(super) fn rounded_up(self) -> Self {
        let units = self.nanos.div_euclid(NANO) + i128::from(self.nanos.rem_euclid(NANO) != 0);
        Self { nanos: units.saturating_mul(NANO), ..self }
    }

    /// As an API server writes it.
    pub(super) fn text(self) -> String {
        if self.nanos == 0 {
            return "0".to_owned();
        }
        let (units, rest) = (self.nanos / NANO, self.nanos % NANO);
        let text = match rest {
            0 if self.is_binary && units % 1_024 == 0 => format!("{}Ki", units / 1_024),
            0 if self.is_binary && units.abs() > 1_024 => return units.to_string(),
            _ => format!("{}n", self.nanos),
        };
        stored(&text, false).unwrap_or(text)
    }
}

impl PartialEq for Amount {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Amount {}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Amount {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sums_keep_their_notation() {
        let amount = |text: &str| Amount::read(&json!(text)).unwrap();
        let cases = [
            ("0", "252Mi", "252Mi"),
            ("256Mi", "256Mi", "512Mi"),
            ("512Mi", "512Mi", "1Gi"),
            ("1Gi", "1", "1073741825"),
            ("500m", "500m", "1"),
            ("1", "250m", "1250m"),
            ("999", "1", "1k"),
            ("100Mi", "1M", "105857600"),
            ("0", "0", "0"),
        ];
        for (one, other, sum) in cases {
            assert_eq!(amount(one).plus(amount(other)).text(), sum, "{one} {other}");
        }
        assert_eq!(amount("1").minus(amount("2")), Amount::default());
        assert_eq!(amount("1500m").rounded_up().text(), "2");
    }
}
