//! The results of health checks, which service level indicators are made of.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

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
        let (states, results) = (Family::default(), Family::default());
        let help = "Whether a health check passed when it was made last";
        registry.register("kubernetes_healthcheck", help, states.clone());
        let help = "How often a health check passed or failed";
        registry.register("kubernetes_healthchecks", help, results.clone());
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
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)
            .expect("writing to a string does not fail");
        text
    }
}
