//! Budgets: how many members may be in flight at once. Dialects differ in how a share of a
//! group becomes a whole number, which is what [`Rounding`] records.

use convoy_api::text::CountOrPercent;
use serde_json::Value;

/// A count, or a share of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntOrPercent {
    Int(i64),
    Percent(u32),
}

/// How a share becomes a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// 2.9 becomes 2, but never less than this while the group has members.
    Down { at_least: u32 },
    /// 2.1 becomes 3.
    Up,
}

/// Why a value is neither a count nor a percentage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    #[error("invalid type: string is not a percentage")]
    NotAPercentage { text: String },
    #[error("want an integer or a percentage such as \"25%\"")]
    WrongType,
    #[error("must not be negative")]
    Negative,
}

impl IntOrPercent {
    /// Reads an int-or-string field as Kubernetes does: a string is a percentage or an error.
    pub fn from_value(value: &Value) -> Result<Self, BudgetError> {
        match value {
            Value::Number(number) => match number.as_i64() {
                Some(count) => Ok(Self::Int(count)),
                None if number.is_u64() => Ok(Self::Int(i64::MAX)), // saturates
                None => Err(BudgetError::WrongType),
            },
            Value::String(text) => Self::from_percent(text),
            _ => Err(BudgetError::WrongType),
        }
    }

    /// The same of a typed view.
    pub fn from_view(given: &CountOrPercent) -> Result<Self, BudgetError> {
        match given {
            CountOrPercent::Count(count) => Ok(Self::Int(*count)),
            CountOrPercent::Text(text) => Self::from_percent(text),
        }
    }

    /// Reads `25%`.
    pub fn from_percent(text: &str) -> Result<Self, BudgetError> {
        let digits = text.strip_suffix('%').filter(|digits| !digits.is_empty());
        let share = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let share = share.and_then(|digits| digits.parse().ok());
        share
            .map(Self::Percent)
            .ok_or_else(|| BudgetError::NotAPercentage { text: text.to_owned() })
    }

    /// Reads a string field that holds either `25%` or `7`.
    pub fn from_text(text: &str) -> Result<Self, BudgetError> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            // More digits than fit are a very large count, not an error.
            return Ok(Self::Int(text.parse().unwrap_or(i64::MAX)));
        }
        Self::from_percent(text)
    }

    /// How many members of a group of `total` this is. Negative counts come out as 0.
    ///
    /// | total | budget           | result | because                      |
    /// |------:|------------------|-------:|------------------------------|
    /// |    10 | 25%, down, min 1 |      2 | 2.5 rounds down              |
    /// |     5 | 10%, down, min 1 |      1 | 0.5 rounds to 0, lifted to 1 |
    /// |     0 | 50%, down, min 1 |      0 | there is nobody to lift it for |
    /// |    10 | 25%, up          |      3 | 2.5 rounds up                |
    /// |     2 | 7                |      7 | a count is taken as it is    |
    pub fn resolve(self, total: u32, rounding: Rounding) -> u32 {
        match self {
            Self::Int(count) => u32::try_from(count.max(0)).unwrap_or(u32::MAX),
            Self::Percent(percent) => rounding.share(total, percent),
        }
    }
}

impl Rounding {
    /// `percent` of `total` as a whole number, in integer arithmetic.
    pub fn share(self, total: u32, percent: u32) -> u32 {
        let product = u64::from(total) * u64::from(percent);
        let share = match self {
            Self::Down { .. } => product / 100,
            Self::Up => product.div_ceil(100),
        };
        let share = u32::try_from(share).unwrap_or(u32::MAX);
        match self {
            Self::Down { at_least } if total > 0 => share.max(at_least),
            _ => share,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn shares_round_as_they_are_told() {
        let down = Rounding::Down { at_least: 1 };
        let cases = [
            (10, 25, down, 2),
            (5, 10, down, 1),
            (100, 29, down, 29),
            (0, 50, down, 0),
            (10, 25, Rounding::Up, 3),
            (0, 25, Rounding::Up, 0),
            (3, 25, Rounding::Down { at_least: 0 }, 0),
            (u32::MAX, 100, Rounding::Up, u32::MAX),
        ];
        for (total, percent, rounding, share) in cases {
            assert_eq!(
                rounding.share(total, percent),
                share,
                "{percent}% of {total}, {rounding:?}"
            );
        }
    }

    #[test]
    fn counts_and_percentages_are_read() {
        let read = |value| IntOrPercent::from_value(&value).ok();
        assert_eq!(read(json!(3)), Some(IntOrPercent::Int(3)));
        assert_eq!(read(json!("25%")), Some(IntOrPercent::Percent(25)));
        assert_eq!(read(json!("25")), None);
        assert_eq!(read(json!("%")), None);
        assert_eq!(read(json!(2.5)), None);
        assert_eq!(IntOrPercent::from_text("7"), Ok(IntOrPercent::Int(7)));
        assert_eq!(
            IntOrPercent::from_text("99999999999999999999"),
            Ok(IntOrPercent::Int(i64::MAX))
        );
    }
}
