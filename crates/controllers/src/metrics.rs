//! What the loop counts, in the text format of Prometheus.

mod told;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use convoy_plan::Step;
use convoy_plan::series::Series;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use self::told::Told;
use crate::cache::Rollout;

/// Everything that is counted.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    depth: Gauge,
    passes: Family<Passed, Counter>,
    planning: Family<Planned, Histogram, fn() -> Histogram>,
    writes: Family<Wrote, Counter>,
    conflicts: Counter,
    holds: Family<Held, Gauge>,
    told: Told,
    is_ready: AtomicBool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Passed {
    dialect: &'static str,
    verdict: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Planned {
    dialect: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Wrote {
    verb: &'static str,
    /// 0 where there was no answer.
    code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Held {
    dialect: &'static str,
    reason: &'static str,
}

/// How many of each reason a rollout is held for.
pub type Holds = BTreeMap<&'static str, i64>;

impl Default for Metrics {
    fn default() -> Self {
        let histogram: fn() -> Histogram =
            || Histogram::new([0.000_02, 0.000_1, 0.000_5, 0.002, 0.01, 0.05, 0.25, 1.0]);
        let mut metrics = Self {
            registry: Registry::default(),
            depth: Gauge::default(),
            passes: Family::default(),
            planning: Family::new_with_constructor(histogram),
            writes: Family::default(),
            conflicts: Counter::default(),
            holds: Family::default(),
            told: Told::default(),
            is_ready: AtomicBool::new(false),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "convoy_queue_depth",
            "Rollouts that wait for their turn",
            self.depth.clone(),
        );
        registry.register("convoy_passes", "Decisions made, by verdict", self.passes.clone());
        registry.register("convoy_plan_seconds", "Time a decision takes", self.planning.clone());
        registry.register(
            "convoy_writes",
            "Writes by verb and by the answer's code, 0 for none",
            self.writes.clone(),
        );
        registry.register(
            "convoy_conflicts",
            "Writes that met another state than was observed",
            self.conflicts.clone(),
        );
        registry.register("convoy_holds", "What stands still now, by reason", self.holds.clone());
        registry.register_collector(Box::new(self.told.clone()));
    }

    pub(crate) fn queue(&self, depth: usize) {
        self.depth.set(i64::try_from(depth).unwrap_or(i64::MAX));
    }

    pub(crate) fn passed(&self, step: &Step) {
        let verdict = format!("{:?}", step.verdict);
        self.passes.get_or_create(&Passed { dialect: step.dialect, verdict }).inc();
    }

    pub(crate) fn planned(&self, dialect: &'static str, took: Duration) {
        self.planning.get_or_create(&Planned { dialect }).observe(took.as_secs_f64());
    }

    pub(crate) fn wrote(&self, verb: &'static str, code: u16) {
        self.writes.get_or_create(&Wrote { verb, code }).inc();
    }

    pub(crate) fn conflict(&self) {
        self.conflicts.inc();
    }

    /// A rollout was held for `before`, and is held for `after` now.
    pub(crate) fn held(&self, dialect: &'static str, before: &Holds, after: &Holds) {
        let after = after.iter().map(|(reason, count)| (*reason, *count));
        for (reason, by) in before.iter().map(|(reason, count)| (*reason, -count)).chain(after) {
            self.holds.get_or_create(&Held { dialect, reason }).inc_by(by);
        }
    }

    /// What the newest decision about a rollout says in numbers.
    pub(crate) fn tell(&self, rollout: &Rollout, series: Vec<Series>) {
        self.told.put(rollout, series);
    }

    /// Nothing is said any more about a rollout that is gone.
    pub(crate) fn forget(&self, rollout: &Rollout) {
        self.told.put(rollout, Vec::new());
    }

    /// Whether this process does what it should: everything is listed, or it waits for its
    /// turn to lead.
    pub fn set_ready(&self, is_ready: bool) {
        self.is_ready.store(is_ready, Ordering::Relaxed);
    }

    pub fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed)
    }

    /// Everything counted so far, as Prometheus reads it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)
            .expect("a string takes whatever is written to it");
        text
    }
}

/// What a step holds, by reason.
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

    #[test]
    fn holds_are_those_of_now() {
        let metrics = Metrics::default();
        let before = Holds::from([("Paused", 2)]);
        let after = Holds::from([("Paused", 1), ("Stalled", 1)]);
        metrics.held("apps", &Holds::new(), &before);
        metrics.held("apps", &before, &after);
        let text = metrics.text();
        assert!(text.contains(r#"convoy_holds{dialect="apps",reason="Paused"} 1"#), "{text}");
        assert!(text.contains(r#"convoy_holds{dialect="apps",reason="Stalled"} 1"#), "{text}");
    }

    #[test]
    fn writes_are_counted_by_answer() {
        let metrics = Metrics::default();
        metrics.wrote("create", 201);
        metrics.wrote("create", 201);
        metrics.wrote("patch", 409);
        let text = metrics.text();
        assert!(text.contains(r#"convoy_writes_total{verb="create",code="201"} 2"#), "{text}");
    }
}
