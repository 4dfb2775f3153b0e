//! Rules about the volumes of a pod template.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::selector::is_dns_label;
use crate::validation::findings::{Findings, entries};
use crate::validation::metadata::LABEL;

/// Checks the volumes of a pod spec, and gives back their names.
pub(super) fn check<'v>(
    findings: &mut Findings<'_>,
    spec: &'v Value,
    path: &str,
) -> BTreeSet<&'v str> {
    let mut names = BTreeSet::new();
    for (at, volume) in entries(spec, "volumes", path) {
        let field = format!("{at}.name");
        if let Some(name) = findings.text(volume, "name", &at) {
            if !is_dns_label(name) {
                findings.invalid(&field, &Value::from(name), LABEL);
            }
            if !names.insert(name) {
                findings.error(&field, format!("Duplicate value: {name:?}"));
            }
        }
        sources(findings, volume, &at);
    }
    names
}

fn sources(findings: &mut Findings<'_>, volume: &Value, path: &str) {
    let given = volume.as_object().into_iter().flatten();
    let given = given.filter(|(key, value)| *key != "name" && value.is_object());
    for (key, _) in given.skip(1) {
        let message = "Forbidden: may not specify more than 1 volume type".to_owned();
        findings.error(&format!("{path}.{key}"), message);
    }
    let needs = [
        ("configMap", "name"),
        ("secret", "secretName"),
        ("persistentVolumeClaim", "claimName"),
        ("hostPath", "path"),
    ];
    for (kind, key) in needs {
        if let Some(source) = volume.get(kind).filter(|source| source.is_object()) {
            findings.text(source, key, &format!("{path}.{kind}"));
        }
    }
}
