//! Metrics of the control loop, in the text format of Prometheus.

mod counts;
mod observations;
mod rollout_series;
mod standing;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use convoy_plan::Step;
use convoy_plan::series::{Increment, Series};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use self::counts::DecisionCounts;
use self::rollout_series::RolloutSeries;
pub(crate) use self::standing::Decision;
use self::standing::Standings;
use crate::rollout::Rollout;

/// All metrics of the control loop.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    active: Gauge,
    depth: Gauge,
    passes: Family<DecisionLabels, Counter>,
    planning: Family<PlanningLabels, Histogram, fn() -> Histogram>,
    writes: Family<WriteLabels, Counter>,
    conflicts: Counter,
    holds: Family<HoldLabels, Gauge>,
    standings: Standings,
    rollout_series: RolloutSeries,
    counts: DecisionCounts,
    is_ready: AtomicBool,
    is_ending: AtomicBool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DecisionLabels {
    dialect: &'static str,
    verdict: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PlanningLabels {
    dialect: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteLabels {
    verb: &'static str,
    /// 0 if there was no response.
    code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HoldLabels {
    dialect: &'static str,
    reason: &'static str,
}

/// How many holds of each reason a rollout has.
pub type Holds = BTreeMap<&'static str, i64>;

impl Default for Metrics {
    fn default() -> Self {
        let histogram: fn() -> Histogram =
            || Histogram::new([0.000_02, 0.000_1, 0.000_5, 0.002, 0.01, 0.05, 0.25, 1.0]);
        let mut metrics = Self {
            registry: Registry::default(),
            active: Gauge::default(),
            depth: Gauge::default(),
            passes: Family::default(),
            planning: Family::new_with_constructor(histogram),
            writes: Family::default(),
            conflicts: Counter::default(),
            holds: Family::default(),
            standings: Standings::default(),
            rollout_series: RolloutSeries::default(),
            counts: DecisionCounts::default(),
            is_ready: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "convoy_active",
            "Whether this process makes decisions; 0 while it waits for the Lease",
            self.active.clone(),
        );
        registry.register("convoy_queue_depth", "Rollouts in the work queue", self.depth.clone());
        registry.register("convoy_passes", "Decisions made, by verdict", self.passes.clone());
        registry.register("convoy_plan_seconds", "Time a decision takes", self.planning.clone());
        registry.register(
            "convoy_writes",
            "Writes by verb and response code; code 0 means no response",
            self.writes.clone(),
        );
        registry.register(
            "convoy_conflicts",
            "Writes rejected because the object had changed since it was observed",
            self.conflicts.clone(),
        );
        registry.register("convoy_holds", "Current holds, by reason", self.holds.clone());
        self.standings.register(registry);
        registry.register_collector(Box::new(self.rollout_series.clone()));
        registry.register_collector(Box::new(self.counts.clone()));
    }

    /// All kinds are listed, and decisions follow. A process that loses its Lease ends.
    pub(crate) fn set_active(&self) {
        self.active.set(1);
    }

    pub(crate) fn set_queue_depth(&self, depth: usize) {
        self.depth.set(i64::try_from(depth).unwrap_or(i64::MAX));
    }

    /// A decision. Objects that people do not call rollouts, such as NodeClaims, are members or make
    /// rollouts possible: they have no standing of their own, which would take memory for each.
    pub(crate) fn count_decision(&self, decision: &Decision<'_>, is_rollout: bool) {
        if is_rollout {
            self.standings.decided(decision);
        }
        let step = decision.step;
        let verdict = format!("{:?}", step.verdict);
        self.passes.get_or_create(&DecisionLabels { dialect: step.dialect, verdict }).inc();
    }

    pub(crate) fn observe_planning(&self, dialect: &'static str, took: Duration) {
        self.planning.get_or_create(&PlanningLabels { dialect }).observe(took.as_secs_f64());
    }

    pub(crate) fn count_write(&self, verb: &'static str, code: u16) {
        self.writes.get_or_create(&WriteLabels { verb, code }).inc();
    }

    pub(crate) fn count_conflict(&self) {
        self.conflicts.inc();
    }

    /// The holds of a rollout changed from `before` to `after`.
    pub(crate) fn change_holds(&self, dialect: &'static str, before: &Holds, after: &Holds) {
        let after = after.iter().map(|(reason, count)| (*reason, *count));
        for (reason, by) in before.iter().map(|(reason, count)| (*reason, -count)).chain(after) {
            self.holds.get_or_create(&HoldLabels { dialect, reason }).inc_by(by);
        }
    }

    /// Adds what decisions and their writes count.
    pub(crate) fn count<'i>(&self, counts: impl IntoIterator<Item = &'i Increment>) {
        self.counts.add(counts);
    }

    /// Replaces the series of a rollout by those of its latest decision.
    pub(crate) fn set_series(&self, rollout: &Rollout, series: Vec<Series>) {
        self.rollout_series.set(rollout, series);
    }

    /// Removes the series of a rollout that is gone.
    pub(crate) fn remove_series(&self, rollout: &Rollout) {
        self.standings.remove(rollout);
        self.rollout_series.set(rollout, Vec::new());
    }

    /// Whether this process is ready: all kinds are listed, or it waits for the leader lease.
    pub fn set_ready(&self, is_ready: bool) {
        self.is_ready.store(is_ready, Ordering::Relaxed);
    }

    /// This process was told to end, and is not ready any more.
    pub fn end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
    }

    pub fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    pub fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed) && !self.is_ending()
    }

    /// All metrics in the text format of Prometheus.
    pub fn text(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)
            .expect("a string takes whatever is written to it");
        text
    }
}

/// The holds of a step, by reason.
pub(crate) fn holds(step: &Step) -> Holds {
    let mut counts = Holds::new();
    for hold in &step.holds {
        *counts.entry(hold.reason.word()).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requires that the text format has these lines.
    #[track_caller]
    pub(super) fn assert_lines(metrics: &Metrics, lines: &[&str]) {
        let text = metrics.text();
        for line in lines {
            assert!(text.lines().any(|found| found == *line), "{line} is not among\n{text}");
        }
    }

    #[test]
    fn holds_are_the_current_ones() {
        let metrics = Metrics::default();
        let before = Holds::from([("Paused", 2)]);
        let after = Holds::from([("Paused", 1), ("Stalled", 1)]);
        metrics.change_holds("apps", &Holds::new(), &before);
        metrics.change_holds("apps", &before, &after);
        let text = metrics.text();
        assert!(text.contains(r#"convoy_holds{dialect="apps",reason="Paused"} 1"#), "{text}");
        assert!(text.contains(r#"convoy_holds{dialect="apps",reason="Stalled"} 1"#), "{text}");
    }

    #[test]
    fn writes_are_counted_by_code() {
        let metrics = Metrics::default();
        metrics.count_write("create", 201);
        metrics.count_write("create", 201);
        metrics.count_write("patch", 409);
        let text = metrics.text();
        assert!(text.contains(r#"convoy_writes_total{verb="create",code="201"} 2"#), "{text}");
    }
}
