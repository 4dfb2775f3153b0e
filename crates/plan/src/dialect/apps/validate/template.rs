//! Rules about pod templates of workloads. Not every rule of a pod is here: those are that
//! people break, and those that the decisions rely on.

use std::collections::BTreeSet;

use serde_json::Value;

use super::findings::{Findings, entries};
use super::{container, volume};
use crate::selector::{is_label_value, is_qualified_name};

pub(super) fn check(findings: &mut Findings<'_>, template: &Value, path: &str) {
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

pub(super) fn labels(findings: &mut Findings<'_>, labels: Option<&Value>, path: &str) {
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        if !is_qualified_name(key) {
            findings.invalid(path, &Value::from(key.as_str()), QUALIFIED);
        }
        if !is_label_value(value.as_str().unwrap_or_default()) {
            findings.invalid(path, value, LABEL_VALUE);
        }
    }
}

pub(super) fn annotations(findings: &mut Findings<'_>, annotations: Option<&Value>, path: &str) {
    let mut bytes = 0;
    for (key, value) in annotations.and_then(Value::as_object).into_iter().flatten() {
        bytes += key.len() + value.as_str().map_or(0, str::len);
        if !is_qualified_name(&key.to_lowercase()) {
            findings.invalid(path, &Value::from(key.as_str()), QUALIFIED);
        }
    }
    if bytes > ANNOTATION_BYTES_MAX {
        let message = format!("Too long: may not be more than {ANNOTATION_BYTES_MAX} bytes");
        findings.error(path, message);
    }
}

/// All annotations of an object together, keys and values.
const ANNOTATION_BYTES_MAX: usize = 256 * 1024;

const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and \
    must start and end with an alphanumeric character, after an optional DNS subdomain prefix and '/'";
const LABEL_VALUE: &str = "a valid label must be an empty string or at most 63 alphanumeric \
    characters, '-', '_' or '.', and must start and end with an alphanumeric character";
