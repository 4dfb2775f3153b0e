//! The size of JSON while it grows: defaults, patches and conversions can make a small object
//! large, so each of them charges what it adds to a budget before it adds it.

use std::fmt::{self, Write as _};

use serde_json::{Number, Value};

/// How many bytes of JSON something may still grow by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeBudget {
    limit: usize,
    used: usize,
}

/// Something would have become larger than its budget allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at least {wanted} bytes of JSON would be needed, {limit} are allowed")]
pub struct TooLarge {
    /// What is known to be needed; the rest was not looked at.
    pub wanted: usize,
    pub limit: usize,
}

impl SizeBudget {
    pub fn new(limit: usize) -> Self {
        Self { limit, used: 0 }
    }

    /// What is left of `limit` for an object to grow by.
    pub fn beside(limit: usize, object: &Value) -> Result<Self, TooLarge> {
        let mut budget = Self::new(limit);
        budget.charge_value(object)?;
        Ok(budget)
    }

    pub fn used(&self) -> usize {
        self.used
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Counts bytes that are about to be added.
    pub fn charge(&mut self, bytes: usize) -> Result<(), TooLarge> {
        let wanted = self.used.saturating_add(bytes);
        if wanted > self.limit {
            return Err(TooLarge { wanted, limit: self.limit });
        }
        self.used = wanted;
        Ok(())
    }

    /// Counts a value that is about to be added; stops looking where the budget ends.
    ///
    /// The size is that of compact JSON, except that escapes count as the characters they stand
    /// for.
    pub fn charge_value(&mut self, value: &Value) -> Result<(), TooLarge> {
        match value {
            Value::Null | Value::Bool(true) => self.charge(4),
            Value::Bool(false) => self.charge(5),
            Value::Number(number) => self.charge(length(number)),
            Value::String(text) => self.charge(text.len() + 2),
            Value::Array(items) => {
                self.charge(2 + items.len().saturating_sub(1))?;
                items.iter().try_for_each(|item| self.charge_value(item))
            }
            Value::Object(fields) => {
                self.charge(2 + fields.len().saturating_sub(1))?;
                fields.iter().try_for_each(|(name, value)| self.charge_field(name, value))
            }
        }
    }

    /// Counts a field with its name; the comma before it is not counted.
    pub fn charge_field(&mut self, name: &str, value: &Value) -> Result<(), TooLarge> {
        self.charge(name.len() + 3)?;
        self.charge_value(value)
    }
}

/// How long a number is when it is written, without writing it anywhere.
fn length(number: &Number) -> usize {
    struct Length(usize);

    impl fmt::Write for Length {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 += text.len();
            Ok(())
        }
    }

    let mut length = Length(0);
    // Counting does not fail.
    let _ = write!(length, "{number}");
    length.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_size_is_that_of_compact_json() {
        for value in [
            json!(null),
            json!(false),
            json!(-12.5),
            json!("text"),
            json!([]),
            json!([1, true, "a"]),
            json!({}),
            json!({"a": {"b": [null, {}]}, "c": "d"}),
        ] {
            let budget = SizeBudget::beside(1_000, &value).unwrap();
            assert_eq!(budget.used(), value.to_string().len(), "{value}");
        }
    }

    #[test]
    fn what_does_not_fit_is_not_charged() {
        let mut budget = SizeBudget::new(10);
        budget.charge(8).unwrap();
        assert_eq!(budget.charge(3), Err(TooLarge { wanted: 11, limit: 10 }));
        budget.charge(2).unwrap();
        assert!(SizeBudget::beside(10, &json!(["x".repeat(20)])).is_err());
        assert!(budget.charge(usize::MAX).is_err());
    }
}
