//! The series of the latest decisions, by rollout. All series of a rollout are replaced at once,
//! and removed with it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use convoy_plan::series::{Metric, Series};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::rollout::Rollout;

#[derive(Clone, Debug, Default)]
pub(super) struct RolloutSeries {
    by_rollout: Arc<Mutex<BTreeMap<Rollout, Vec<Series>>>>,
}

impl RolloutSeries {
    /// Replaces the series of a rollout.
    pub(super) fn set(&self, rollout: &Rollout, series: Vec<Series>) {
        // A panic elsewhere leaves whole entries behind.
        let mut by_rollout = self.by_rollout.lock().unwrap_or_else(PoisonError::into_inner);
        if series.is_empty() {
            by_rollout.remove(rollout);
        } else {
            by_rollout.insert(rollout.clone(), series);
        }
    }
}

impl Collector for RolloutSeries {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let by_rollout = self.by_rollout.lock().unwrap_or_else(PoisonError::into_inner);
        let mut by_metric: BTreeMap<&str, (&Metric, Vec<&Series>)> = BTreeMap::new();
        for series in by_rollout.values().flatten() {
            let of_metric = by_metric.entry(series.metric.name);
            of_metric.or_insert_with(|| (series.metric, Vec::new())).1.push(series);
        }
        for (metric, all) in by_metric.into_values() {
            let mut family =
                encoder.encode_descriptor(metric.name, metric.help, None, MetricType::Gauge)?;
            for series in all {
                ConstGauge::new(series.value).encode(family.encode_family(&series.labels)?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use convoy_api::GroupKind;

    use super::super::Metrics;
    use super::*;

    const NODES: Metric = Metric { name: "skyhook_node_target_count", help: "Targeted nodes" };

    #[test]
    fn series_are_replaced_and_removed_with_their_rollout() {
        let metrics = Metrics::default();
        let key = GroupKind::new("skyhook.nvidia.com", "Skyhook").key("", "tuning");
        let rollout = Rollout { dialect: 0, key };
        let series = |nodes: i64| vec![Series::new(&NODES, &[("skyhook_name", "tuning")], nodes)];
        metrics.set_series(&rollout, series(3));
        metrics.set_series(&rollout, series(4));
        let text = metrics.text();
        assert!(text.contains("# TYPE skyhook_node_target_count gauge\n"), "{text}");
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("tuning")).collect();
        assert_eq!(lines, [r#"skyhook_node_target_count{skyhook_name="tuning"} 4"#]);
        metrics.remove_series(&rollout);
        assert!(!metrics.text().contains("tuning"));
    }
}
