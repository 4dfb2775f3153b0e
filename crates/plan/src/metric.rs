//! Metrics and their series, in the terms of the text format of Prometheus.

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    pub name: &'static str,
    pub help: &'static str,
}

impl Metric {
    pub const fn new(name: &'static str, help: &'static str) -> Self {
        Self { name, help }
    }
}

/// One number about one rollout, as it stands now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    pub metric: &'static Metric,
    pub labels: Vec<(&'static str, String)>,
    pub value: i64,
}

/// Something that a decision was, or found, to be added up over all decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// Named without the `_total` of the text format.
    pub metric: &'static Metric,
    pub labels: Vec<(&'static str, String)>,
}

impl Count {
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
        Self { metric, labels, value: value.try_into().unwrap_or(i64::MAX) }
    }
}
