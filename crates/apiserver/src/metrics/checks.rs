//! The results of health checks, which service level indicators are made of.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{published, text_of};

/// What `/metrics/slis` tells, and `/metrics` does not.
#[derive(Debug)]
pub(crate) struct Checks {
    registry: Registry,
    states: Family<Check, Gauge>,
    results: Family<CheckResult, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Check {
    name: String,
    r#type: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CheckResult {
    name: String,
    r#type: String,
    status: &'static str,
}

impl Default for Checks {
    fn default() -> Self {
        let mut registry = Registry::default();
        let (all, help) = (&mut registry, "Whether a health check passed when it was made last");
        let states = published(all, "kubernetes_healthcheck", help, Family::default());
        let help = "How often a health check passed or failed";
        let results = published(all, "kubernetes_healthchecks", help, Family::default());
        Self { registry, states, results }
    }
}

impl Checks {
    /// A check was made for somebody who asked at `endpoint`.
    pub(crate) fn made(&self, endpoint: &str, name: &str, passed: bool) {
        self.state(endpoint, name, passed);
        let status = if passed { "success" } else { "error" };
        let (name, endpoint) = (name.to_owned(), endpoint.to_owned());
        self.results.get_or_create(&CheckResult { name, r#type: endpoint, status }).inc();
    }

    /// How a check stands, whoever asks.
    pub(crate) fn state(&self, endpoint: &str, name: &str, passed: bool) {
        let check = Check { name: name.to_owned(), r#type: endpoint.to_owned() };
        self.states.get_or_create(&check).set(i64::from(passed));
    }

    pub(crate) fn text(&self) -> String {
        text_of(&self.registry)
    }
}
