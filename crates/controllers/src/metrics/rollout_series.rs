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

use super::observations::Observations;
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
            let kind = match metric.buckets {
                [] => MetricType::Gauge,
                _ => MetricType::Histogram,
            };
            let mut family = encoder.encode_descriptor(metric.name, metric.help, None, kind)?;
            if metric.buckets.is_empty() {
                for (labels, value) in sums(&all) {
                    let line = family.encode_family(labels)?;
                    if metric.is_in_thousandths {
                        #[expect(clippy::cast_precision_loss, reason = "gauges are floats")]
                        ConstGauge::new(value as f64 / 1_000.0).encode(line)?;
                    } else {
                        ConstGauge::new(value).encode(line)?;
                    }
                }
                continue;
            }
            for series in all {
                let mut observations = Observations::new(metric);
                for value in &series.observed {
                    observations.observe(f64::from(*value));
                }
                observations.encode(family.encode_family(&series.labels)?)?;
            }
        }
        Ok(())
    }
}

/// The values of a gauge by labels. Where labels do not name the rollout, those of several are
/// added up: the text format has one line for each set of labels.
fn sums<'s>(all: &[&'s Series]) -> BTreeMap<&'s Vec<(&'static str, String)>, i64> {
    let mut sums = BTreeMap::new();
    for series in all {
        let sum: &mut i64 = sums.entry(&series.labels).or_default();
        *sum = sum.saturating_add(series.value);
    }
    sums
}

#[cfg(test)]
mod tests {
    use convoy_api::GroupKind;

    use super::super::Metrics;
    use super::super::tests::assert_lines;
    use super::*;

    const NODES: Metric = Metric::new("skyhook_node_target_count", "Targeted nodes");
    const STAGES: Metric = Metric::histogram("stage_seconds", "Duration of stages", &[15, 30]);

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

    #[test]
    fn series_with_the_same_labels_are_one_line_with_their_sum() {
        const USAGE: Metric = Metric::in_thousandths("usage", "What is used");
        let metrics = Metrics::default();
        for (name, cpu) in [("a", 1_500), ("b", 2_000)] {
            let key = GroupKind::new("karpenter.sh", "NodePool").key("", name);
            let nodes = Series::new(&NODES, &[("reason", "empty")], 2);
            let usage = Series::new(&USAGE, &[("nodepool", name)], cpu);
            metrics.set_series(&Rollout { dialect: 0, key }, vec![nodes, usage]);
        }
        assert_lines(
            &metrics,
            &[
                r#"skyhook_node_target_count{reason="empty"} 4"#,
                r#"usage{nodepool="a"} 1.5"#,
                r#"usage{nodepool="b"} 2.0"#,
            ],
        );
    }

    #[test]
    fn a_histogram_counts_what_was_observed() {
        let metrics = Metrics::default();
        let key = GroupKind::new("placement.kubernetes-fleet.io", "ClusterStagedUpdateRun");
        let rollout = Rollout { dialect: 0, key: key.key("", "run") };
        let series = Series::observed(&STAGES, &[("name", "run")], vec![15, 16, 4000]);
        metrics.set_series(&rollout, vec![series]);
        assert_lines(
            &metrics,
            &[
                "# TYPE stage_seconds histogram",
                r#"stage_seconds_bucket{le="15.0",name="run"} 1"#,
                r#"stage_seconds_bucket{le="30.0",name="run"} 2"#,
                r#"stage_seconds_bucket{le="+Inf",name="run"} 3"#,
                r#"stage_seconds_sum{name="run"} 4031.0"#,
                r#"stage_seconds_count{name="run"} 3"#,
            ],
        );
    }
}
