//! The result of a phase: count, duration, latencies.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The counts of one client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pace {
    micros: Vec<u32>,
    pub(crate) bytes: usize,
}

impl Pace {
    pub(crate) fn add(&mut self, took: Duration, bytes: usize) {
        self.micros.push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
        self.bytes += bytes;
    }

    /// Combines the counts of all clients into one report.
    pub(crate) fn report(all: Vec<Self>, begun: Instant) -> Value {
        let seconds = begun.elapsed().as_secs_f64();
        let bytes: usize = all.iter().map(|pace| pace.bytes).sum();
        let mut micros: Vec<u32> = all.into_iter().flat_map(|pace| pace.micros).collect();
        micros.sort_unstable();
        let quantile = |percent: usize| {
            let at = micros.len().saturating_sub(1) * percent / 100;
            micros.get(at).copied().unwrap_or(0)
        };
        json!({
            "count": micros.len(), "seconds": seconds, "bytes": bytes,
            "medianMicros": quantile(50), "p99Micros": quantile(99),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_all_clients() {
        let one = Pace { micros: (1..=50).collect(), bytes: 5 };
        let other = Pace { micros: (51..=101).collect(), bytes: 6 };
        let report = Pace::report(vec![one, other], Instant::now());
        assert_eq!((&report["count"], &report["bytes"]), (&json!(101), &json!(11)));
        assert_eq!((&report["medianMicros"], &report["p99Micros"]), (&json!(51), &json!(100)));
    }
}
