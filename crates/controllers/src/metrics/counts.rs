//! Counters of dialects: what their decisions were, added up.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use convoy_plan::series::{Increment, Metric};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;

type Labels = Vec<(&'static str, String)>;

#[derive(Clone, Debug, Default)]
pub(super) struct DecisionCounts {
    by_name: Arc<Mutex<BTreeMap<&'static str, Family>>>,
}

#[derive(Debug)]
struct Family {
    metric: &'static Metric,
    by_labels: BTreeMap<Labels, u64>,
}

impl DecisionCounts {
    /// Counts all of them.
    pub(super) fn add<'i>(&self, counts: impl IntoIterator<Item = &'i Increment>) {
        // A panic elsewhere leaves whole numbers behind.
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        for Increment { metric, labels, by, .. } in counts {
            let family = by_name.entry(metric.name);
            let family = family.or_insert_with(|| Family { metric, by_labels: BTreeMap::new() });
            *family.by_labels.entry(labels.clone()).or_default() += by;
        }
    }
}

impl Collector for DecisionCounts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        for Family { metric, by_labels } in by_name.values() {
            let mut family =
                encoder.encode_descriptor(metric.name, metric.help, None, MetricType::Counter)?;
            for (labels, count) in by_labels {
                ConstCounter::new(*count).encode(family.encode_family(labels)?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Metrics;
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
}
