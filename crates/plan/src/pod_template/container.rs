//! Rules about the containers of a pod template.

use std::collections::BTreeSet;

use convoy_api::text::quantity::Quantity;
use serde_json::Value;

use crate::selector::is_dns_label;
use crate::validation::findings::{Findings, NOT_NEGATIVE, entries};
use crate::validation::metadata::LABEL;

/// Checks one container, and gives back its name.
pub(super) fn check<'v>(
    findings: &mut Findings<'_>,
    container: &'v Value,
    path: &str,
    volumes: &BTreeSet<&str>,
) -> Option<&'v str> {
    let name = findings.text(container, "name", path);
    if let Some(name) = name
        && !is_dns_label(name)
    {
        findings.invalid(&format!("{path}.name"), &Value::from(name), LABEL);
    }
    findings.text(container, "image", path);
    findings.word(container, "imagePullPolicy", path, &["Always", "IfNotPresent", "Never"]);
    let policies = ["FallbackToLogsOnError", "File"];
    findings.word(container, "terminationMessagePolicy", path, &policies);
    ports(findings, container, path);
    environment(findings, container, path);
    mounts(findings, container, path, volumes);
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let given = container.get(probe).filter(|probe| probe.is_object());
        if let Some(given) = given {
            check_probe(findings, given, &format!("{path}.{probe}"), probe != "readinessProbe");
        }
    }
    resources(findings, container, path);
    name
}

fn ports(findings: &mut Findings<'_>, container: &Value, path: &str) {
    let mut names = BTreeSet::new();
    for (at, port) in entries(container, "ports", path) {
        let number = port.get("containerPort").unwrap_or(&Value::Null);
        match number.as_i64() {
            None | Some(0) => findings.required(&format!("{at}.containerPort"), ""),
            Some(1..=65535) => {}
            Some(_) => {
                let right = "must be between 1 and 65535, inclusive";
                findings.invalid(&format!("{at}.containerPort"), number, right);
            }
        }
        findings.word(port, "protocol", &at, &["SCTP", "TCP", "UDP"]);
        let name = port.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        let Some(name) = name else { continue };
        if !is_port_name(name) {
            let right =
                "must be an IANA service name: at most 15 of a-z, 0-9 and '-', with a letter";
            findings.invalid(&format!("{at}.name"), &Value::from(name), right);
        }
        if !names.insert(name) {
            findings.error(&format!("{at}.name"), format!("Duplicate value: {name:?}"));
        }
    }
}

fn is_port_name(name: &str) -> bool {
    name.len() <= 15
        && is_dns_label(name)
        && !name.contains("--")
        && name.bytes().any(|byte| byte.is_ascii_lowercase())
}

fn environment(findings: &mut Findings<'_>, container: &Value, path: &str) {
    for (at, variable) in entries(container, "env", path) {
        if let Some(name) = findings.text(variable, "name", &at)
            && (name.contains('=') || !name.bytes().all(|byte| (0x20..0x7f).contains(&byte)))
        {
            let right = "a valid environment variable name must consist only of printable ASCII \
                characters other than '='";
            findings.invalid(&format!("{at}.name"), &Value::from(name), right);
        }
        let source = variable.get("valueFrom").and_then(Value::as_object);
        let given = source.into_iter().flatten().filter(|(_, value)| value.is_object()).count();
        let text = variable.get("value").and_then(Value::as_str).unwrap_or_default();
        let field = format!("{at}.valueFrom");
        if source.is_some() && given != 1 {
            let message = "Invalid value: must specify exactly one source".to_owned();
            findings.error(&field, message);
        } else if source.is_some() && !text.is_empty() {
            let message =
                "Invalid value: may not be specified when `value` is not empty".to_owned();
            findings.error(&field, message);
        }
    }
}

fn mounts(findings: &mut Findings<'_>, container: &Value, path: &str, volumes: &BTreeSet<&str>) {
    let mut taken = BTreeSet::new();
    for (at, mount) in entries(container, "volumeMounts", path) {
        if let Some(name) = findings.text(mount, "name", &at)
            && !volumes.contains(name)
        {
            findings.error(&format!("{at}.name"), format!("Not found: {name:?}"));
        }
        if let Some(place) = findings.text(mount, "mountPath", &at)
            && !taken.insert(place)
        {
            let value = Value::from(place);
            findings.invalid(&format!("{at}.mountPath"), &value, "must be unique");
        }
    }
}

fn check_probe(findings: &mut Findings<'_>, probe: &Value, path: &str, once: bool) {
    let handlers = ["exec", "httpGet", "tcpSocket", "grpc"];
    let given =
        handlers.iter().filter(|handler| probe.get(**handler).is_some_and(Value::is_object));
    match given.count() {
        0 => findings.required(path, "must specify a handler type"),
        1 => {}
        _ => {
            let message = "Forbidden: may not specify more than 1 handler type".to_owned();
            findings.error(path, message);
        }
    }
    let numbers = ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold"];
    for field in numbers.into_iter().chain(["failureThreshold"]) {
        findings.not_negative(probe.get(field), &format!("{path}.{field}"));
    }
    let successes = probe.get("successThreshold").unwrap_or(&Value::Null);
    if once && successes.as_i64().is_some_and(|count| count != 1) {
        findings.invalid(&format!("{path}.successThreshold"), successes, "must be 1");
    }
}

fn resources(findings: &mut Findings<'_>, container: &Value, path: &str) {
    let resources = container.get("resources").unwrap_or(&Value::Null);
    let amount = |list: &str, name: &str| -> Option<Quantity> {
        resources.get(list)?.get(name)?.as_str()?.parse().ok()
    };
    for list in ["limits", "requests"] {
        let given = resources.get(list).and_then(Value::as_object).into_iter().flatten();
        for (name, value) in given {
            let field = format!("{path}.resources.{list}[{name}]");
            if amount(list, name).is_some_and(|amount| amount < Quantity::ZERO) {
                findings.invalid(&field, value, NOT_NEGATIVE);
            }
            let above = amount("limits", name).zip(amount("requests", name));
            if list == "requests" && above.is_some_and(|(limit, request)| request > limit) {
                let right = format!("must be less than or equal to {name} limit");
                findings.invalid(&format!("{path}.resources.requests"), value, &right);
            }
        }
    }
}
