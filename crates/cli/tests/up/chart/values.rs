//! What the values of the chart that are off by default render to.

use std::path::Path;

use serde_json::{Value, json};

use super::chart;
use crate::helm::Helm;

/// The objects that the chart makes with these values.
pub(super) struct Rendered(Vec<Value>);

impl Rendered {
    pub(super) fn with(values: &str) -> Self {
        let helm = Helm::new(Path::new("/dev/null"));
        let text = helm.run(&format!("template x {} {values}", chart().display()));
        let objects = serde_saphyr::from_multiple::<Value>(&text).unwrap();
        Self(objects.into_iter().filter(|object| !object.is_null()).collect())
    }

    pub(super) fn of(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.0.iter().filter(move |object| object["kind"] == kind)
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|object| object["kind"].as_str().unwrap())
    }

    pub(super) fn the(&self, kind: &str) -> &Value {
        let found: Vec<&Value> = self.of(kind).collect();
        let [one] = found[..] else { panic!("{} of {kind}", found.len()) };
        one
    }
}

/// Whether labels are selected by `matchLabels`.
pub(super) fn selects(selector: &Value, labels: &Value) -> bool {
    let wanted = selector["matchLabels"].as_object().unwrap();
    !wanted.is_empty() && wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
}

#[test]
fn the_kinds_of_the_prometheus_operator_find_the_metrics() {
    let without = Rendered::with("");
    assert_eq!(without.of("ServiceMonitor").chain(without.of("PrometheusRule")).count(), 0);
    let with = Rendered::with(
        "--set serviceMonitor.enabled=true,serviceMonitor.interval=7s,serviceMonitor.labels.team=a \
         --set prometheusRule.enabled=true,dashboards.enabled=true",
    );
    let (monitor, service) = (with.the("ServiceMonitor"), with.the("Service"));
    assert!(selects(&monitor["spec"]["selector"], &service["metadata"]["labels"]), "{monitor}");
    assert_eq!(monitor["metadata"]["labels"]["team"], "a");
    let endpoint = &monitor["spec"]["endpoints"][0];
    assert_eq!(endpoint["interval"], "7s");
    let port = &service["spec"]["ports"][0];
    assert_eq!(endpoint["port"], port["name"]);
    let deployment = with.the("Deployment");
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let named = container["ports"].as_array().unwrap().iter();
    assert!(named.clone().any(|it| it["name"] == port["targetPort"]), "{container}");
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    assert!(selects(&json!({"matchLabels": service["spec"]["selector"]}), labels), "{service}");

    let alerts = std::fs::read_to_string(chart().join("monitoring/alerts.yaml")).unwrap();
    let alerts: Value = serde_saphyr::from_str(&alerts).unwrap();
    assert_eq!(with.the("PrometheusRule")["spec"], alerts);
    let dashboards = with.of("ConfigMap").filter(|it| {
        it["metadata"]["labels"]["grafana_dashboard"] == "1" && it["data"].as_object().is_some()
    });
    assert_eq!(dashboards.count(), 6, "one for each dialect, and one over all");
}

#[test]
fn replicas_that_require_different_nodes_can_still_be_replaced() {
    let rendered = Rendered::with("--set antiAffinity=hard,networkPolicy.enabled=true");
    let deployment = rendered.the("Deployment");
    let pod = &deployment["spec"]["template"];
    let rules = &pod["spec"]["affinity"]["podAntiAffinity"];
    let rule = &rules["requiredDuringSchedulingIgnoredDuringExecution"][0];
    assert_eq!(rule["topologyKey"], "kubernetes.io/hostname");
    assert!(selects(&rule["labelSelector"], &pod["metadata"]["labels"]), "{rule}");
    // With a surge the new pod would wait for a node that an old one holds.
    let update = json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}});
    assert_eq!(deployment["spec"]["strategy"], update);
    let policy = &rendered.the("NetworkPolicy")["spec"];
    assert!(selects(&policy["podSelector"], &pod["metadata"]["labels"]), "{policy}");

    let none = Rendered::with("--set antiAffinity=none");
    assert_eq!(none.the("Deployment")["spec"]["template"]["spec"].get("affinity"), None);
}
