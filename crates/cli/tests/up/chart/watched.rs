//! A real Prometheus that finds the pods of installed charts as their `ServiceMonitors` say.

use std::path::Path;

use serde_json::{Value, json};

use super::{AGENT, Site, WITHIN, chart};
use crate::helm::Helm;
use crate::prometheus::Prometheus;

pub(super) struct Watched(Prometheus);

impl Site {
    /// Watches releases, by name and namespace. Their processes serve metrics on ports of loopback
    /// instead of the addresses of their pods.
    pub(super) fn watch(&self, releases: &[(&str, &str, u16)]) -> Watched {
        let jobs = releases.iter().map(|(name, within, port)| {
            let monitor = service_monitor(name, within);
            job(&monitor, within, &self.control_plane.kubeconfig, *port)
        });
        let configuration = json!({"scrape_configs": jobs.collect::<Vec<Value>>()});
        Watched(Prometheus::start(&serde_saphyr::to_string(&configuration).unwrap()))
    }
}

/// What the chart gives to the Prometheus Operator.
fn service_monitor(name: &str, within: &str) -> Value {
    let helm = Helm::new(Path::new("/dev/null"));
    let mode = if name == AGENT { "mode=agent,agent.cluster=any," } else { "" };
    let values = format!("{mode}serviceMonitor.enabled=true");
    let asked = format!("template {name} {} -n {within} --set {values}", chart().display());
    let objects = serde_saphyr::from_multiple::<Value>(&helm.run(&asked)).unwrap();
    let mut monitors = objects.into_iter().filter(|object| object["kind"] == "ServiceMonitor");
    monitors.next().unwrap()
}

/// The operator's translation of a `ServiceMonitor`: the Services with these labels, their ports of
/// this name, and every address behind them.
fn job(monitor: &Value, within: &str, kubeconfig: &Path, port: u16) -> Value {
    let keep = |label: &str, value: &Value| {
        let label = label.replace(['.', '/', '-'], "_");
        let source = format!("__meta_kubernetes_{label}");
        json!({"source_labels": [source], "regex": value, "action": "keep"})
    };
    let endpoint = &monitor["spec"]["endpoints"][0];
    let labels = monitor["spec"]["selector"]["matchLabels"].as_object().unwrap();
    let labels = labels.iter().map(|(key, value)| keep(&format!("service_label_{key}"), value));
    let mut relabelled: Vec<Value> = labels.collect();
    relabelled.push(keep("endpointslice_port_name", &endpoint["port"]));
    relabelled.extend([
        json!({"source_labels": ["__meta_kubernetes_pod_name"], "target_label": "pod"}),
        json!({"source_labels": ["__meta_kubernetes_namespace"], "target_label": "namespace"}),
        json!({"target_label": "__address__", "replacement": format!("127.0.0.1:{port}")}),
    ]);
    json!({
        "job_name": within,
        "metrics_path": endpoint["path"].as_str().unwrap_or("/metrics"),
        "kubernetes_sd_configs": [{"role": "endpointslice", "kubeconfig_file": kubeconfig,
            "namespaces": {"names": [within]}}],
        "relabel_configs": relabelled,
    })
}

impl Watched {
    /// Every replica is a target that answers, and each dialect has rolled out something.
    pub(super) fn has_series_of_each_dialect(&mut self) {
        let Self(prometheus) = self;
        for within in [WITHIN, AGENT] {
            prometheus.until(&format!("count(up{{namespace='{within}'}} == 1) == 2"));
            prometheus.until(&format!("convoy_active{{namespace='{within}'}} == 1"));
        }
        for dialect in ["apps", "skyhook", "fleet", "karpenter", "ocm"] {
            let of_dialect = format!("{{namespace='{WITHIN}',dialect='{dialect}'}}");
            prometheus.until(&format!("convoy_rollouts{of_dialect} > 0"));
            prometheus.until(&format!("convoy_members{of_dialect} > 0"));
            prometheus.until(&format!("convoy_plan_seconds_count{of_dialect} > 0"));
        }
        for namespace in [WITHIN, AGENT] {
            let accepted = format!("{{namespace='{namespace}',code=~'2..'}}");
            prometheus.until(&format!("convoy_writes_total{accepted} > 0"));
        }
        assert_eq!(prometheus.query("convoy_writes_total{code='403'} > 0").len(), 0);
    }
}
