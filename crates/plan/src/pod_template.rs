//! Rules about pod templates of workloads. Not every rule of a pod is here: those are that
//! people break, and those that the decisions rely on.

mod container;
mod volume;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::validation::findings::{Findings, entries};
use crate::validation::metadata::{annotations, labels};

pub(crate) fn check(findings: &mut Findings<'_>, template: &Value, path: &str) {
    let metadata = template.get("metadata").unwrap_or(&Value::Null);
    labels(findings, metadata.get("labels"), &format!("{path}.metadata.labels"));
    annotations(findings, metadata.get("annotations"), &format!("{path}.metadata.annotations"));
    let at = format!("{path}.spec");
    let empty = Value::Object(serde_json::Map::new());
    let spec = template.get("spec").filter(|spec| spec.is_object()).unwrap_or(&empty);
    let volumes = volume::check(findings, spec, &at);
    containers(findings, spec, &at, &volumes);
    pod(findings, spec, &at);
    let restart = spec.get("restartPolicy").and_then(Value::as_str).unwrap_or("Always");
    if restart != "Always" {
        findings.unsupported(&format!("{at}.restartPolicy"), restart, &["Always"]);
    }
    if spec.get("activeDeadlineSeconds").is_some_and(|secs| !secs.is_null()) {
        let message = "Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported".to_owned();
        findings.error(&format!("{at}.activeDeadlineSeconds"), message);
    }
}

fn containers(findings: &mut Findings<'_>, spec: &Value, path: &str, volumes: &BTreeSet<&str>) {
    if entries(spec, "containers", path).next().is_none() {
        findings.required(&format!("{path}.containers"), "");
    }
    let mut names = BTreeSet::new();
    for list in ["initContainers", "containers"] {
        for (at, entry) in entries(spec, list, path) {
            let name = container::check(findings, entry, &at, volumes);
            if let Some(name) = name
                && !names.insert(name)
            {
                findings.error(&format!("{at}.name"), format!("Duplicate value: {name:?}"));
            }
        }
    }
    if entries(spec, "ephemeralContainers", path).next().is_some() {
        let message = "Forbidden: ephemeral containers not allowed in pod template".to_owned();
        findings.error(&format!("{path}.ephemeralContainers"), message);
    }
}

fn pod(findings: &mut Findings<'_>, spec: &Value, path: &str) {
    let words: [(&str, &[&str]); 2] = [
        ("dnsPolicy", &["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]),
        ("preemptionPolicy", &["Never", "PreemptLowerPriority"]),
    ];
    for (key, supported) in words {
        findings.word(spec, key, path, supported);
    }
    let grace = format!("{path}.terminationGracePeriodSeconds");
    findings.not_negative(spec.get("terminationGracePeriodSeconds"), &grace);
    labels(findings, spec.get("nodeSelector"), &format!("{path}.nodeSelector"));
    for (at, toleration) in entries(spec, "tolerations", path) {
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        findings.word(toleration, "operator", &at, &["Equal", "Exists", "Lt", "Gt"]);
        findings.word(toleration, "effect", &at, &effects);
    }
    for (at, constraint) in entries(spec, "topologySpreadConstraints", path) {
        findings.text(constraint, "topologyKey", &at);
        let skew = constraint.get("maxSkew").unwrap_or(&Value::Null);
        if skew.as_i64().unwrap_or(0) <= 0 {
            findings.invalid(&format!("{at}.maxSkew"), skew, "must be greater than zero");
        }
        findings.word(constraint, "whenUnsatisfiable", &at, &["DoNotSchedule", "ScheduleAnyway"]);
    }
}
