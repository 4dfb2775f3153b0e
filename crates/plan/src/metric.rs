//! Metrics and their series, in the terms of the text format of Prometheus.

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    pub name: &'static str,
    pub help: &'static str,
    /// The upper bounds of a histogram's buckets, in ascending order; none: a gauge.
    pub buckets: &'static [u32],
}

impl Metric {
    pub const fn new(name: &'static str, help: &'static str) -> Self {
        Self { name, help, buckets: &[] }
    }

    pub const fn histogram(
        name: &'static str,
        help: &'static str,
        buckets: &'static [u32],
    ) -> Self {
        Self { name, help, buckets }
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
    /// Named without the `_total` of the text format.
    pub metric: &'static Metric,
    pub labels: Vec<(&'static str, String)>,
}

impl Increment {
    pub fn new(metric: &'static Metric, labels: &[(&'static str, &str)]) -> Self {
        let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Self { metric, labels }
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
