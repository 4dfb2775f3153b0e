//! Metrics and their series, in the terms of the text format of Prometheus.

use convoy_api::ObjectKey;
use jiff::SignedDuration;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    pub name: &'static str,
    pub help: &'static str,
    /// The upper bounds of a histogram's buckets, in ascending order; none: a gauge.
    pub buckets: &'static [u32],
    /// Values are given in thousandths.
    pub is_in_thousandths: bool,
}

impl Metric {
    pub const fn new(name: &'static str, help: &'static str) -> Self {
        Self { name, help, buckets: &[], is_in_thousandths: false }
    }

    /// A gauge whose values have decimals, and are given in thousandths.
    pub const fn in_thousandths(name: &'static str, help: &'static str) -> Self {
        Self { is_in_thousandths: true, ..Self::new(name, help) }
    }

    pub const fn histogram(
        name: &'static str,
        help: &'static str,
        buckets: &'static [u32],
    ) -> Self {
        Self { name, help, buckets, is_in_thousandths: false }
    }
}

/// One number about one rollout, as it stands now, or the numbers that a histogram counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    pub metric: &'static Metric,
    pub labels: Vec<(&'static str, String)>,
    pub value: i64,
    /// What a histogram counts; empty for a gauge.
    pub observed: Vec<u32>,
}

/// Something that a decision was, or found, to be added up over all decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Increment {
    /// A counter, named without the `_total` of the text format, or a histogram.
    pub metric: &'static Metric,
    pub labels: Vec<(&'static str, String)>,
    /// How many; for a histogram the one number that is observed.
    pub by: u64,
    /// The object whose write this counts: a write that fails is not counted. Absent: the decision
    /// itself is.
    pub written: Option<ObjectKey>,
}

impl Increment {
    pub fn new(metric: &'static Metric, labels: &[(&'static str, &str)]) -> Self {
        let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Self { metric, labels, by: 1, written: None }
    }

    /// A duration for a histogram of whole seconds.
    pub fn lasted(
        metric: &'static Metric,
        labels: &[(&'static str, &str)],
        duration: SignedDuration,
    ) -> Self {
        Self::new(metric, labels).by(u64::try_from(duration.as_secs()).unwrap_or(0))
    }

    /// Counted once the actions about an object are applied.
    #[must_use]
    pub fn once_written(self, key: &ObjectKey) -> Self {
        Self { written: Some(key.clone()), ..self }
    }

    #[must_use]
    pub fn by(self, by: u64) -> Self {
        Self { by, ..self }
    }
}

impl Series {
    pub fn new(
        metric: &'static Metric,
        labels: &[(&'static str, &str)],
        value: impl TryInto<i64>,
    ) -> Self {
        let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Self { metric, labels, value: value.try_into().unwrap_or(i64::MAX), observed: Vec::new() }
    }

    /// A series of a histogram.
    pub fn observed(
        metric: &'static Metric,
        labels: &[(&'static str, &str)],
        observed: Vec<u32>,
    ) -> Self {
        Self { observed, ..Self::new(metric, labels, 0) }
    }
}
