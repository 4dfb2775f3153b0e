//! What a histogram has counted so far.

use std::fmt;

use convoy_plan::series::Metric;
use prometheus_client::encoding::{MetricEncoder, NoLabelSet};

/// The sum of what was observed, and how much of it is in each bucket.
#[derive(Clone, Debug)]
pub(super) struct Observations {
    sum: f64,
    /// By upper bound; the last is that of every number.
    buckets: Vec<(f64, u64)>,
}

impl Observations {
    pub(super) fn new(metric: &Metric) -> Self {
        let bounds = metric.buckets.iter().map(|bound| f64::from(*bound)).chain([f64::INFINITY]);
        Self { sum: 0.0, buckets: bounds.map(|bound| (bound, 0)).collect() }
    }

    pub(super) fn observe(&mut self, value: f64) {
        self.sum += value;
        if let Some((_, count)) = self.buckets.iter_mut().find(|(bound, _)| value <= *bound) {
            *count += 1;
        }
    }

    pub(super) fn encode(&self, mut line: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        let count = self.buckets.iter().map(|(_, count)| count).sum();
        line.encode_histogram::<NoLabelSet>(self.sum, count, &self.buckets, None)
    }
}
