//! Fields that hold a count or a percentage. Kubernetes keeps counts of 32 bits; larger ones are
//! read too, so that a budget beyond any fleet is a budget and no error.

use serde::{Deserialize, Deserializer, Serialize};

/// A count, or a text that has to be a percentage.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum CountOrPercent {
    Count(#[serde(deserialize_with = "saturated")] i64),
    Text(String),
}

/// A count of more than 63 bits is the largest one there is.
fn saturated<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let number = serde_json::Number::deserialize(deserializer)?;
    let largest = number.is_u64().then_some(i64::MAX);
    let count = number.as_i64().or(largest);
    count.ok_or_else(|| serde::de::Error::custom("want an integer"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_of_any_size_and_texts_are_read() {
        let read = |value| serde_json::from_value::<CountOrPercent>(value).ok();
        assert_eq!(read(json!(3)), Some(CountOrPercent::Count(3)));
        assert_eq!(read(json!(-1)), Some(CountOrPercent::Count(-1)));
        assert_eq!(read(json!(u64::MAX)), Some(CountOrPercent::Count(i64::MAX)));
        assert_eq!(read(json!("25%")), Some(CountOrPercent::Text("25%".to_owned())));
        assert_eq!(read(json!(2.5)), None);
        assert_eq!(read(json!([])), None);
    }
}
