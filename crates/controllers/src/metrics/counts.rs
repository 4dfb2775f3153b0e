//! Counters and histograms of dialects: what their decisions were, added up.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use convoy_plan::series::{Increment, Metric};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;

use super::observations::Observations;

type Labels = Vec<(&'static str, String)>;

#[derive(Clone, Debug, Default)]
pub(super) struct DecisionCounts {
    by_name: Arc<Mutex<BTreeMap<&'static str, Family>>>,
}

#[derive(Debug)]
struct Family {
    metric: &'static Metric,
    by_labels: BTreeMap<Labels, Tally>,
}

#[derive(Debug)]
enum Tally {
    Count(u64),
    Observations(Observations),
}

impl Tally {
    fn new(metric: &Metric) -> Self {
        match metric.buckets {
            [] => Self::Count(0),
            _ => Self::Observations(Observations::new(metric)),
        }
    }

    fn add(&mut self, by: u64) {
        match self {
            Self::Count(count) => *count += by,
            #[expect(clippy::cast_precision_loss, reason = "observations are floats")]
            Self::Observations(observations) => observations.observe(by as f64),
        }
    }
}

impl DecisionCounts {
    /// Counts all of them.
    pub(super) fn add<'i>(&self, counts: impl IntoIterator<Item = &'i Increment>) {
        // A panic elsewhere leaves whole numbers behind.
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        for Increment { metric, labels, by, .. } in counts {
            let family = by_name.entry(metric.name);
            let family = family.or_insert_with(|| Family { metric, by_labels: BTreeMap::new() });
            let tally = family.by_labels.entry(labels.clone());
            tally.or_insert_with(|| Tally::new(metric)).add(*by);
        }
    }
}

impl Collector for DecisionCounts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        for Family { metric, by_labels } in by_name.values() {
            let kind = match metric.buckets {
                [] => MetricType::Counter,
                _ => MetricType::Histogram,
            };
            let mut family = encoder.encode_descriptor(metric.name, metric.help, None, kind)?;
            for (labels, tally) in by_labels {
                let line = family.encode_family(labels)?;
                match tally {
                    Tally::Count(count) => ConstCounter::new(*count).encode(line)?,
                    Tally::Observations(observations) => observations.encode(line)?,
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::super::Metrics;
    use super::super::tests::assert_lines;
    use super::*;

    const WORKS: Metric = Metric::new("fleet_work_processing_requests", "Works");

    #[test]
    fn counts_add_up_by_their_labels() {
        let metrics = Metrics::default();
        let count = |status: &str| Increment::new(&WORKS, &[("apply_status", status)]);
        metrics.count(&[count("Applied"), count("Failed")]);
        metrics.count(&[count("Applied")]);
        let text = metrics.text();
        assert!(text.contains("# TYPE fleet_work_processing_requests counter\n"), "{text}");
        for line in [
            r#"fleet_work_processing_requests_total{apply_status="Applied"} 2"#,
            r#"fleet_work_processing_requests_total{apply_status="Failed"} 1"#,
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
    }

    #[test]
    fn durations_fill_the_buckets_of_a_histogram() {
        const ENDS: Metric = Metric::histogram("end_seconds", "Duration of the end", &[1, 2]);
        let metrics = Metrics::default();
        let lasted = |seconds| {
            Increment::lasted(&ENDS, &[("nodepool", "a")], SignedDuration::from_secs(seconds))
        };
        metrics.count(&[lasted(1), lasted(2)]);
        metrics.count(&[lasted(60)]);
        assert_lines(
            &metrics,
            &[
                "# TYPE end_seconds histogram",
                r#"end_seconds_bucket{le="1.0",nodepool="a"} 1"#,
                r#"end_seconds_bucket{le="2.0",nodepool="a"} 2"#,
                r#"end_seconds_bucket{le="+Inf",nodepool="a"} 3"#,
                r#"end_seconds_sum{nodepool="a"} 63.0"#,
            ],
        );
    }
}
