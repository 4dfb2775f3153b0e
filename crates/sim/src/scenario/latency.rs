//! Lengths of time: fixed (`2s`) or drawn from a range (`1s..3s`).

use std::str::FromStr;

use convoy_api::text::GoDuration;
use jiff::SignedDuration;
use serde::Deserialize;

use crate::seed::Seed;

/// Drawn anew for every use, both ends included.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct Latency {
    low_nanos: i64,
    high_nanos: i64,
}

#[derive(Clone, Debug, thiserror::Error)]
#[error("{text:?}: want a duration such as 250ms, or a range such as 1s..3s")]
pub struct LatencyError {
    text: String,
}

impl Latency {
    pub const fn from_millis(low: i64, high: i64) -> Self {
        Self { low_nanos: low * 1_000_000, high_nanos: high * 1_000_000 }
    }

    pub fn draw(self, seed: Seed) -> SignedDuration {
        SignedDuration::from_nanos(seed.between(self.low_nanos, self.high_nanos))
    }

    pub fn longest(self) -> SignedDuration {
        SignedDuration::from_nanos(self.high_nanos)
    }

    pub fn shortest(self) -> SignedDuration {
        SignedDuration::from_nanos(self.low_nanos)
    }
}

impl FromStr for Latency {
    type Err = LatencyError;

    fn from_str(text: &str) -> Result<Self, LatencyError> {
        let (low, high) = text.split_once("..").unwrap_or((text, text));
        let nanos = |part: &str| part.trim().parse().ok().map(GoDuration::as_nanos);
        match (nanos(low), nanos(high)) {
            (Some(low_nanos), Some(high_nanos)) if 0 <= low_nanos && low_nanos <= high_nanos => {
                Ok(Self { low_nanos, high_nanos })
            }
            _ => Err(LatencyError { text: text.to_owned() }),
        }
    }
}

impl TryFrom<String> for Latency {
    type Error = LatencyError;

    fn try_from(text: String) -> Result<Self, LatencyError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_is_a_duration_or_a_range() {
        let seed = Seed::new(1);
        assert_eq!("2s".parse::<Latency>().unwrap().draw(seed), SignedDuration::from_secs(2));
        let range: Latency = "1s..3s".parse().unwrap();
        for index in 0..100 {
            let drawn = range.draw(seed.nth(index));
            assert!(drawn >= SignedDuration::from_secs(1) && drawn <= SignedDuration::from_secs(3));
        }
        for text in ["", "soon", "-1s", "3s..1s", "1s..", "1s..2s..3s"] {
            assert!(text.parse::<Latency>().is_err(), "{text:?}");
        }
    }
}
